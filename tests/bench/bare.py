"""The same number of workflows, activities, signals and updates as plans had, and nothing else.

A bare workflow is given a script of the steps that one of ours took (see histories), and takes them
in that order: activities do nothing, signals say nothing. What has to follow one another is the same: a
plan is updated, its first regular activity tells the heartbeat, whose first one starts the tasks, each
task's last signal tells its plan, and the plan ends. Beyond that nobody waits for anybody, no
timer runs, and nothing is shown, so the bare cost is on the low side.

`python bare.py ADDRESS` serves it: one process with two workers, one on a shared queue and one on a
host's, with as many threads as the product's; all else is as the SDK has it, with its own pydantic converter.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from tests.bench.histories import HOST, LOCAL, SHARED, WAKE, Script

QUEUE, HOST_QUEUE = "bare", "bare-host"
_LOCAL: dict[str, Any] = {"start_to_close_timeout": timedelta(seconds=2)}
_REGULAR: dict[str, Any] = {"start_to_close_timeout": timedelta(seconds=30)}


@dataclass(frozen=True)
class PlanScript:
    """`tasks` are scripts by workflow id, and `heart` is that of the heartbeat they share."""

    id: str
    script: Script
    tasks: dict[str, Script]
    heart_id: str
    heart: Script


@dataclass(frozen=True)
class TaskScript:
    plan_id: str
    script: Script


@dataclass(frozen=True)
class Wake:
    plan_id: str
    last: bool


@workflow.defn
class BarePlan:
    @workflow.init
    def __init__(self, plan: PlanScript) -> None:
        self._left = list(plan.script)
        self._confirmed = False
        self._ended = 0

    @workflow.run
    async def run(self, plan: PlanScript) -> None:
        await workflow.wait_condition(lambda: self._confirmed)
        told = False
        while len(self._left) > 1:
            step = self._left.pop(0)
            if step == SHARED and not told:
                told = True
                await workflow.execute_activity_method(Starts.tell_heart, plan, task_queue=QUEUE, **_REGULAR)
            else:
                await _take(step)
        await workflow.wait_condition(lambda: self._ended == len(plan.tasks))
        for step in self._left:
            await _take(step)

    @workflow.update
    async def confirm(self) -> None:
        self._left.remove(LOCAL)
        await _take(LOCAL)
        self._confirmed = True

    @workflow.signal
    def look_again(self, last: bool = False) -> None:
        self._ended += last


@workflow.defn
class BareHeart:
    @workflow.init
    def __init__(self, script: Script) -> None:
        self._left = list(script)
        self._told: dict[str, TaskScript] = {}
        self._over = False

    @workflow.run
    async def run(self, script: Script) -> None:
        while not self._over or self._told or self._left:
            if self._told:
                told, self._told = self._told, {}
                await self._next(LOCAL)
                self._use(SHARED)
                await workflow.execute_activity_method(Starts.start_tasks, told, task_queue=QUEUE, **_REGULAR)
            elif self._left:
                await _take(self._left.pop(0))
            else:
                await workflow.wait_condition(lambda: bool(self._told) or self._over)

    @workflow.signal
    def look_again(self, told: dict[str, TaskScript] | None = None, over: bool = False) -> None:
        self._told |= told or {}
        self._over = self._over or over

    async def _next(self, step: str) -> None:
        self._use(step)
        await _take(step)

    def _use(self, step: str) -> None:
        if step in self._left:
            self._left.remove(step)


@workflow.defn
class BareTask:
    @workflow.run
    async def run(self, task: TaskScript) -> None:
        wakes = task.script.count(WAKE)
        for step in task.script:
            if step == WAKE:
                wakes -= 1
                told = Wake(task.plan_id, last=not wakes)
                await workflow.execute_local_activity_method(Starts.wake, told, **_LOCAL)
            else:
                await _take(step)

    @workflow.signal
    def look_again(self) -> None: ...


async def _take(step: str) -> None:
    if step in (SHARED, HOST):
        queue = QUEUE if step == SHARED else HOST_QUEUE
        await workflow.execute_activity(nothing, step, task_queue=queue, **_REGULAR)
    else:
        await workflow.execute_local_activity(nothing, step, **_LOCAL)


@activity.defn
def nothing(_: str) -> None: ...


@dataclass(frozen=True)
class Starts:
    client: Client

    @activity.defn
    async def tell_heart(self, plan: PlanScript) -> None:
        told = {id_: TaskScript(plan.id, script) for id_, script in plan.tasks.items()}
        await self.client.start_workflow(
            "BareHeart",
            plan.heart,
            id=plan.heart_id,
            task_queue=QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal="look_again",
            start_signal_args=[told],
        )

    @activity.defn
    async def start_tasks(self, tasks: Mapping[str, TaskScript]) -> None:
        await asyncio.gather(*(self._start(id_, task) for id_, task in tasks.items()))

    @activity.defn
    async def wake(self, told: Wake) -> None:
        await self.client.get_workflow_handle(told.plan_id).signal(BarePlan.look_again, told.last)

    async def _start(self, id_: str, task: TaskScript) -> None:
        await self.client.start_workflow(
            "BareTask", task, id=id_, task_queue=QUEUE, start_signal="look_again", static_summary=id_
        )


@asynccontextmanager
async def serving(client: Client) -> AsyncIterator[None]:
    """Serve both queues, with the limits of the product's workers."""
    from worker.wiring import _GRACE, _HEARTBEAT_THROTTLE, _MANY

    starts = Starts(client)
    with ThreadPoolExecutor(64) as threads:
        shared = Worker(
            client,
            task_queue=QUEUE,
            workflows=[BarePlan, BareHeart, BareTask],
            activities=[nothing, starts.tell_heart, starts.start_tasks, starts.wake],
            activity_executor=threads,
            graceful_shutdown_timeout=_GRACE,
        )
        host = Worker(
            client,
            task_queue=HOST_QUEUE,
            activities=[nothing],
            activity_executor=threads,
            max_concurrent_activities=_MANY,
            max_heartbeat_throttle_interval=_HEARTBEAT_THROTTLE,
            default_heartbeat_throttle_interval=_HEARTBEAT_THROTTLE,
            graceful_shutdown_timeout=_GRACE,
        )
        async with shared, host:
            yield


async def _main(address: str) -> None:
    stop = asyncio.Event()
    for wanted in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(wanted, stop.set)
    client = await Client.connect(address, data_converter=pydantic_data_converter)
    async with serving(client):
        print("serving", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
