"""Secrets that nobody means to publish, by the few forms that cannot be taken for anything else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from domain.tokens import TOKENS, WHOLE_TOKEN

# With the beginning of the key: a program may well speak of the line above it.
_PRIVATE_KEY = (
    r"-----BEGIN (?:[A-Z]+ ){0,2}PRIVATE KEY(?: BLOCK)?-----"
    r"[\s\\nr\"',+]{1,16}[A-Za-z0-9+/:=, -]{24}"
)
_NAMES = ("a private key", *(form.kind for form in TOKENS))
_ANY = re.compile("|".join(f"({form})" for form in (_PRIVATE_KEY, *(form.certain for form in TOKENS))).encode())
_MADE_UP = re.compile(rb"example", re.IGNORECASE)

# A key whole, or as far as it is there; then the other forms, a signed token such as a run's capability, and the
# credentials in an address. The head of a signed token is bounded, since another may seem to begin at each `-eyJ` in
# what never comes to an end as one.
_SECRET = re.compile(
    r"-----BEGIN (?:[A-Z]+ ){0,2}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]+-----|\Z)|"
    + WHOLE_TOKEN
    + r"|\beyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|(?<=://)[^/\s@\"]+(?=@)",
    re.ASCII | re.DOTALL,
)


@dataclass(frozen=True)
class Leak:
    """`kind` says what it looks like, `line` where it begins. The secret itself is not in it."""

    kind: str
    line: int


def leaks(content: bytes, before: bytes = b"") -> Iterator[Leak]:
    """What looks like a secret in a file's content and was not in it before.

    What has "example" in it is none: that is how providers mark those in their manuals.
    """
    known = {found[0] for found in _ANY.finditer(before)}
    for found in _ANY.finditer(content):
        if found[0] not in known and not _MADE_UP.search(found[0]):
            known.add(found[0])
            yield Leak(_NAMES[(found.lastindex or 1) - 1], content.count(b"\n", 0, found.start()) + 1)


def struck(text: str) -> str:
    """The text with `[redacted]` in the place of whatever looks like a secret."""
    return _SECRET.sub("[redacted]", text)


def covered(text: str) -> str:
    """The text with stars over whatever looks like a secret: its shape stays, for what is a picture."""
    return _SECRET.sub(lambda found: "*" * len(found[0]), text)
