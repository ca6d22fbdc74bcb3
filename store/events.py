"""What a run's supervisor wrote, copied into the graph: a story to read, no facts to decide from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from store.database import insert_into
from store.plain import plain, plain_text
from store.tables import run_events


@dataclass(frozen=True)
class Event:
    """One line of a run's story; `n` orders them within the run and stays the same in every copy."""

    n: int
    at: datetime
    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


MOST_EVENTS = 5_000
"""Events of a run that are kept: an agent can tell any number."""

FOR_ITS_END = 500
"""How many more there is room for when it has ended, whatever it told before."""


def append(connection: Connection, run_id: str, events: Iterable[Event], most: int = MOST_EVENTS) -> int:
    """Add those events that the graph lacks, up to `most` of the run; the same events again change nothing.

    Answers how many were added.
    """
    told = {event.n: event for event in events}
    there = set(connection.scalars(select(run_events.c.n).where(run_events.c.run_id == run_id)) if told else ())
    fresh = [event for n, event in told.items() if n not in there][: max(0, most - len(there))]
    if not fresh:
        return 0
    rows = [
        {**vars(event), "run_id": run_id, "kind": plain_text(event.kind), "data": plain(event.data, floats=True)}
        for event in fresh
    ]
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
