"""What a model call used: tokens, each counted under one kind."""

from __future__ import annotations

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
