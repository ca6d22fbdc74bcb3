"""Publishing, confirming and deciding: each case has its answer, however it arrives and however often."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError

from domain.decision import Decision, DecisionKind, Outcome, Reply
from domain.publication import PlanRef, Publish
from domain.task import TaskState
from starter.exits import CommandFailed
from tests.workflows.stage import Plan, Stage, document
from tests.workflows.world import Held
from workflows import surface

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_ten_publishers_and_five_confirmations_at_once_make_one_plan(stage: Stage) -> None:
    plan = stage.plan("First", "Second")
    published = await asyncio.gather(*(plan.publish() for _ in range(10)))
    assert [reply.outcome for reply in published].count(Outcome.DONE) == 1
    confirmed = await asyncio.gather(*(plan.confirm() for _ in range(5)))
    assert sorted(reply.outcome for reply in confirmed) == [Outcome.ALREADY] * 4 + [Outcome.DONE]
    await plan.until_over()
    assert len({reply.plan_id for reply in (*published, *confirmed)}) == 1
    for ordinal in (1, 2):
        assert stage.forge.opened[plan.task(ordinal)] == 1
        assert plan.started(ordinal) == {"author-1": 1, "check-1": 1}


async def test_another_text_replaces_a_proposal_and_never_what_was_confirmed(stage: Stage) -> None:
    plan = stage.plan("First")
    await plan.publish()
    other = document(plan.slug, "Something else")
    replaced = await plan.publish(other)
    assert replaced.outcome is Outcome.DONE
    stale = await plan.decide("confirm", names="0" * 64)
    assert stale.outcome is Outcome.REFUSED
    await plan.confirm()
    for after in (lambda: plan.until_started(role="author"), plan.until_over):
        refused = await plan.publish()
        assert refused.outcome is Outcome.REFUSED
        again = await plan.publish(other)
        assert again.outcome is Outcome.ALREADY
        if after is plan.until_over:
            await after()
    assert plan.facts().title == "Something else"


async def test_what_was_confirmed_answers_the_first_receipt_even_when_its_workflow_has_ended(stage: Stage) -> None:
    plan = stage.plan()
    await plan.publish()
    first = await plan.confirm()
    await plan.until_over()
    again = await plan.confirm()
    assert (again.outcome, again.seq) == (Outcome.ALREADY, first.seq)
    assert (await plan.publish()).outcome is Outcome.ALREADY
    await stage.until_quiet(plan)
    assert plan.started() == {"author-1": 1, "check-1": 1}


async def test_a_decision_has_the_same_effect_by_signal_and_by_update(stage: Stage) -> None:
    plan = stage.plan("First", "Second")
    for ordinal in (1, 2):
        plan.tell("author", Held(), ordinal=ordinal)
    await plan.begin()
    for ordinal in (1, 2):
        await plan.until_started(ordinal=ordinal)
    await plan.signal("pause", 1)
    await plan.decide("pause", 2)
    asked = [await plan.until(TaskState.PAUSED, ordinal) for ordinal in (1, 2)]
    await plan.signal("answer", 1, asked[0].question.id, "Go on.")
    await plan.decide("answer", 2, asked[1].question.id, "Go on.")
    await plan.until_over()
    assert plan.events(1) == plan.events(2)
    assert plan.facts(1).state is TaskState.MERGED


@pytest.mark.parametrize("kind", ["approve", "answer", "resume", "pause", "retry", "cancel", "archive", "withdraw"])
async def test_every_decision_that_cannot_be_carried_out_leaves_a_record(stage: Stage, kind: str) -> None:
    plan = stage.plan()
    await plan.publish()
    await plan.signal(kind, 99)
    await stage.until(lambda: bool(plan.receipts(event=kind)))
    refused = plan.receipts(event=kind)[0]
    assert refused.refused.startswith(f"plan {plan.slug} has no task 99 before it is confirmed")
    assert refused.cause == f"{kind} by {plan.owner}"
    again = await plan.decide(kind, 99)
    assert (again.outcome, again.seq) == (Outcome.REFUSED, refused.seq)
    await plan.decide("archive")
    await stage.until_quiet(plan)


async def test_a_decision_on_another_plan_is_refused_before_anything_is_written(stage: Stage) -> None:
    plan = stage.plan()
    await plan.publish()
    before = len((await plan.handle.fetch_history()).events)
    stranger = Decision(DecisionKind.PAUSE, "somebody-elses-plan", by=plan.owner)
    with pytest.raises(WorkflowUpdateFailedError):
        await plan.handle.execute_update("decide", stranger)
    nameless = Decision(DecisionKind.CONFIRM, plan.id)
    with pytest.raises(WorkflowUpdateFailedError):
        await plan.handle.execute_update("confirm", nameless)
    history = await plan.handle.fetch_history()
    told = [event for event in history.events if event.HasField("workflow_execution_update_accepted_event_attributes")]
    assert len(told) == 1
    assert len(plan.receipts()) == 2
    assert before <= len(history.events)
    await plan.decide("archive")


async def test_a_decision_on_a_plan_that_was_never_published_is_refused_in_words(stage: Stage) -> None:
    plan = stage.plan()
    reply = await plan.decide("pause")
    assert reply.outcome is Outcome.REFUSED
    assert reply.message == f"no plan {plan.id} has been published; first: watchbill submit"
    assert plan.view() is None


async def test_a_document_that_is_no_plan_is_refused_with_its_lines(stage: Stage) -> None:
    plan = stage.plan()
    with pytest.raises(CommandFailed, match="line 3"):
        await plan.publish(plan.text.replace("repository: acme/shop", "repository: nowhere"))
    with pytest.raises(CommandFailed, match="no document"):
        await plan.publish("  ")
    assert plan.view() is None


async def test_a_plan_is_seen_in_temporal_as_it_stands(stage: Stage) -> None:
    plan = await stage.plan(merge="by-hand").begin()
    await plan.until(TaskState.IN_REVIEW)
    await plan.signal("pause")
    await stage.until(lambda: plan.view().paused)
    seen = await stage.temporal.view(plan.id)
    while seen is None or not seen.paused:
        await asyncio.sleep(0.05)
        seen = await stage.temporal.view(plan.id)
    description = await plan.handle.describe()
    attributes = description.typed_search_attributes
    assert attributes.get(surface.OWNER) == plan.owner
    assert attributes.get(surface.PLAN) == plan.id
    assert attributes.get(surface.STATE) == "in_progress"
    assert attributes.get(surface.NEEDS_PERSON) is True
    details = await plan.handle.query("__temporal_workflow_metadata")
    assert "waits to be merged by hand" in str(details)
    await plan.decide("cancel")
    await plan.until_over()


async def test_cancelling_a_plan_cancels_every_task_that_has_not_ended(stage: Stage) -> None:
    plan = stage.plan("First", "Second {after=1}")
    plan.tell("author", Held())
    await plan.begin()
    await plan.until_started()
    await plan.signal("cancel")
    await plan.until_over()
    assert [plan.facts(ordinal).state for ordinal in (1, 2)] == [TaskState.CANCELLED] * 2
    assert plan.started(2) == {}
    await plan.decide("archive")
    await plan.until_over("archived")


async def test_a_workflow_that_ended_is_begun_anew_and_finds_nothing_to_do(stage: Stage) -> None:
    plan = await stage.plan().begin()
    await plan.until_over()
    receipts = len(plan.receipts())
    again = await stage.client.start_workflow(
        "PlanWorkflow", PlanRef(plan.id, plan.owner), id=plan.handle.id, task_queue="watchbill"
    )
    assert await again.result() == "completed"
    assert len(plan.receipts()) == receipts


def revised(plan: Plan, *boxes: str, **front: Any) -> Publish:
    """Another text of a plan on the stage, published as a revision of it."""
    return replace(plan.publication(document(plan.slug, *boxes, **front)), revise=True)


async def confirm_revision(plan: Plan, reply: Reply) -> Reply:
    assert reply.revised is not None
    decision = Decision(
        DecisionKind.CONFIRM, plan.id, names=reply.revised.digest, by=plan.owner, revision=reply.revised.number
    )
    return await plan.stage.temporal.decide(decision, plan.owner)


async def test_a_plan_under_way_takes_a_revision_in(stage: Stage) -> None:
    """One box is paused and changed, one has yet to begin and is changed, one is struck out, and one is new."""
    plan = stage.plan("First", "Second {after=1}", "Third {after=2}")
    plan.tell("author", Held())
    await plan.begin()
    await plan.until_started()
    new = ("First {timeout=5m}", "The second {after=1}", "~~Third~~", "Fourth {after=2}")
    refused = await stage.temporal.publish(plan.id, revised(plan, *new))
    assert refused.outcome is Outcome.REFUSED
    assert refused.revised is not None
    assert ["task 1 is working" in fault.message for fault in refused.revised.faults] == [True]
    await plan.decide("pause", 1)
    asked = await plan.until(TaskState.PAUSED)
    published = await stage.temporal.publish(plan.id, revised(plan, *new))
    assert published.outcome is Outcome.DONE
    seen = await stage.temporal.view(plan.id)
    while seen is None or seen.proposed is None:
        await asyncio.sleep(0.05)
        seen = await stage.temporal.view(plan.id)
    assert seen.proposed.digest == published.revised.digest
    description = await plan.handle.describe()
    assert description.typed_search_attributes.get(surface.NEEDS_PERSON) is True

    confirmed = await confirm_revision(plan, published)
    assert (confirmed.outcome, confirmed.revised.touched) == (Outcome.DONE, (1, 3))
    assert (await confirm_revision(plan, published)).outcome is Outcome.ALREADY
    assert plan.facts(3).state is TaskState.CANCELLED
    stale = await plan.decide("resume", 1, asked.question.id)
    assert stale.outcome is Outcome.REFUSED
    await plan.decide("resume", 1, plan.facts().question.id)
    await plan.until_over()

    assert [plan.facts(n).state for n in (1, 2, 3, 4)] == ["merged", "merged", "cancelled", "merged"]
    assert plan.facts(2).title == "The second"
    assert plan.started()["author-2"] == 1
    assert plan.started(3) == {}


async def test_a_task_in_review_that_is_struck_out_has_its_pull_request_closed(stage: Stage) -> None:
    plan = await stage.plan("First", "Second", merge="by-hand").begin()
    await plan.until(TaskState.IN_REVIEW)
    await plan.decide("pause", 1)
    await plan.until(TaskState.PAUSED)
    published = await stage.temporal.publish(plan.id, revised(plan, "~~First~~", "Second", merge="by-hand"))
    await confirm_revision(plan, published)
    await stage.until(lambda: not stage.forge.pull_of(plan.task()).open)
    assert plan.facts().reason == "struck out by revision 2"
    await plan.decide("cancel")
    await plan.until_over()


async def test_a_revision_is_withdrawn_by_signal_and_by_update(stage: Stage) -> None:
    plan = stage.plan("First")
    held = Held()
    plan.tell("author", held)
    await plan.begin()
    await plan.until_started()
    for number, withdraw in ((2, plan.signal), (3, plan.decide)):
        published = await stage.temporal.publish(plan.id, revised(plan, "First", "Second"))
        assert published.revised.number == number
        await withdraw("withdraw")
        await stage.until(lambda: plan.view().proposed is None)
    held.release()
    await plan.until_over()
    assert len(plan.view().tasks) == 1


async def test_a_plan_that_has_ended_begins_again_with_what_a_revision_adds(stage: Stage) -> None:
    plan = await stage.plan("First").begin()
    await plan.until_over()
    await stage.until_quiet(plan)
    published = await stage.temporal.publish(plan.id, revised(plan, "First", "Second"))
    assert (await confirm_revision(plan, published)).state == "in_progress"
    await plan.until_over()
    assert plan.facts(2).state is TaskState.MERGED
    assert plan.started() == {"author-1": 1, "check-1": 1}
