"""The inbox: every verified delivery is a row before it is anything else, and one row however often it comes.

A delivery is a hint to look again. It is handled once somebody has looked after it came.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, exists, func, select, update

from domain.task import TaskState
from store.database import insert_into
from store.plain import plain_text
from store.tables import inbox, plans, tasks


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A hint from outside. `delivery` is the sender's id of it; `task_id` is None while no task is known."""

    delivery: str
    source: str
    event: str
    payload: str
    received_at: datetime
    action: str = ""
    repository: str = ""
    branch: str = ""
    pull_number: int | None = None
    task_id: str | None = None


def receive(connection: Connection, delivery: Delivery) -> bool:
    """Keep the delivery; False when it has come before."""
    row = {**asdict(delivery), "payload": plain_text(delivery.payload)}
    kept = insert_into(connection, inbox).on_conflict_do_nothing().returning(inbox.c.delivery)
    return connection.execute(kept, row).one_or_none() is not None


def unhandled(connection: Connection, limit: int = 100) -> tuple[Delivery, ...]:
    """Deliveries that nobody has acted on yet, oldest first."""
    query = (
        select(*(inbox.c[name] for name in Delivery.__dataclass_fields__))
        .where(inbox.c.handled_at.is_(None))
        .order_by(inbox.c.received_at, inbox.c.delivery)
        .limit(limit)
    )
    return tuple(Delivery(**row) for row in connection.execute(query).mappings())


def hinted_tasks(connection: Connection, owner: str, *, about_pulls: bool = False) -> set[str]:
    """The owner's tasks about which a hint waits; with `about_pulls` a mere push is none."""
    return set(connection.scalars(select(tasks.c.id).where(tasks.c.owner == owner, _hinted(about_pulls))))


def owners_with_hints(connection: Connection) -> set[str]:
    """The owners of tasks about whose pull requests a hint waits."""
    return set(connection.scalars(select(tasks.c.owner).where(_hinted(about_pulls=True))))


def mark_handled(connection: Connection, task_id: str, *, before: datetime, at: datetime) -> int:
    """Settle the task's hints that came up to `before`, when the look that answers them began; how many."""
    query = (
        update(inbox)
        .where(inbox.c.task_id == task_id, inbox.c.handled_at.is_(None), inbox.c.received_at <= before)
        .values(handled_at=at)
    )
    return connection.execute(query).rowcount


def settle_merged(connection: Connection, owner: str, at: datetime) -> None:
    """Settle every hint about the owner's merged tasks: a merge is for ever, and nothing is left to look at."""
    merged = select(tasks.c.id).where(tasks.c.owner == owner, tasks.c.state == TaskState.MERGED)
    query = update(inbox).where(inbox.c.handled_at.is_(None), inbox.c.task_id.in_(merged))
    connection.execute(query.values(handled_at=at))


def settle(connection: Connection, delivery: str, at: datetime) -> bool:
    """Settle one delivery that concerns no task of ours; False when it is settled already."""
    query = update(inbox).where(inbox.c.delivery == delivery, inbox.c.handled_at.is_(None)).values(handled_at=at)
    return connection.execute(query).rowcount == 1


def owner_of(connection: Connection, delivery: Delivery) -> str | None:
    """Whose task a delivery is about; None when it is about none that is known yet."""
    query = (
        select(tasks.c.owner)
        .join(plans, plans.c.id == tasks.c.plan_id)
        .where(tasks.c.id == delivery.task_id, func.lower(plans.c.repository) == delivery.repository.lower())
    )
    return connection.scalar(query)


def _hinted(about_pulls: bool) -> ColumnElement[bool]:
    """A hint waits for the task in question. A branch of its name in another repository is not its own."""
    waiting = select(inbox.c.delivery).where(
        inbox.c.task_id == tasks.c.id,
        inbox.c.handled_at.is_(None),
        plans.c.id == tasks.c.plan_id,
        func.lower(inbox.c.repository) == func.lower(plans.c.repository),
    )
    return exists(waiting.where(inbox.c.pull_number.is_not(None)) if about_pulls else waiting)
