"""Caps follow their facts: a move that changes a budget changes the ceiling's cap in the same transaction."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, collate, select, update

from domain.ledger import DAY_NANO_USD, ZONE, CeilingKind, ceiling_id, day_subject
from domain.lifecycle import Receipt
from store.tables import ceilings, owners

_KINDS = {"task": CeilingKind.TASK, "plan": CeilingKind.PLAN}


def follow(connection: Connection, made: Receipt) -> None:
    """Let the ceiling of what was moved follow it. One that is not there is made from the fact when it is needed."""
    if made.kind in _KINDS and "budget_nano_usd" in made.facts:
        id = ceiling_id(_KINDS[made.kind], made.subject)
        connection.execute(update(ceilings).where(ceilings.c.id == id).values(cap=made.facts["budget_nano_usd"]))
    if made.kind == "owner" and made.facts.keys() & {"day_nano_usd", "zone"}:
        _follow_days(connection, made.subject, made.at)


def day_budget(connection: Connection, owner: str) -> tuple[int, str]:
    """What the owner's runs may cost a day in nano-dollars, and the time zone of that day."""
    row = connection.execute(select(owners.c.day_nano_usd, owners.c.zone).where(owners.c.id == owner)).one_or_none()
    return said_or_usual(*(row or (None, None)))


def said_or_usual(day_nano_usd: int | None, zone: str | None) -> tuple[int, str]:
    """What an owner said of their days, or what holds where nothing was said."""
    return (DAY_NANO_USD if day_nano_usd is None else day_nano_usd), zone or ZONE


def _follow_days(connection: Connection, owner: str, at: datetime) -> None:
    """The day of the moment `at` and later ones. Who would make one meanwhile waits for the lock of the chain."""
    cap, zone = day_budget(connection, owner)
    today = ceiling_id(CeilingKind.DAY, day_subject(owner, at, zone))
    days = select(ceilings.c.id).where(ceilings.c.kind == CeilingKind.DAY, ceilings.c.owner == owner)
    if connection.dialect.name == "postgresql":
        days = days.order_by(collate(ceilings.c.id, "C")).with_for_update()
    later = [id for id in connection.scalars(days) if id >= today]
    connection.execute(update(ceilings).where(ceilings.c.id.in_(later)).values(cap=cap))
