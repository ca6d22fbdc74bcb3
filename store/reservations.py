"""The rows of reservations and of usage, as the ledger reads and writes them: a batch in one statement each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, select

from domain.errors import IllegalMove
from domain.ledger import RESERVATION, ReservationEvent
from domain.ledger import ReservationState as State
from store import many
from store.tables import reservations, usage

_COLUMNS = (
    reservations.c.id,
    reservations.c.run_id,
    reservations.c.run_ceiling,
    reservations.c.task_ceiling,
    reservations.c.plan_ceiling,
    reservations.c.day_ceiling,
    reservations.c.state,
    reservations.c.held,
    reservations.c.settled,
    reservations.c.model,
    reservations.c.endpoint,
    reservations.c.price,
    reservations.c.asked_at,
    reservations.c.lease_until,
    reservations.c.ended_at,
    reservations.c.relay,
)
_MAY_CHANGE = ("state", "settled", "lease_until", "ended_at", "id")
_LOAD = select(*_COLUMNS).where(reservations.c.id.in_(bindparam("ids", expanding=True)))


@dataclass
class Reservation:
    """Money held for one call. `ceilings` are its run's, task's, plan's and day's; `settled` is what it cost."""

    id: str
    run_id: str
    ceilings: tuple[str, ...]
    state: str
    held: int
    settled: int
    model: str
    endpoint: str
    price: str
    asked_at: datetime
    lease_until: datetime
    ended_at: datetime | None
    relay: str

    @property
    def open(self) -> int:
        """What is held of it still."""
        return self.held if self.state == State.HELD else 0

    def end(self, event: ReservationEvent, settled: int, at: datetime) -> bool:
        """Come to an end at this cost, if the lifecycle allows it; whether it does."""
        try:
            self.state = RESERVATION.after(State(self.state), event)
        except IllegalMove:
            return False
        self.settled, self.ended_at = settled, at
        return True


def first(
    id: str,
    run_id: str,
    ceilings: tuple[str, ...],
    *,
    held: int,
    model: str,
    endpoint: str,
    price: str,
    asked_at: datetime,
    lease_until: datetime,
    relay: str,
) -> Reservation:
    """A reservation as it begins."""
    state = RESERVATION.after(None, ReservationEvent.HOLD)
    return Reservation(id, run_id, ceilings, state, held, 0, model, endpoint, price, asked_at, lease_until, None, relay)


def load(connection: Connection, ids: Sequence[str]) -> dict[str, Reservation]:
    """Those of these reservations that are there."""
    rows = connection.execute(_LOAD, {"ids": ids})
    return {row.id: _of_row(row) for row in rows}


def insert(connection: Connection, fresh: Iterable[Reservation]) -> None:
    many.insert(connection, reservations, [_row(each) for each in fresh])


def update(connection: Connection, changed: Iterable[Reservation]) -> None:
    """Write what may change of a reservation."""
    rows = [{name: getattr(each, name) for name in _MAY_CHANGE} for each in changed]
    many.update(connection, reservations, rows)


def insert_usage(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    many.insert(connection, usage, rows)


def _of_row(row: Any) -> Reservation:
    id, run_id, of_run, of_task, of_plan, of_day, *rest = row
    return Reservation(id, run_id, (of_run, of_task, of_plan, of_day), *rest)


def _row(each: Reservation) -> dict[str, Any]:
    row = dict(vars(each))
    row["run_ceiling"], row["task_ceiling"], row["plan_ceiling"], row["day_ceiling"] = row.pop("ceilings")
    return row
