"""What a run's supervisor wrote, copied into the graph: a story to read, no facts to decide from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from store.database import insert_into
from store.plain import plain
from store.tables import run_events


@dataclass(frozen=True)
class Event:
    """One line of a run's story; `n` counts them within the run and stays the same in every copy."""

    n: int
    at: datetime
    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


def append(connection: Connection, run_id: str, events: Iterable[Event]) -> int:
    """Add those events that the graph lacks, and answer how many; the same events again change nothing."""
    rows = [{"run_id": run_id, **vars(event), "data": plain(event.data, floats=True)} for event in events]
    if not rows:
        return 0
    added = insert_into(connection, run_events).on_conflict_do_nothing().returning(run_events.c.n)
    return len(connection.execute(added, rows).all())


def events_of(connection: Connection, run_id: str, after: int = -1, limit: int = 1000) -> tuple[Event, ...]:
    """The run's events with an `n` above `after`, in order; at most `limit`."""
    query = (
        select(run_events.c.n, run_events.c.at, run_events.c.kind, run_events.c.data)
        .where(run_events.c.run_id == run_id, run_events.c.n > after)
        .order_by(run_events.c.n)
        .limit(limit)
    )
    return tuple(Event(row.n, row.at, row.kind, row.data) for row in connection.execute(query))
