"""The heartbeat: it dispatches within its gates, never twice, and stops when nothing is left."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from domain.duties import Actor
from domain.errors import IllegalMove, NotFound
from domain.identity import heartbeat_workflow_id
from domain.lifecycle import Move
from domain.publication import Beat, BeatReply
from domain.task import SLOTTED, TaskState
from store import dispatch
from store.moves import move
from tests.workflows.stage import Plan, Stage
from tests.workflows.world import Held

pytestmark = pytest.mark.asyncio(loop_scope="module")


def gate(stage: Stage, owner: str, *events: str) -> None:
    """An owner's own gate."""
    with stage.store.write() as connection:
        for event in events:
            key, now = f"{event}:{owner}", datetime.now(UTC)
            wish = Move("owner", owner, event, key, f"owner:{owner}", "a test", now, by=Actor.PERSON)
            move(connection, wish)


def under_way(plan: Plan, boxes: int) -> int:
    return sum(plan.facts(ordinal).state in SLOTTED for ordinal in range(1, boxes + 1))


async def test_an_idle_heartbeat_ends_and_the_next_plan_starts_it_anew(impatient: Stage) -> None:
    first = await impatient.plan().begin()
    await first.until_over()
    beating = heartbeat_workflow_id(first.owner)
    await impatient.until_closed(beating)
    assert await impatient.client.get_workflow_handle(beating).result() == "nothing left to dispatch"
    second = await impatient.plan(owner=first.owner, slug="another-plan").begin()
    await second.until_over()


async def test_nothing_begins_while_a_plan_is_paused(impatient: Stage) -> None:
    plan = impatient.plan()
    await plan.publish()
    gate(impatient, plan.owner, "open", "pause")
    await plan.confirm()
    await plan.decide("pause")
    gate(impatient, plan.owner, "resume")
    await impatient.until_events(heartbeat_workflow_id(plan.owner), "timer_fired_event_attributes", 2)
    assert plan.facts().state is TaskState.PENDING
    await plan.decide("resume")
    await plan.until_over()


async def test_nothing_begins_while_an_owner_is_paused_and_what_runs_runs_on(impatient: Stage) -> None:
    held = Held()
    first = impatient.plan()
    first.tell("author", held)
    await first.begin()
    await first.until_started()
    gate(impatient, first.owner, "open", "pause")
    second = await impatient.plan(owner=first.owner, slug="another-plan").begin()
    held.release()
    await first.until_over()
    assert second.facts().state is TaskState.PENDING
    gate(impatient, first.owner, "resume")
    await second.until_over()


async def test_a_large_plan_does_not_starve_a_small_one(impatient: Stage) -> None:
    boxes = 6
    large = impatient.plan(*[f"Box {n}" for n in range(1, boxes + 1)], slug="large", concurrency=boxes)
    holds = [Held() for _ in range(boxes)]
    for ordinal, held in enumerate(holds, 1):
        large.tell("author", held, ordinal=ordinal)
    await large.begin()
    slots = impatient.settings.slots
    await impatient.until(lambda: under_way(large, boxes) == slots)
    small = await impatient.plan(owner=large.owner, slug="small").begin()
    holds[0].release()
    await small.until_over()
    assert large.facts(boxes).state is TaskState.PENDING
    for held in holds:
        held.release()
    await large.until_over()


async def test_a_beat_that_fails_is_followed_by_another(impatient: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = await impatient.plan(merge="by-hand").begin()
    await plan.until(TaskState.IN_REVIEW)
    beating = impatient.client.get_workflow_handle(heartbeat_workflow_id(plan.owner))
    before = await beating.describe()
    beat = dispatch.beat
    failed: list[str] = []

    def fails_twice(store: Any, order: Beat, policy: Any, incarnation: int) -> BeatReply:
        """As a local activity, and as the regular one that it is handed to."""
        if order.owner == plan.owner and len(failed) < 2:
            failed.append(order.owner)
            raise IllegalMove("plan", "broken", "beat")
        return beat(store, order, policy, incarnation)

    monkeypatch.setattr(dispatch, "beat", fails_twice)
    impatient.forge.merge(plan.task())
    await plan.hint()
    await plan.until(TaskState.MERGED)
    # Its task hears of the merge as well, and may have been quicker.
    await impatient.until(lambda: len(failed) == 2)
    assert (await beating.describe()).run_id == before.run_id
    await plan.until_over()


async def test_a_pull_request_that_cannot_be_read_holds_up_no_other(impatient: Stage) -> None:
    plan = await impatient.plan("First", "Second", merge="by-hand").begin()
    for ordinal in (1, 2):
        await plan.until(TaskState.IN_REVIEW, ordinal)
        await plan.decide("pause", ordinal)
        await plan.until(TaskState.PAUSED, ordinal)
        impatient.forge.merge(plan.task(ordinal))
        await plan.hint(ordinal, nudge=False)
    plan.tell("look", *[NotFound("nobody lets us read it")] * 2)
    await impatient.nudge(plan.owner)
    await plan.until_over()
    assert [plan.facts(ordinal).state for ordinal in (1, 2)] == [TaskState.MERGED] * 2


async def test_a_nudge_passes_the_interval(stage: Stage) -> None:
    """`stage` ticks once an hour, so whatever begins there began by a nudge."""
    plan = stage.plan("First", "Second {after=1}")
    assert stage.settings.interval == 3600
    await plan.begin()
    await plan.until_over()


test_a_nudge_passes_the_interval = pytest.mark.asyncio(loop_scope="session")(test_a_nudge_passes_the_interval)
