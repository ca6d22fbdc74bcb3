"""Workers and incarnations: which processes serve this graph, and which Temporal they belong to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select, update

from store.database import insert_into
from store.tables import incarnations, workers


@dataclass(frozen=True)
class Worker:
    """A worker process. `boot` is its host's boot id: a pid of an earlier boot means nothing any more."""

    id: str
    host: str
    boot: str
    pid: int
    started_at: datetime


def worker_started(connection: Connection, worker: Worker) -> None:
    """Note that the worker runs; a repeat changes nothing."""
    connection.execute(insert_into(connection, workers).on_conflict_do_nothing(), asdict(worker))


def worker_ended(connection: Connection, worker_id: str, at: datetime, *, crashed: bool) -> bool:
    """Note once how the worker ended; False when that is known already."""
    query = (
        update(workers)
        .where(workers.c.id == worker_id, workers.c.ended_at.is_(None))
        .values(ended_at=at, crashed=crashed)
    )
    return connection.execute(query).rowcount == 1


def workers_not_ended(connection: Connection, host: str) -> tuple[Worker, ...]:
    """The host's workers of which no end is known, oldest first: they run, or crashed."""
    query = (
        select(*(workers.c[name] for name in Worker.__dataclass_fields__))
        .where(workers.c.host == host, workers.c.ended_at.is_(None))
        .order_by(workers.c.started_at, workers.c.id)
    )
    return tuple(Worker(**row) for row in connection.execute(query).mappings())


def incarnation_of(connection: Connection, temporal_id: str, at: datetime) -> int:
    """The number of this Temporal; one that was not seen before becomes the newest.

    From then on moves of any earlier one are Superseded.
    """
    known = select(incarnations.c.number).where(incarnations.c.temporal_id == temporal_id)
    number = connection.scalar(known)
    if number is not None:
        return int(number)
    newest = connection.scalar(select(func.max(incarnations.c.number))) or 0
    fresh = {"number": newest + 1, "temporal_id": temporal_id, "at": at}
    connection.execute(insert_into(connection, incarnations).on_conflict_do_nothing(), fresh)
    return incarnation_of(connection, temporal_id, at)


@dataclass(frozen=True)
class Incarnation:
    """One Temporal that this graph has served, by the id of its namespace."""

    number: int
    temporal_id: str


def newest_incarnation(connection: Connection) -> Incarnation | None:
    """The Temporal that this graph serves; None before the first."""
    query = select(incarnations.c.number, incarnations.c.temporal_id).order_by(incarnations.c.number.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else Incarnation(row.number, row.temporal_id)
