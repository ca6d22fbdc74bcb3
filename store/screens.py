"""What was last to be seen of each run. It is no fact: it is replaced in place, has no receipt, and decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, case, select

from domain.run import LIVE, Role, RunFacts
from store.database import insert_into
from store.leases import load_lease
from store.plain import plain_text
from store.tables import runs, screens, tasks
from store.tasks import load_run


@dataclass(frozen=True)
class Seen:
    """A run, and what was to be seen of it at `at`; None and empty where nothing was yet.

    `lease_until` is how long the worker that looks after it may be silent, None where none does; `task_state` is
    that of its task.
    """

    run: RunFacts
    at: datetime | None = None
    text: str = ""
    lease_until: datetime | None = None
    task_state: str = ""


def put_screen(connection: Connection, run_id: str, text: str, at: datetime) -> None:
    """Keep what is to be seen of the run, in the place of what was seen before `at`. One statement."""
    insert = insert_into(connection, screens)
    fresh = {"at": insert.excluded.at, "text": insert.excluded.text}
    newer = screens.c.at <= insert.excluded.at
    replacing = insert.on_conflict_do_update(index_elements=[screens.c.run_id], set_=fresh, where=newer)
    connection.execute(replacing, {"run_id": run_id, "at": at, "text": plain_text(text)})


def last_seen(connection: Connection, task_id: str) -> Seen | None:
    """What is to be seen of a task: its live run, else its author's last; None where no run has begun."""
    order = (case((runs.c.state.in_(LIVE), 0), else_=1), case((runs.c.role == Role.AUTHOR, 0), else_=1))
    query = select(runs.c.id).where(runs.c.task_id == task_id).order_by(*order, runs.c.epoch.desc()).limit(1)
    run_id = connection.scalar(query)
    return None if run_id is None else seen_of(connection, run_id)


def seen_of(connection: Connection, run_id: str) -> Seen:
    """What is to be seen of this run. Raises NotFound for one that never began."""
    row = connection.execute(select(screens.c.at, screens.c.text).where(screens.c.run_id == run_id)).one_or_none()
    run, lease = load_run(connection, run_id), load_lease(connection, run_id)
    until = lease.lease_until if lease else None
    state = connection.scalar(select(tasks.c.state).where(tasks.c.id == run.task_id)) or ""
    at, text = (row.at, row.text) if row else (None, "")
    return Seen(run, at, text, until, state)
