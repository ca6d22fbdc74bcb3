"""What calls of models came to, and whose they were: sums that add up to the ledger, however they are grouped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from domain.metering import known

K = TypeVar("K")


@dataclass(frozen=True)
class Spending:
    """What some calls came to, in nano-dollars, and their tokens by kind.

    `spent` is what they cost, `held` what those under way may come to. `calls` are those that are over and count;
    `unmeasured` of them told no usage, and count as all that was held. `unmetered_runs` were at work besides, of which
    nobody knows what they cost: they are in no amount, and `spent` is None where nothing else was counted.
    """

    held_nano_usd: int = 0
    spent_nano_usd: int | None = 0
    calls: int = 0
    unmeasured: int = 0
    tokens: Mapping[str, int] = field(default_factory=dict)
    unmetered_runs: int = 0

    @classmethod
    def of(cls, parts: Iterable[Spending]) -> Spending:
        """The sum of these."""
        held = spent = calls = unmeasured = unmetered = 0
        tokens: dict[str, int] = {}
        for part in parts:
            held += part.held_nano_usd
            spent += part.spent_nano_usd or 0
            calls += part.calls
            unmeasured += part.unmeasured
            unmetered += part.unmetered_runs
            for kind, count in part.tokens.items():
                tokens[kind] = tokens.get(kind, 0) + count
        return cls(held, known(spent, unmetered=unmetered > 0), calls, unmeasured, tokens, unmetered)

    @property
    def nothing(self) -> bool:
        """Whether no model was asked: no call is in it, none that is under way either, and no unmetered run."""
        return not (self.calls or self.counted or self.unmetered_runs)

    @property
    def counted(self) -> int:
        """What is known, with what is held."""
        return self.held_nano_usd + (self.spent_nano_usd or 0)


@dataclass(frozen=True)
class Share:
    """What one run's calls of one model came to. No call is in two shares, and neither is an unmetered run."""

    plan: str
    task: str
    run: str
    role: str
    model: str
    spending: Spending

    @classmethod
    def unmetered(cls, plan: str, task: str, run: str, role: str, model: str) -> Share:
        """That of a run of which nobody knows what it cost."""
        return cls(plan, task, run, role, model, Spending(spent_nano_usd=None, unmetered_runs=1))


def total(shares: Iterable[Share]) -> Spending:
    return Spending.of(share.spending for share in shares)


def grouped(shares: Iterable[Share], key: Callable[[Share], K]) -> dict[K, Spending]:
    """The shares' sums by what `key` says of each, in the order in which it first says so."""
    found: dict[K, list[Spending]] = {}
    for share in shares:
        found.setdefault(key(share), []).append(share.spending)
    return {name: Spending.of(parts) for name, parts in found.items()}


def dearest_first(parts: Mapping[str, Spending]) -> dict[str, Spending]:
    """What cost most comes first; of what cost the same, the name decides."""
    order = sorted(parts, key=lambda name: (-parts[name].counted, name))
    return {name: parts[name] for name in order}
