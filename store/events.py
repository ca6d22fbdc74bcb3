"""What a run's supervisor and hook wrote, copied into the graph: a story to read.

It is no fact to decide from, since an agent can add to it; that something was refused only has a person asked.
"""

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


_SHOWN = 500
"""Characters of a refusal that are told: an agent could have written it."""


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


def last_refusal(connection: Connection, run_id: str) -> str:
    """The last use of a tool that the policy's hook refused the run, and why; empty where it refused none."""
    query = (
        select(run_events.c.data)
        .where(run_events.c.run_id == run_id, run_events.c.kind == "refused")
        .order_by(run_events.c.n.desc())
        .limit(1)
    )
    data = connection.scalar(query)
    if data is None:
        return ""
    return " ".join(f"{data.get('tool', 'a tool')} was refused: {data.get('why', '')}".split())[:_SHOWN]


def events_of(connection: Connection, run_id: str, after: int = -1, limit: int = 1000) -> tuple[Event, ...]:
    """The run's events with an `n` above `after`, in order; at most `limit`."""
    query = (
        select(run_events.c.n, run_events.c.at, run_events.c.kind, run_events.c.data)
        .where(run_events.c.run_id == run_id, run_events.c.n > after)
        .order_by(run_events.c.n)
        .limit(limit)
    )
    return tuple(Event(row.n, row.at, row.kind, row.data) for row in connection.execute(query))
