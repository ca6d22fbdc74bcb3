"""Ceilings: what may be spent on a run, a task, a plan and an owner's day, what is held of it, and what is spent.

One table, locked by every writer in one order. A ceiling's row is made when it is first needed, from the
fact that sets its cap; afterwards the cap changes with that fact alone, in the transaction of its move.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, case, collate, select

from domain.ledger import CeilingKind, ceiling_id
from store import many
from store.caps import day_budget
from store.database import insert_into
from store.moves import lock_chain
from store.tables import ceilings, plans, tasks

_ORDER = {kind: n for n, kind in enumerate(CeilingKind)}
_RANK = case({str(kind): n for kind, n in _ORDER.items()}, value=ceilings.c.kind)
_CHOSEN = ceilings.c.id.in_(bindparam("ids", expanding=True))
_THERE = select(ceilings.c.id).where(_CHOSEN)
_LOCK = select(ceilings).where(_CHOSEN).order_by(_RANK, ceilings.c.id).with_for_update()
# Rows are made in Python's order of texts, so they are locked in that order too, whatever the database's is.
_LOCK_C = select(ceilings).where(_CHOSEN).order_by(_RANK, collate(ceilings.c.id, "C")).with_for_update()


@dataclass(frozen=True)
class Need:
    """A ceiling that has to be there. `cap` is a run's alone, in nano-dollars, None for no cap of its own."""

    kind: CeilingKind
    subject: str
    owner: str
    cap: int | None = None

    @property
    def id(self) -> str:
        return ceiling_id(self.kind, self.subject)


@dataclass
class Ceiling:
    """A ceiling whose row is locked. All amounts are nano-dollars; `cap` None is none."""

    id: str
    kind: CeilingKind
    subject: str
    owner: str
    cap: int | None
    held: int
    settled: int
    changed: bool = False

    @property
    def left(self) -> int | None:
        """What may still be held; below nothing where a call cost more than was held for it. None without a cap."""
        return None if self.cap is None else self.cap - self.held - self.settled

    def add(self, held: int, settled: int) -> None:
        self.held += held
        self.settled += settled
        self.changed = True


def locked(connection: Connection, needs: Iterable[Need], known: Collection[str] = ()) -> dict[str, Ceiling]:
    """Lock these ceilings until the transaction ends, by their ids; those that are needed first are made.

    `known` are ids of ceilings that are there, since something was held of them. Whoever needs a task's
    ceiling holds the task's row.
    """
    by_id: dict[str, Need] = {}
    for need in needs:
        by_id.setdefault(need.id, need)
    if by_id:
        there = set(connection.scalars(_THERE, {"ids": list(by_id)}))
        _make(connection, [need for id, need in by_id.items() if id not in there])
    lock = _LOCK_C if connection.dialect.name == "postgresql" else _LOCK
    rows = connection.execute(lock, {"ids": [*{*by_id, *known}]})
    return {row.id: Ceiling(row.id, CeilingKind(row.kind), *row[2:]) for row in rows}


def keep(connection: Connection, changed: Iterable[Ceiling]) -> None:
    """Write the sums of locked ceilings back."""
    rows = [{"held": each.held, "settled": each.settled, "id": each.id} for each in changed]
    many.update(connection, ceilings, rows)


def _make(connection: Connection, missing: Collection[Need]) -> None:
    for need in sorted(missing, key=lambda need: (_ORDER[need.kind], need.id)):
        row = {
            "id": need.id,
            "kind": need.kind,
            "subject": need.subject,
            "owner": need.owner,
            "cap": _cap(connection, need),
            "held": 0,
            "settled": 0,
        }
        connection.execute(insert_into(connection, ceilings).on_conflict_do_nothing(), row)


def _cap(connection: Connection, need: Need) -> int | None:
    """What the fact says, which cannot change before the row that follows it is there."""
    match need.kind:
        case CeilingKind.RUN:
            return need.cap
        case CeilingKind.TASK:
            return connection.scalar(select(tasks.c.budget_nano_usd).where(tasks.c.id == need.subject))
        case CeilingKind.PLAN:
            query = select(plans.c.budget_nano_usd).where(plans.c.id == need.subject)
            return connection.scalar(query.with_for_update(read=True))
        case CeilingKind.DAY:
            lock_chain(connection, f"owner:{need.owner}")
            return day_budget(connection, need.owner)[0]
