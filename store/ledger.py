"""What is said between who asks for money and who keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from domain.ledger import CeilingKind


@dataclass(frozen=True)
class Ask:
    """One model call that wants money. Amounts are nano-dollars, times aware UTC.

    `least` is the most that it can cost with the least output that makes sense, `most` the most that it
    can cost with the output that it asked for; `price` is the version of the price of both.
    """

    id: str
    owner: str
    plan: str
    task: str
    run: str
    epoch: int
    run_cap_nano_usd: int
    model: str
    endpoint: str
    least: int
    most: int
    price: str
    at: datetime
    lease_until: datetime


@dataclass(frozen=True)
class Held:
    """Set aside: `least <= nano_usd <= most` of what was asked."""

    id: str
    nano_usd: int


@dataclass(frozen=True)
class Short:
    """Not set aside: the first ceiling that has too little left."""

    ceiling: CeilingKind
    subject: str
    cap: int
    left: int


@dataclass(frozen=True)
class Void:
    """Not set aside: the run's word counts no more."""

    why: str


@dataclass(frozen=True)
class Spent:
    """What a call came to. `nano_usd` None: nobody knows, so the whole reservation is spent."""

    id: str
    nano_usd: int | None
    tokens: Mapping[str, int]
    price: str
    at: datetime
    outcome: str
    status: int
