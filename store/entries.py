"""What is entered into the ledger, and how it is answered. Amounts are whole nano-dollars, times aware UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from domain.ledger import CeilingKind

TOKENS = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")
"""The kinds of tokens that usage tells apart."""


@dataclass(frozen=True)
class Ask:
    """One model call that wants money.

    `id` is the request's, made by the relay, 32 hex digits. `run_cap_nano_usd` is the capability's, 0 for
    none. `model` is the one that the request names, `endpoint` its shape: `anthropic.messages`,
    `openai.chat`, `openai.responses` or `gemini.generate`. `least` and `most` are what it can cost at
    most, with the least output that makes sense and with the output it asked for; `price` is the version
    of the price that they were reckoned by. Until `lease_until` the relay answers for it. Times are aware UTC.
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
    """The call may cost so much and no more: `least <= nano_usd <= most`, shrunk to what every ceiling has left."""

    id: str
    nano_usd: int


@dataclass(frozen=True)
class Short:
    """The first ceiling in the order of their locks that has less left than the call costs at the least.

    `passing`: everywhere is enough that was not spent, so it may be there again once other calls are over.
    """

    ceiling: CeilingKind
    subject: str
    cap: int
    left: int
    passing: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Void:
    """The run gets no money, and why, in one sentence: it is over, or is not what the ask says that it is."""

    why: str


@dataclass(frozen=True)
class Spent:
    """What a call came to. `nano_usd` None: nobody knows what it cost, and the whole reservation is spent.

    `tokens` by kind, of `TOKENS`; `outcome` in one word, `status` the provider's, 0 where it gave none;
    `request` the provider's own id of the call, empty where it told none.
    """

    id: str
    nano_usd: int | None
    tokens: Mapping[str, int]
    price: str
    at: datetime
    outcome: str
    status: int
    request: str = ""


@dataclass(frozen=True)
class Release:
    """Nothing of the call reached the provider."""

    id: str
    at: datetime


@dataclass(frozen=True)
class Renewal:
    """The call goes on, and the relay answers for it until then."""

    id: str
    until: datetime


@dataclass(frozen=True)
class Expiry:
    """Nobody answers for the call any more, if its lease has run out by `now`."""

    id: str
    now: datetime


Entry = Ask | Spent | Release | Renewal
Answer = Held | Short | Void | bool


def require_sound(entry: Entry | Expiry) -> None:
    """ValueError for an entry that cannot be true."""
    match entry:
        case Ask() if not 0 <= entry.least <= entry.most:
            raise ValueError(f"request {entry.id} costs {entry.least} at the least and {entry.most} at the most")
        case Ask() if entry.run_cap_nano_usd < 0:
            raise ValueError(f"run {entry.run} has a cap below nothing")
        case Spent() if (entry.nano_usd or 0) < 0 or min(entry.tokens.values(), default=0) < 0:
            raise ValueError(f"request {entry.id} cannot have taken less than nothing")
        case Spent() if not entry.tokens.keys() <= set(TOKENS):
            raise ValueError(f"request {entry.id} took tokens of a kind that is not known")
