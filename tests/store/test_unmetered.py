"""A run that is unmetered says so in its row, gets no money, and is in no sum as if it had cost nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, select, update

from domain.metering import Metering
from domain.run import EvidenceKind
from domain.told import ToldUsage
from store.audit import audit
from store.costs import Money, plan_costs
from store.database import Store
from store.evidence import Observation, record
from store.ledger import Void, settle
from store.moves import move
from store.tables import artifacts, ceilings, runs
from store.told import usage_told
from store.views import metering_of, plan_view
from tests.store.spending import AT, CENT, Spender, asked, spent


@pytest.fixture
def ada(store: Store) -> Spender:
    """The run of the first task is unmetered, that of the second is not."""
    spender = Spender(plan_cents=None, task_cents=(None, None))
    spender.begin(store)
    spawned(store, spender, 1, metering=Metering.UNMETERED)
    spawned(store, spender, 2, metering=Metering.METERED, cap_nano_usd=0)
    return spender


def spawned(store: Store, spender: Spender, ordinal: int, **facts: Any) -> None:
    said = {"confinement": "networked", **facts}
    spender.go(store, spender.wish("run", spender.run(ordinal), "spawn", said))


def test_it_gets_no_money_whatever_it_shows(store: Store, ada: Spender) -> None:
    (refused,) = asked(store, ada.ask(1))
    assert refused == Void(f"run {ada.run()} is unmetered: it is on a login of its own, and gets no money here")
    (held,) = asked(store, ada.ask(1, ordinal=2))
    assert held.nano_usd == CENT


def test_views_say_it_of_the_task_and_of_the_plan(store: Store, ada: Spender) -> None:
    with store.read() as connection:
        assert metering_of(connection, plan_id=ada.plan, task_id=ada.task(1)) == "unmetered"
        assert metering_of(connection, plan_id=ada.plan, task_id=ada.task(2)) == "metered"
        assert metering_of(connection, plan_id=ada.plan) == "partly unmetered"


def test_a_run_that_has_not_begun_and_what_is_no_agents_says_nothing(store: Store) -> None:
    spender = Spender(task_cents=(None,))
    spender.begin(store)
    check = {"plan_id": spender.plan, "task_id": spender.task(), "role": "check", "number": 1, "runtime": "check"}
    begun = {**check, "epoch": 2, "confinement": ""}
    spender.go(store, spender.wish("run", f"{spender.task()}-check-1", "start", begun))
    spender.go(store, spender.wish("run", f"{spender.task()}-check-1", "spawn", {"confinement": "confined"}))
    with store.write() as connection:
        connection.execute(update(runs).where(runs.c.id == spender.run()).values(confinement=""))
    with store.read() as connection:
        assert metering_of(connection, plan_id=spender.plan) == ""


def test_what_it_cost_is_never_said_to_be_nothing(store: Store, ada: Spender) -> None:
    with store.write() as connection:
        connection.execute(update(runs).values(started_at=AT.isoformat(timespec="microseconds")))
    with store.read() as connection:
        found = plan_costs(connection, ada.plan, AT)
        tomorrow = plan_costs(connection, ada.plan, AT + timedelta(days=1))
    assert found is not None
    assert tomorrow is not None
    assert found.money == Money(0, 0, None, 1)
    assert found.money.known is None
    assert [(task.money.unmetered_runs, task.money.known) for task in found.tasks] == [(1, None), (0, 0)]
    assert [[run.metering for run in task.runs] for task in found.tasks] == [["unmetered"], []]
    assert (found.day_money.unmetered_runs, tomorrow.day_money.unmetered_runs) == (1, 0)
    assert [(role.role, role.spent, role.unmetered_runs) for role in found.roles] == [("author", None, 1)]
    assert [(model.spent, model.unmetered_runs) for model in found.models] == [(None, 1)]


def test_what_was_counted_beside_it_is_told(store: Store, ada: Spender) -> None:
    (ask,) = (ada.ask(3, ordinal=2),)
    asked(store, ask)
    with store.write() as connection:
        settle(connection, [spent(ask.id, 2)])
    with store.read() as connection:
        found = plan_costs(connection, ada.plan, AT)
    assert found is not None
    assert (found.money.known, found.money.unmetered_runs) == (2 * CENT, 1)
    assert [(role.role, role.spent, role.calls, role.unmetered_runs) for role in found.roles] == [
        ("author", 2 * CENT, 1, 1)
    ]


def test_the_audit_knows_of_it_and_names_money_that_it_cannot_have_had(store: Store, ada: Spender) -> None:
    (ask,) = (ada.ask(1, id="a" * 32, ordinal=2),)
    asked(store, ask)
    with store.read() as connection:
        assert audit(connection) == ()
    engine = create_engine(store.url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(update(runs).where(runs.c.id == ada.run(2)).values(metering=Metering.UNMETERED))
    with store.read() as connection:
        said = [finding.message for finding in audit(connection)]
    assert said == [
        f"metering of run {ada.run(2)} is 'unmetered', but its receipts say 'metered'",
        f"reservation {'a' * 32} is of run {ada.run(2)}, which is unmetered",
    ]


def test_the_plans_view_says_nothing_of_money_that_it_does_not_know(store: Store) -> None:
    spender = Spender(plan_cents=None, task_cents=(None,))
    spender.begin(store)
    revision = {"plan_id": spender.plan, "number": 1, "digest": "d", "text": DOCUMENT}
    spender.go(store, spender.wish("revision", f"{spender.plan}-r1", "propose", revision))
    with store.write() as connection:
        connection.execute(update(runs).values(confinement=""))
    with store.read() as connection:
        before = plan_view(connection, spender.plan)
    spawned(store, spender, 1, metering=Metering.UNMETERED)
    with store.read() as connection:
        after = plan_view(connection, spender.plan)
    assert before is not None
    assert after is not None
    # Before anything has begun, it is what the plan says that counts.
    assert (before.metering, before.spent_nano_usd) == ("unmetered", 0)
    assert (after.metering, after.spent_nano_usd) == ("unmetered", None)


DOCUMENT = """\
---
slug: cold-start
repository: acme/shop
runtime: claude
network: open
metering: off
---
# Tasks
- [ ] one
"""


def told(store: Store, spender: Spender, ordinal: int, epoch: int = 1) -> str:
    """What its CLI says that a task's run used, as evidence; the digest of it."""
    said = ToldUsage("claude", {"input": 3000, "output": 150}, 15_000_000)
    heard = Observation(
        plan_id=spender.plan, task_id=spender.task(ordinal), run_id=spender.run(ordinal), epoch=epoch,
        kind=EvidenceKind.USAGE, content=said.content, command="claude", seen_by="worker-1",
    )  # fmt: skip
    with store.write() as connection:
        wish = record(connection, heard, "claude says so of itself, unverified", AT)
        assert not move(connection, wish)[0].refused
    return str(wish.facts["digest"])


