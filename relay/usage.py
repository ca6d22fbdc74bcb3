"""What a model call used: tokens, each counted under one kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Usage:
    """Tokens by what they cost. `input` is what went through no cache; `reasoning` is a part of `output`."""

    input: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def whole_input(self) -> int:
        """All that the model read, which long-context prices go by."""
        return self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h

    def as_tokens(self) -> Mapping[str, int]:
        # Not asdict, which copies deeply what has no depth, at every call.
        return dict(vars(self))


def count(told: Any, *names: str) -> int:
    """A number of tokens somewhere in an answer; 0 where there is none.

    ValueError for what no provider would tell: it must not pass for nothing.
    """
    for name in names:
        if told is None:
            return 0
        if not isinstance(told, dict):
            raise ValueError(f"{name} is not where it was expected")
        told = told.get(name)
    if told is None:
        return 0
    if type(told) is not int or told < 0:
        raise ValueError(f"{names[-1]} is no number of tokens")
    return told


def needed(told: Mapping[str, Any], name: str) -> int:
    """A number of tokens without which nobody knows what a call cost. ValueError where it is not told."""
    if told.get(name) is None:
        raise ValueError(f"{name} is not told")
    return count(told, name)


_ID = re.compile("[!-~]{1,200}")


def plain_id(told: Any) -> str:
    """What a provider calls something, if that is an id that can be kept; else empty."""
    return told if isinstance(told, str) and _ID.fullmatch(told) else ""


def require_listed(told: Mapping[str, Any], name: str, ordinary: frozenset[str]) -> None:
    """ValueError for a word on how a call was served at which its price may be another than the one that is listed.

    `ordinary` are those of the listed price, or of a lower one; null and an empty text say nothing.
    """
    word = told.get(name)
    if word not in (None, "") and (not isinstance(word, str) or word.lower() not in ordinary):
        raise ValueError(f"{name} is {str(word)[:100]!r}, whose price is not known")
