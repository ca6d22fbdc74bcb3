"""What is read of a plan takes as many statements whatever its size, and whatever else there is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event, func, select

from domain.identity import run_id
from domain.rules import NOTHING_REFUSED
from starter.reporting.loading import load_morning_report, load_plan_report
from store.briefing import facts_of
from store.costs import plan_costs
from store.database import Store
from store.projections import projection_of
from store.tables import runs, tasks
from store.tasks import load_run, load_task
from store.views import plan_view, plans_in_list
from tests.store.crowd import AT, Crowd

LATER = AT + timedelta(days=1)

READ: dict[str, Callable[[Connection, Crowd], Any]] = {
    "a brief": lambda connection, crowd: facts_of(
        connection,
        load_run(connection, run_id(crowd.task(1), "author", 1)),
        load_task(connection, crowd.task(1), LATER),
        note="",
        policy=NOTHING_REFUSED,
    ),
    "status": lambda connection, crowd: plan_view(connection, crowd.plan),
    "the list of plans": lambda connection, crowd: plans_in_list(connection, crowd.owner),
    "show": lambda connection, crowd: projection_of(connection, crowd.plan),
    "costs": lambda connection, crowd: plan_costs(connection, crowd.plan, LATER),
    "report": lambda connection, crowd: load_plan_report(connection, crowd.plan, LATER),
    "the morning report": lambda connection, crowd: load_morning_report(connection, crowd.owner, LATER, AT),
}


def statements(store: Store, crowd: Crowd) -> dict[str, int]:
    """How many statements each way of reading takes."""
    found = {}
    for name, read in READ.items():
        seen: list[str] = []
        with store.read() as connection:
            event.listen(connection, "before_cursor_execute", lambda *said, seen=seen: seen.append(said[2]))
            assert read(connection, crowd)
        found[name] = len(seen)
    return found


def test_a_larger_plan_and_more_plans_take_no_more_statements(store: Store) -> None:
    small = Crowd("small", tasks=3, rounds=1).make(store)
    alone = statements(store, small)
    large = Crowd("large", tasks=12, rounds=3, reviewed=True).make(store)
    for number in range(5):
        Crowd(f"other-{number}", tasks=4, rounds=1).make(store)
        Crowd(f"theirs-{number}", "bob", tasks=4, rounds=1).make(store)
    assert statements(store, small) == alone
    # Where there are reviewers, a brief asks what they said of its task.
    assert statements(store, large) == {**alone, "a brief": alone["a brief"] + 1}
    assert max(alone.values()) <= 20


@pytest.mark.slow
def test_a_plan_of_200_tasks_and_2000_runs_takes_as_many_as_one_of_three_tasks(sqlite_store: Store) -> None:
    small = Crowd("small", tasks=3, rounds=1).make(sqlite_store)
    alone = statements(sqlite_store, small)
    whole = Crowd("whole", tasks=200, rounds=5).make(sqlite_store)
    with sqlite_store.read() as connection:
        mine = [
            connection.scalar(select(func.count()).select_from(table).where(table.c.plan_id == whole.plan))
            for table in (tasks, runs)
        ]
        report = load_plan_report(connection, whole.plan, LATER)
    assert mine == [200, 2000]
    assert statements(sqlite_store, whole) == alone
    assert report is not None
    assert sum(len(task.attempts) for task in report.tasks) == 2000
    assert report.costs.whole.spent_nano_usd == report.spent_nano_usd
    assert report.spent_nano_usd
