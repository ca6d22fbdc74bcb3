"""A person lets a task, its plan or their day cost more: the ceiling follows in the same transaction."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from domain.decision import Decision, DecisionKind, Outcome, Reply
from domain.ledger import DAY_NANO_USD, CeilingKind
from domain.raising import SetDay
from store.audit import audit
from store.budgets import set_day
from store.costs import day_costs, plan_costs
from store.database import Store
from store.decisions import decide
from store.ledger import Held, Short, settle
from store.receipts import receipts_of
from store.tables import ceilings
from store.tasks import load_task
from tests.store.spending import AT, CENT, LEASE, Spender, asked, nano, spent

LATER = AT + timedelta(hours=1)


@pytest.fixture
def ada(store: Store) -> Spender:
    spender = Spender()
    spender.begin(store)
    return spender


def run_out(store: Store, spender: Spender, cents: int = 100) -> str:
    """Spend it all; the task is paused for want of money. The question's id."""
    ask = spender.ask(cents)
    asked(store, ask)
    with store.write() as connection:
        settle(connection, [spent(ask.id, cents)])
    task, question = spender.task(), f"{spender.task()}-q"
    asking = {"plan_id": spender.plan, "task_id": task, "kind": "out_of_budget", "text": "?", "resume_at": "working"}
    spender.go(store, spender.wish("run", spender.run(), "refuse"))
    spender.go(
        store,
        spender.wish("task", task, "pause", {"question_id": question}),
        spender.wish("question", question, "ask", asking),
    )
    return question


def approve(store: Store, spender: Spender, question: str = "", **budgets: float) -> Reply:
    raised = {f"{name}_nano_usd": nano(cents) or 0 for name, cents in budgets.items()}
    decision = Decision(DecisionKind.APPROVE, spender.plan, 1, question, by="ada@here", **raised)
    with store.write() as connection:
        return decide(connection, decision, LATER, 1)


def say_day(store: Store, owner: str = "ada", at: Any = LATER, **said: Any) -> Reply:
    with store.write() as connection:
        return set_day(connection, SetDay(owner, by="ada@here", **said), at, 1)


def state(store: Store, spender: Spender) -> tuple[str, int | None]:
    with store.read() as connection:
        task = load_task(connection, spender.task(), AT)
    return task.state, task.budget_nano_usd


def cap(store: Store, id: str) -> int | None:
    with store.read() as connection:
        return connection.scalar(select(ceilings.c.cap).where(ceilings.c.id == id))


def test_a_task_that_waits_for_money_goes_on_with_more_of_it(store: Store, ada: Spender) -> None:
    question = run_out(store, ada)

    reply = approve(store, ada, question, budget=300)

    assert (reply.outcome, reply.state) == (Outcome.DONE, "working")
    assert state(store, ada) == ("working", 300 * CENT)
    assert cap(store, f"task:{ada.task()}") == 300 * CENT
    ada.begin_run(store, number=2)
    ask = ada.ask(150, run=ada.run(number=2), epoch=2)
    assert asked(store, ask) == [Held(ask.id, 150 * CENT)]
    with store.read() as connection:
        assert audit(connection) == ()
        assert receipts_of(connection, ada.plan)[-3].facts["budget_nano_usd"] == 300 * CENT


def test_a_run_that_ended_gets_nothing_of_what_was_raised(store: Store, ada: Spender) -> None:
    question = run_out(store, ada)
    approve(store, ada, question, budget=300)

    (answer,) = asked(store, ada.ask(1))
    assert f"run {ada.run()} is refused" in answer.why


def test_a_raise_said_twice_is_one(store: Store, ada: Spender) -> None:
    question = run_out(store, ada)
    approve(store, ada, question, budget=300)

    assert approve(store, ada, question, budget=300).outcome is Outcome.ALREADY
    assert state(store, ada) == ("working", 300 * CENT)


def test_a_raise_before_the_money_runs_out_changes_nothing_else(store: Store, ada: Spender) -> None:
    asked(store, ada.ask(90))

    assert approve(store, ada, "a" * 40, budget=300).outcome is Outcome.DONE

    assert state(store, ada) == ("working", 300 * CENT)
    assert isinstance(asked(store, ada.ask(150))[0], Held)


def test_a_raise_answers_no_question_about_anything_else(store: Store, ada: Spender) -> None:
    task, question = ada.task(), f"{ada.task()}-q"
    asking = {"plan_id": ada.plan, "task_id": task, "kind": "out_of_scope", "text": "?", "resume_at": "working"}
    ada.go(
        store,
        ada.wish("task", task, "pause", {"question_id": question}),
        ada.wish("question", question, "ask", asking),
    )

    assert approve(store, ada, question, budget=300).outcome is Outcome.DONE

    assert state(store, ada) == ("paused", 300 * CENT)


def test_what_is_short_is_said_and_nothing_is_begun_in_vain(store: Store) -> None:
    ada = Spender(plan_cents=100, task_cents=(100,))
    ada.begin(store)
    question = run_out(store, ada)

    too_much = approve(store, ada, question, budget=300)
    assert (too_much.outcome, "--plan-budget" in too_much.message) == (Outcome.REFUSED, True)
    too_little = approve(store, ada, question, plan_budget=200)
    assert too_little.message.startswith("what is short is the task's budget: 1.00 USD of 1.00 USD is spent or held")
    assert state(store, ada) == ("paused", 100 * CENT)

    assert approve(store, ada, question, budget=150, plan_budget=200).outcome is Outcome.DONE
    assert state(store, ada) == ("working", 150 * CENT)
    assert cap(store, f"plan:{ada.plan}") == 200 * CENT
    with store.read() as connection:
        assert audit(connection) == ()


