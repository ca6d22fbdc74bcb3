"""Money that is set aside before a model is asked: the ceilings it is taken from, and what becomes of it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from domain.budget import NANO_PER_USD
from domain.lifecycle import Lifecycle, table

DAY_NANO_USD = 25 * NANO_PER_USD
"""What an owner's runs may cost a day where the owner has said nothing."""

ZONE = "UTC"
"""Where an owner's day begins and ends where the owner has said nothing."""


class CeilingKind(StrEnum):
    """What a ceiling is over, in the order in which every writer locks them."""

    RUN = "run"
    TASK = "task"
    PLAN = "plan"
    DAY = "day"


class ReservationState(StrEnum):
    HELD = "held"
    SETTLED = "settled"
    RELEASED = "released"
    EXPIRED = "expired"


class ReservationEvent(StrEnum):
    HOLD = "hold"
    RENEW = "renew"
    SETTLE = "settle"
    RELEASE = "release"
    EXPIRE = "expire"


S, E = ReservationState, ReservationEvent

RESERVATION = Lifecycle(
    "reservation",
    table(
        (None, E.HOLD, S.HELD),
        # A stream that goes on.
        (S.HELD, E.RENEW, S.HELD),
        (S.HELD, E.SETTLE, S.SETTLED),
        # Nothing reached the provider.
        (S.HELD, E.RELEASE, S.RELEASED),
        # Nobody knows what it cost, so the whole of it counts as spent, until whoever knows says so.
        (S.HELD, E.EXPIRE, S.EXPIRED),
        (S.EXPIRED, E.SETTLE, S.SETTLED),
    ),
    ended=frozenset({S.SETTLED, S.RELEASED, S.EXPIRED}),
)
"""A reservation leaves no receipts: it is proven by its sums, and what was settled by its usage."""


def ceiling_id(kind: CeilingKind, subject: str) -> str:
    """`run:<run>`, `task:<task>`, `plan:<plan>` or `day:<owner>:<date>`."""
    return f"{kind}:{subject}"


def day_of(at: datetime, zone: str) -> str:
    """The date of `at` in a time zone, as `2026-03-29`. ValueError for a zone that nobody knows."""
    return at.astimezone(zone_named(zone)).date().isoformat()


def day_subject(owner: str, at: datetime, zone: str) -> str:
    """The day in which an owner's money of the moment `at` is spent, as `<owner>:<date>`."""
    return f"{owner}:{day_of(at, zone)}"


def zone_named(name: str) -> ZoneInfo:
    """The time zone of this name in the IANA database, such as `Europe/Berlin`. ValueError for another."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{name!r} is no time zone; one is called Europe/Berlin, for example") from error
