"""What the CLI of an unmetered run says that it used: its own word. It is in no sum, and bounds nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from domain.budget import NANO_PER_USD, format_usd
from domain.lifecycle import canonical
from domain.provenance import WORTH, Standing
from domain.run import EvidenceKind

TOKENS = ("input", "cache_read", "cache_write", "output", "reasoning")
"""The kinds of tokens that CLIs tell apart; whether one is a part of another differs between them."""

_MOST_TOKENS = 1 << 53
_MOST_USD = 1_000_000


_OF_SESSIONS = ("codex",)
"""CLIs whose numbers are of a session, with all the runs that this one goes on from."""


@dataclass(frozen=True)
class ToldUsage:
    """What a CLI said: tokens by kind, of `TOKENS`, and what it thinks they cost; `nano_usd` None where it said none.

    `by` is the CLI's name.
    """

    by: str
    tokens: Mapping[str, int]
    nano_usd: int | None = None
    standing: Standing = WORTH[EvidenceKind.USAGE].standing

    @property
    def sentence(self) -> str:
        """For people, with what it is worth before what it says."""
        counts = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in self.tokens.items() if count)
        of = " in its session so far" if self.by in _OF_SESSIONS else ""
        cost = "" if self.nano_usd is None else f"; it reckons {format_usd(self.nano_usd)}"
        return f"{self.standing}: {self.by} says of itself that it took {counts or 'no'} tokens{of}{cost}; in no sum"

    @property
    def content(self) -> bytes:
        """As evidence keeps it, in the same bytes for the same word."""
        return canonical({"by": self.by, "tokens": dict(self.tokens), "nano_usd": self.nano_usd}).encode()


def usage_in(by: str, tokens: Mapping[str, object], usd: object = None) -> ToldUsage | None:
    """What a CLI's numbers say, without those that can be none; None where nothing is left of them."""
    counts = {kind: count for kind in TOKENS if (count := _count(tokens.get(kind))) is not None}
    cost = _nano_usd(usd)
    return ToldUsage(by, counts, cost) if counts or cost is not None else None


def read_content(content: bytes) -> ToldUsage:
    """What `content` kept; ValueError for what is no such thing."""
    kept: Any = json.loads(content)
    if not isinstance(kept, dict) or not isinstance(kept.get("tokens"), dict):
        raise ValueError("it is no usage")
    nano_usd = kept.get("nano_usd")
    counts = {kind: count for kind in TOKENS if (count := _count(kept["tokens"].get(kind))) is not None}
    return ToldUsage(str(kept.get("by", ""))[:100], counts, None if nano_usd is None else _count(nano_usd))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS else None


def _nano_usd(value: object) -> int | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    # JSON holds whole numbers of any length, NaN and infinity: none of those is within.
    return round(Decimal(repr(value)) * NANO_PER_USD) if 0 <= value <= _MOST_USD else None