def test_where_the_plan_or_the_day_is_short_the_task_alone_is_not_raised(store: Store) -> None:
    ada = Spender(plan_cents=180, task_cents=(100, 80))
    ada.begin(store)
    question = run_out(store, ada)
    asked(store, ada.ask(80, ordinal=2))
    assert "what is short is the plan's budget" in approve(store, ada, question, budget=150).message

    say_day(store, nano_usd=150 * CENT)
    assert "what is short is the day's budget" in approve(store, ada, question, budget=150, plan_budget=300).message
    say_day(store, nano_usd=400 * CENT)
    assert approve(store, ada, question, budget=150, plan_budget=300).outcome is Outcome.DONE


@pytest.mark.parametrize(
    ("budgets", "why"),
    [
        ({"budget": 50}, "the task's budget is 1.00 USD; it can be raised, to more than that"),
        ({"plan_budget": 50}, "the plan's budget is 10.00 USD; it can be raised, to more than that"),
        ({"budget": 1500}, "15.00 USD is more than the plan's 10.00 USD"),
    ],
)
def test_what_is_no_raise_is_refused_and_recorded(
    store: Store, ada: Spender, budgets: dict[str, float], why: str
) -> None:
    reply = approve(store, ada, **budgets)

    assert reply.outcome is Outcome.REFUSED
    assert why in reply.message
    with store.read() as connection:
        assert why in receipts_of(connection, ada.plan)[-1].refused


def test_what_has_no_budget_or_has_ended_cannot_be_raised(store: Store, ada: Spender) -> None:
    free = Spender("free", plan_cents=None, task_cents=(None,))
    free.begin(store)
    assert "has no budget that could be raised" in approve(store, free, budget=500).message
    ada.go(store, ada.wish("task", ada.task(), "cancel"))
    assert "it gets no money any more" in approve(store, ada, budget=500).message


def test_an_owner_who_said_nothing_has_25_dollars_a_day_in_utc(store: Store, ada: Spender) -> None:
    with store.read() as connection:
        day, zone, money = day_costs(connection, "ada", AT)
    assert (day, zone, money.left) == ("2026-03-01", "UTC", DAY_NANO_USD)


def test_what_an_owner_says_holds_from_that_day_on(store: Store, ada: Spender) -> None:
    asked(store, ada.ask(1), ada.ask(1, at=AT - timedelta(days=1)))

    assert say_day(store, nano_usd=50 * CENT).message == "0.50 USD a day, in UTC"

    assert cap(store, "day:ada:2026-02-28") == DAY_NANO_USD
    assert cap(store, "day:ada:2026-03-01") == 50 * CENT
    assert asked(store, ada.ask(60)) == [Short(CeilingKind.DAY, "ada:2026-03-01", 50 * CENT, 49 * CENT)]
    assert isinstance(asked(store, ada.ask(40, at=AT + timedelta(days=1), lease_until=AT + 300 * LEASE))[0], Held)
    assert cap(store, "day:ada:2026-03-02") == 50 * CENT
    with store.read() as connection:
        assert audit(connection) == ()


def test_what_an_owner_says_again_is_said_already(store: Store) -> None:
    first = say_day(store, nano_usd=50 * CENT, zone="Europe/Berlin")
    assert say_day(store, nano_usd=50 * CENT, zone="Europe/Berlin") == first
    assert say_day(store, zone="Europe/Berlin", at=LATER + LEASE).outcome is Outcome.ALREADY
    assert say_day(store, zone="UTC", at=LATER + LEASE).message == "0.50 USD a day, in UTC"
    with store.read() as connection:
        assert [receipt.event for receipt in receipts_of(connection, "owner:ada")] == ["budget", "budget"]
        assert audit(connection) == ()


def test_a_zone_that_nobody_knows_is_refused(store: Store) -> None:
    for zone in ("Mars/Olympus", "../etc/passwd", "Europe/Berlin\0"):
        reply = say_day(store, zone=zone)
        assert (reply.outcome, "is no time zone" in reply.message) == (Outcome.REFUSED, True)


def test_costs_are_the_ledgers(store: Store, ada: Spender) -> None:
    calls = [ada.ask(10), ada.ask(20), ada.ask(5), ada.ask(7, ordinal=2)]
    asked(store, *calls)
    with store.write() as connection:
        settle(
            connection, [spent(calls[0].id, 6, request="req_1", input=100, output=7), spent(calls[1].id, None, input=3)]
        )

    with store.read() as connection:
        costs = plan_costs(connection, ada.plan, AT)

    assert costs is not None
    assert (costs.money.spent, costs.money.held, costs.money.left) == (26 * CENT, 12 * CENT, 962 * CENT)
    assert [(task.money.spent, task.money.held) for task in costs.tasks] == [(26 * CENT, 5 * CENT), (0, 7 * CENT)]
    (run,) = costs.tasks[0].runs
    (model,) = run.models
    assert (model.calls, model.unmeasured, model.spent) == (2, 1, 26 * CENT)
    assert {(one.id, one.spent) for one in model.requests} == {("req_1", 6 * CENT), ("", 20 * CENT)}
    assert (model.tokens["input"], model.tokens["output"]) == (103, 7)
    assert (costs.day, costs.day_money.spent, costs.day_money.held) == ("2026-03-01", 26 * CENT, 12 * CENT)
