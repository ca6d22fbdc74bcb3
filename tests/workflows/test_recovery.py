"""What is terminated, silent, overtaken or broken: the task goes on, and nothing is done twice."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from domain.errors import KeyReused, Superseded, Unavailable
from domain.identity import heartbeat_workflow_id, plan_workflow_id
from domain.publication import BeginRun
from domain.run import Role, RunState
from domain.task import TaskState
from store import runs
from store.runs import Keeper
from store.tables import inbox
from tests.workflows.stage import Plan, Stage
from tests.workflows.world import Held

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def working(impatient: Stage, held: Held, **front: str) -> Plan:
    """A plan whose one agent works until it is let go."""
    plan = impatient.plan(**front)
    plan.tell("author", held)
    await plan.begin()
    await plan.until_started()
    return plan


async def test_a_terminated_task_goes_on_without_a_second_agent(impatient: Stage) -> None:
    held = Held()
    plan = await working(impatient, held)
    first = await plan.task_handle().describe()
    await plan.task_handle().terminate("by a test")
    await impatient.until_running(first.id, other_than=first.run_id)
    held.release()
    await plan.until_over()
    assert plan.started() == {"author-1": 1, "check-1": 1}
    assert impatient.forge.opened[plan.task()] == 1


async def test_a_terminated_plan_and_heartbeat_are_begun_anew_by_the_sweep(impatient: Stage) -> None:
    held = Held()
    plan = await working(impatient, held)
    beating = impatient.client.get_workflow_handle(heartbeat_workflow_id(plan.owner))
    await beating.terminate("by a test")
    await plan.handle.terminate("by a test")
    await impatient.until_closed(beating.id)
    await impatient.client.get_schedule_handle("watchbill-sweep").trigger()
    await impatient.until_running(beating.id)
    await impatient.until_running(plan_workflow_id(plan.id))
    held.release()
    await plan.until_over()


async def test_a_plan_that_waits_to_be_confirmed_is_begun_anew_by_the_sweep(impatient: Stage) -> None:
    plan = impatient.plan()
    await plan.publish()
    await plan.handle.terminate("by a test")
    await impatient.client.get_schedule_handle("watchbill-sweep").trigger()
    await impatient.until_running(plan_workflow_id(plan.id))
    await plan.decide("archive")


async def test_a_plan_converges_although_its_temporal_was_lost(impatient: Stage) -> None:
    plan = impatient.plan("First", "Second {after=1}").enter()
    assert plan.facts().state is TaskState.WORKING
    await impatient.client.get_schedule_handle("watchbill-sweep").trigger()
    await plan.until_over()
    assert plan.started(1) == plan.started(2) == {"author-1": 1, "check-1": 1}


async def test_an_agent_outlives_a_worker_that_leaves_and_comes_back(impatient: Stage) -> None:
    held = Held()
    plan = await working(impatient, held)
    await impatient.host_leaves()
    assert plan.run() in impatient.host.living
    held.release()
    await impatient.host_comes()
    await plan.until_over()
    assert plan.started() == {"author-1": 1, "check-1": 1}


async def test_an_activity_that_falls_silent_is_followed_by_one_that_attaches(impatient: Stage) -> None:
    held = Held(silent=True)
    plan = await working(impatient, held)
    await impatient.until_attempt(plan.task_handle(), 2)
    held.release()
    await plan.until_over()
    assert plan.started() == {"author-1": 1, "check-1": 1}


async def test_a_host_that_is_silent_is_waited_for_until_its_lease_has_lapsed(impatient: Stage) -> None:
    plan = impatient.plan().enter()
    elsewhere = Keeper("worker-b", "host-b", "boot-b", impatient.settings.lease_time)
    with impatient.store.write() as connection:
        runs.begin(connection, BeginRun(plan.task(), Role.AUTHOR, datetime.now(UTC)), elsewhere, 1)
    await impatient.nudge(plan.owner)
    await impatient.until_events(plan.task_handle().id, "activity_task_timed_out_event_attributes", 2)
    assert not plan.receipts("run", "lose")
    plan.lapse(plan.run())
    await plan.until_over()
    assert plan.started() == {"author-2": 1, "check-1": 1}
    lost = [one.after for one in plan.receipts("run") if one.subject == plan.run()]
    assert lost == [RunState.STARTING, RunState.LOST]


async def test_work_that_lay_on_a_host_that_is_gone_is_done_again(impatient: Stage) -> None:
    plan = impatient.plan()
    plan.tell("check", Held())
    await plan.begin()
    await plan.until_started(role="check")
    await plan.decide("pause", 1)
    task = await plan.until(TaskState.PAUSED)
    # As if the commit that is checked had been made on a host that is there no more.
    facts = {"host": "host-b", "question_id": None, "round": task.round + 1}
    plan.move("resume_checking", facts)
    await impatient.nudge(plan.owner)
    second = plan.run(2, role="check")
    await impatient.until(lambda: second in {one.subject for one in plan.receipts("run", "start")})
    plan.lapse(second)
    await plan.until_over()
    assert "work_lost" in plan.events()
    assert plan.started() == {"author-1": 1, "author-2": 1, "check-1": 1, "check-3": 1}


@pytest.mark.parametrize("overtaken", [Superseded("somebody took over"), KeyReused("spent on something else")])
async def test_a_step_that_was_overtaken_looks_again(impatient: Stage, overtaken: Exception) -> None:
    plan = impatient.plan()
    plan.tell("push", overtaken)
    await plan.begin()
    await plan.until_over()
    assert plan.facts().state is TaskState.MERGED
    assert not plan.receipts("task", "pause")


async def test_a_judgement_of_facts_that_have_changed_since_is_not_carried_out(impatient: Stage) -> None:
    held = Held()
    plan = await working(impatient, held)
    # Another workflow of the same task is first, and knows something else.
    facts = {"head_sha": "1" * 40, "tree_sha": "2" * 40, "host": plan.facts().runs[0].host}
    plan.move("worked", facts, key=f"{plan.task()}:worked:{plan.run()}")
    held.release()
    await plan.until_over()
    assert plan.facts().proven_sha == "1" * 40
    assert plan.events().count("worked") == 1


async def test_a_forge_that_is_away_is_asked_again(impatient: Stage) -> None:
    plan = impatient.plan()
    plan.tell("open", Unavailable("GitHub did not answer"), Unavailable("GitHub asks for time", retry_after=0.2))
    await plan.begin()
    await plan.until_over()
    assert impatient.forge.opened[plan.task()] == 1


async def test_an_error_that_nobody_expected_is_tried_again(impatient: Stage) -> None:
    plan = impatient.plan()
    plan.tell("push", *[RuntimeError("a bug that goes away")] * 4)
    await plan.begin()
    await plan.until_over()
    assert plan.facts().state is TaskState.MERGED


async def test_a_defect_fails_the_task_and_a_person_can_retry(impatient: Stage) -> None:
    plan = impatient.plan()
    plan.tell("push", *[RuntimeError("a bug that stays")] * 5)
    await plan.begin()
    await plan.until_over()
    assert plan.facts().state is TaskState.FAILED
    assert plan.facts().reason == "a defect in Watchbill: RuntimeError in push_branch"
    reply = await plan.decide("retry", 1)
    assert reply.outcome == "done"
    await plan.until(TaskState.MERGED)
    await plan.until_over()


async def test_what_cannot_be_tidied_away_holds_up_nothing(impatient: Stage) -> None:
    plan = impatient.plan()
    plan.tell("clear", Superseded("somebody holds it"))
    await plan.begin()
    await plan.until_over()
    assert plan.task() not in impatient.host.cleared


async def test_a_publication_that_came_to_nothing_leaves_no_workflow_behind(impatient: Stage) -> None:
    plan = impatient.plan(repository="acme/not-there")
    impatient.script.tell("acme/shop", "repository", Superseded("never"))
    with pytest.raises(Exception, match="never"):
        await plan.publish()
    await impatient.until_closed(plan.handle.id)
    assert await plan.handle.result() == "nothing was published"
    assert plan.view() is None


async def test_a_lost_delivery_is_made_up_for_by_the_next_tick(impatient: Stage) -> None:
    plan = await impatient.plan(merge="by-hand").begin()
    await plan.until(TaskState.IN_REVIEW)
    impatient.forge.merge(plan.task())
    name = await plan.hint(nudge=False)
    await plan.until_over()
    with impatient.store.read() as connection:
        row = connection.execute(inbox.select().where(inbox.c.delivery == name)).one()
    assert row.handled_at is not None
