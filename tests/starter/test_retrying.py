"""What is tried again behind a plan is seen: by the real command, at a real Temporal, with a step that fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from domain.identity import TASK_QUEUE, plan_id, plan_workflow_id, task_id, task_workflow_id
from domain.view import PlanView, TaskView
from starter.client import Temporal
from starter.retrying import AT_ONCE, retries

OUTAGE = "GitHub does not answer (502)"


@activity.defn
async def open_pull_request(plan: str) -> None:
    if "outage" in plan:
        raise ApplicationError(OUTAGE, type="Unavailable", next_retry_delay=timedelta(hours=1))
    if activity.info().attempt == 1:
        raise ApplicationError("the worker went away", next_retry_delay=timedelta(milliseconds=1))
    while True:
        activity.heartbeat()
        await asyncio.sleep(0.1)


@workflow.defn(name="TaskWorkflow")
class OneStep:
    @workflow.run
    async def run(self, plan: str) -> None:
        await workflow.execute_activity(
            open_pull_request, plan, start_to_close_timeout=timedelta(days=1), heartbeat_timeout=timedelta(seconds=20)
        )


@workflow.defn(name="PlanWorkflow")
class OneView:
    @workflow.run
    async def run(self, view: PlanView) -> None:
        self.view_ = view
        await workflow.wait_condition(lambda: False)

    @workflow.query
    def view(self) -> PlanView:
        return self.view_


def seen(slug: str, *tasks: tuple[int, str]) -> PlanView:
    plan = plan_id("local", slug)
    boxes = tuple(TaskView(ordinal, f"Box {ordinal}", state, task_id(plan, ordinal)) for ordinal, state in tasks)
    return PlanView(
        plan, slug, "local", slug, "in_progress", "acme/shop", "main", "when-proven",
        paused=False, revision=1, digest="d" * 64, seq=9, head="h" * 64, tasks=boxes,
    )  # fmt: skip


@asynccontextmanager
async def under_way(client: Client, view: PlanView) -> AsyncIterator[list[WorkflowHandle[Any, Any]]]:
    """The plan's workflow, and one for each of its tasks, which is tried a second time by now or waits to be."""
    started: list[WorkflowHandle[Any, Any]] = []
    worker = Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[OneStep, OneView],
        activities=[open_pull_request],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    async with worker:
        try:
            plan = await client.start_workflow(
                OneView.run, view, id=plan_workflow_id(view.plan_id), task_queue=TASK_QUEUE
            )
            started.append(plan)
            for task in view.tasks:
                id = task_workflow_id(task.id)
                started.append(await client.start_workflow(OneStep.run, view.plan_id, id=id, task_queue=TASK_QUEUE))
            for each in started[1:]:
                while not await _failed_once(each):
                    await asyncio.sleep(0.05)
            yield started[1:]
        finally:
            for each in started:
                await each.terminate()


async def _failed_once(handle: WorkflowHandle[Any, Any]) -> bool:
    pending = (await handle.describe()).raw_description.pending_activities
    return bool(pending and pending[0].HasField("last_failure"))


async def test_a_status_tells_what_is_tried_again_and_when(watchbill, temporal_client, temporal_address):
    watchbill.settings["WATCHBILL_TEMPORAL_ADDRESS"] = temporal_address
    async with under_way(temporal_client, seen("outage-told", (1, "publishing"), (2, "in_review"))):
        told = await asyncio.to_thread(watchbill.json, "status", "outage-told")
        shown = await asyncio.to_thread(watchbill, "status", "outage-told")
    first, second = told["retrying"]
    assert (first["task"], first["step"], first["failure"]) == (1, "open pull request", OUTAGE)
    assert (first["attempt"], second["task"]) == (2, 2)
    minutes = (datetime.fromisoformat(first["next_try"]) - datetime.now(UTC)).total_seconds() / 60
    assert 50 < minutes <= 60
    line = f"#1 waiting: open pull request, attempt 2: {OUTAGE}; next try at {first['next_try']}\n"
    assert line in shown.stdout


async def test_a_step_that_is_heard_of_again_is_no_trouble(temporal_client, temporal_address):
    view = seen("heard-of-again", (1, "working"))
    async with under_way(temporal_client, view) as [task]:
        async with asyncio.timeout(30):
            while not (await task.describe()).raw_description.pending_activities[0].HasField("last_heartbeat_time"):
                await asyncio.sleep(0.05)
        assert await retries(Temporal(temporal_client, temporal_address), view) == ()


@pytest.mark.parametrize("state", ["pending", "paused", "merged", "cancelled", "done", "unconfirmed"])
async def test_only_tasks_that_are_at_work_are_asked_about(state):
    assert await retries(Asked(), seen("at-rest", (1, state))) == ()


async def test_no_more_tasks_are_asked_about_than_can_be_at_once_and_those_at_work_first():
    temporal = Asked()
    view = seen("many", *((n, "in_review") for n in range(1, 31)), (31, "working"))
    assert await retries(temporal, view) == ()
    assert len(temporal.asked) == AT_ONCE
    assert temporal.asked[0] == task_id(view.plan_id, 31)


class Asked:
    """A Temporal that remembers which tasks it was asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def pending_activities(self, task: str) -> list[Any]:
        assert "at-rest" not in task
        self.asked.append(task)
        return []


async def test_a_temporal_that_does_not_know_a_task_is_no_trouble(temporal_client, temporal_address):
    assert await retries(Temporal(temporal_client, temporal_address), seen("gone", (1, "working"))) == ()
