"""A task that runs out of money waits for more of it, and goes on once somebody allows it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

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
from tests.workflows.world import REFUSED, Ends, Left, not_there
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


async def test_what_was_done_for_the_money_is_shown_as_a_draft_that_becomes_the_pull_request(stage: Stage) -> None:
    plan = stage.plan(budget="2.00 USD")
    plan.tell("author", REFUSED, REFUSED)
    await plan.begin()
    asked = await plan.until(TaskState.PAUSED)
    draft = stage.forge.pull_of(plan.task())
    assert draft.draft
    assert (asked.pull_number, asked.pull_url) == (draft.number, draft.url)
    assert asked.pushed_sha == draft.head_sha == stage.host.left[plan.run()].head_sha
    assert asked.question is not None
    assert f"is kept as {draft.head_sha[:12]}, and shown in draft {draft.url}" in asked.question.text

    await plan.signal("resume", 1, asked.question.id)
    await stage.until(lambda: stage.host.started[plan.run(2)] == 1)
    again = await plan.until(TaskState.PAUSED)
    assert again.pushed_sha == stage.host.left[plan.run(2)].head_sha
    assert again.question is not None
    await plan.signal("resume", 1, again.question.id)
    await plan.until_over()
    task = plan.facts()
    assert (task.state, task.proof, task.pull_number) == (TaskState.MERGED, "proven", draft.number)
    assert not stage.forge.pull_of(task.id).draft
    assert (stage.forge.opened[task.id], stage.host.pushed[task.id]) == (1, 3)


@pytest.mark.parametrize(
    ("step", "outcome", "words"),
    [
        ("collect", Left(strays=("secrets.txt",)), "and pushed nowhere"),
        ("collect", Left(faults=("a key is in it",)), "and pushed nowhere"),
        ("collect", Left(changed=0), "A model call was refused for want of money"),
        ("open", "no_drafts", "and pushed nowhere"),
        ("open", not_there("the repository"), "and pushed nowhere"),
        ("push", not_there("the repository"), "and pushed nowhere"),
    ],
)
async def test_money_is_asked_for_also_when_no_draft_can_be_shown(
    stage: Stage, step: str, outcome: Any, words: str
) -> None:
    plan = stage.plan(budget="2.00 USD")
    plan.tell("author", REFUSED)
    plan.tell(step, outcome)
    await plan.begin()
    asked = await plan.until(TaskState.PAUSED)
    assert asked.question is not None
    assert asked.question.kind is QuestionKind.OUT_OF_BUDGET
    assert words in asked.question.text
    assert not stage.forge.opened[plan.task()]
    if step == "collect":
        assert not stage.host.pushed[plan.task()]


async def test_a_draft_that_a_person_closed_ends_its_task(stage: Stage) -> None:
    plan = stage.plan(budget="2.00 USD")
    plan.tell("author", REFUSED)
    await plan.begin()
    await plan.until(TaskState.PAUSED)
    stage.forge.close(plan.task())
    await plan.hint()
    await plan.until(TaskState.CLOSED)


async def test_unfinished_work_is_not_put_where_it_could_be_merged(stage: Stage) -> None:
    plan = stage.plan(budget="2.00 USD", merge="by-hand")
    plan.tell("author", Ends(), REFUSED)
    await plan.begin()
    ready = await plan.until(TaskState.IN_REVIEW)
    stage.forge.change(plan.task(), mergeable=False)
    await plan.hint()
    asked = await plan.until(TaskState.PAUSED)
    assert asked.question is not None
    assert "and pushed nowhere" in asked.question.text
    pull = stage.forge.pull_of(plan.task())
    assert (pull.draft, pull.head_sha) == (False, ready.head_sha)


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