def test_what_its_cli_says_is_shown_as_that_and_is_in_no_sum(store: Store, ada: Spender) -> None:
    with store.read() as connection:
        before = plan_costs(connection, ada.plan, AT)
        sums = connection.execute(select(ceilings)).all()
    told(store, ada, 1)
    with store.read() as connection:
        after = plan_costs(connection, ada.plan, AT)
        assert audit(connection) == ()
        assert connection.execute(select(ceilings)).all() == sums
    assert before is not None
    assert after is not None
    (run,) = after.tasks[0].runs
    assert run.told == ToldUsage("claude", {"input": 3000, "output": 150}, 15_000_000)
    assert run.told.standing == "unverified"
    (without,) = before.tasks[0].runs
    assert replace(run, told=None) == without
    assert replace(after, tasks=()) == replace(before, tasks=())


def test_what_is_said_of_a_run_that_was_counted_or_of_another_epoch_is_not_shown(store: Store, ada: Spender) -> None:
    told(store, ada, 2)
    told(store, ada, 1, epoch=7)
    with store.read() as connection:
        assert usage_told(connection, [ada.plan]) == {}


@pytest.mark.parametrize("other", [b"[]", b'{"by":"claude","nano_usd":1,"tokens":{"input":1}}'])
def test_what_is_no_longer_what_was_heard_is_not_shown_and_the_audit_says_so(
    store: Store, ada: Spender, other: bytes
) -> None:
    name = told(store, ada, 1)
    with store.write() as connection:
        connection.execute(update(artifacts).where(artifacts.c.digest == name).values(content=other))
    with store.read() as connection:
        assert usage_told(connection, [ada.plan]) == {}
        assert [finding.column for finding in audit(connection)] == ["digest"]
