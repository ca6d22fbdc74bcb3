"""A task that runs out of money waits for more of it, and goes on once somebody allows it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from domain.decision import Decision, DecisionKind, Outcome
from domain.publication import Word
from domain.raising import SetDay
from domain.task import QuestionKind, TaskState
from store.caps import day_budget
from store.ledger import Ask, Held, admit
from store.receipts import receipts_of
from tests.store.spending import CENT, sums
from tests.workflows.stage import Plan, Stage
from tests.workflows.world import REFUSED
from tests.workflows.world import Held as HeldRun

pytestmark = pytest.mark.asyncio(loop_scope="session")


def ask(plan: Plan, run: str, cents: int, until: datetime) -> Ask:
    return Ask(
        f"{plan.owner}-request".rjust(32, "0"), plan.owner, plan.id, plan.task(), run, 1, 0, "", "openai.chat",
        cents * CENT, cents * CENT, "p1", datetime.now(UTC), until,
    )  # fmt: skip


async def test_a_task_without_money_is_paused_and_goes_on_when_its_budget_is_raised(stage: Stage) -> None:
    plan = stage.plan(budget="2.00 USD")
    plan.tell("author", REFUSED)
    await plan.begin()
    asked = await plan.until(TaskState.PAUSED)
    assert asked.question is not None
    assert asked.question.kind is QuestionKind.OUT_OF_BUDGET

    small = Decision(DecisionKind.APPROVE, plan.id, 1, asked.question.id, budget_nano_usd=300 * CENT)
    refused = await stage.temporal.decide(small, plan.owner)
    assert (refused.outcome, "--plan-budget" in refused.message) == (Outcome.REFUSED, True)
    assert plan.facts().state is TaskState.PAUSED

    await plan.handle.signal("approve", Word(1, asked.question.id, "", "ada", 300 * CENT, 400 * CENT))
    await plan.until_over()
    assert plan.facts().budget_nano_usd == 300 * CENT
    assert plan.started()["author-2"] == 1
    assert [receipt.facts for receipt in plan.receipts("plan", "raised")] == [{"budget_nano_usd": 400 * CENT}]


async def test_an_owners_day_is_set_whether_their_heart_beats_or_not(stage: Stage) -> None:
    plan = stage.plan()
    order = SetDay(plan.owner, 50 * CENT, "Europe/Berlin", "ada")
    assert (await stage.temporal.set_day(order)).outcome is Outcome.DONE
    assert (await stage.temporal.set_day(order)).outcome is Outcome.ALREADY
    with stage.store.read() as connection:
        assert day_budget(connection, plan.owner) == (50 * CENT, "Europe/Berlin")
        (receipt,) = receipts_of(connection, f"owner:{plan.owner}")
    assert (receipt.event, receipt.cause) == ("budget", "budget by ada")

    held = HeldRun()
    plan.tell("author", held)
    await plan.begin()
    await plan.until_started()
    assert (await stage.temporal.set_day(SetDay(plan.owner, zone="UTC"))).message == "0.50 USD a day, in UTC"
    assert (await stage.temporal.set_day(SetDay(plan.owner, zone="Nowhere/Land"))).outcome is Outcome.REFUSED
    held.release()
    await plan.until_over()


async def test_the_sweep_lets_what_no_relay_answers_for_count_as_spent(stage: Stage) -> None:
    plan, held = stage.plan(), HeldRun()
    plan.tell("author", held)
    await plan.begin()
    await plan.until_started()
    with stage.store.write() as connection:
        (answer,) = admit(connection, [ask(plan, plan.run(), 7, datetime.now(UTC) - timedelta(minutes=5))])
    assert isinstance(answer, Held)
    assert sums(stage.store, f"plan:{plan.id}") == (7, 0)

    await stage.client.execute_workflow("SweepWorkflow", id=f"sweep-{plan.id}", task_queue="watchbill")

    assert sums(stage.store, f"plan:{plan.id}") == (0, 7)
    held.release()
    await plan.until_over()
