"""Seals: a receipt chain's head, signed, to be put where the work graph's owner cannot rewrite it.

Whoever rewrites a chain from end to end gets one that agrees with itself. It does not agree with the
seals that stand in pull requests and reports since.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from domain.errors import Unauthorized
from signing.checking import kind_of, verified
from signing.keys import Signer

KIND = "watchbill-seal"

# Bounded in each part, and begun nowhere within a word: the text is anybody's.
_TOKEN = re.compile(r"(?<![\w.-])(eyJ[\w-]{1,500})\.[\w-]{1,1000}\.[\w-]{1,200}(?![\w.-])", re.ASCII)


@dataclass(frozen=True)
class Head:
    """Receipt `seq` of a chain, and its hash: all that was before it follows from that."""

    chain: str
    seq: int
    hash: str


def seal(signer: Signer, head: Head) -> str:
    """A compact JWS over the head. It bears no time, so sealing the same head again gives the same bytes."""
    return signer.sign(KIND, {"sub": head.chain, "seq": head.seq, "hash": head.hash})


def head_in(token: str, keys: Mapping[str, str]) -> Head:
    """The head that a seal vouches for. Raises Unauthorized for anything that no known key signed."""
    claims = verified(token, KIND, keys)
    match claims:
        case {"sub": str(chain), "seq": int(seq), "hash": str(hash_)}:
            return Head(chain, seq, hash_)
    raise Unauthorized("it is signed, but names no head")


def seals_in(text: str) -> list[str]:
    """Every token in a pull request's body or a report that says it is a seal, each once.

    Other signed tokens may stand in what was asked, and are none of ours.
    """
    found = (token[0] for token in _TOKEN.finditer(text) if kind_of(token[0]) == KIND)
    return list(dict.fromkeys(found))
