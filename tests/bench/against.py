"""Measuring the bare cost, with a bare worker beside ours on the same Temporal server."""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.contrib.pydantic import pydantic_data_converter

from starter.local.service import leashed
from tests.bench.bare import QUEUE, BareHeart, BarePlan, PlanScript
from tests.bench.histories import Cost
from tests.bench.plans import Installed, at_once
from tests.bench.processes import cpu_of

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Bare:
    """A bare worker that serves. `seconds` and `cpu` of a run are as those of plans.Spent."""

    up: Installed
    client: Client
    process: Process

    async def measure(self, cost: Cost) -> tuple[float, float]:
        """The seconds, and those of CPU, that the same steps take when nothing is done in them."""
        plans = _scripts(cost, f"bare-{next(_numbers)}")
        await at_once(self._start(plan) for plan in plans)
        began, cpu = time.perf_counter(), self._cpu()
        heart = self.client.get_workflow_handle(plans[0].heart_id)
        await at_once(self._confirm(plan.id) for plan in plans)
        await asyncio.gather(
            *(self.client.get_workflow_handle(plan.id).result() for plan in plans),
            *(self._hint(plans[0]) for _ in range(cost.hints)),
        )
        seconds = time.perf_counter() - began
        await asyncio.gather(*(self.client.get_workflow_handle(task).result() for plan in plans for task in plan.tasks))
        await heart.signal(BareHeart.look_again, args=[None, True])
        await heart.result()
        return seconds, self._cpu() - cpu

    async def _start(self, plan: PlanScript) -> None:
        await self.client.start_workflow(BarePlan.run, plan, id=plan.id, task_queue=QUEUE)

    async def _confirm(self, plan: str) -> None:
        await self.client.get_workflow_handle_for(BarePlan.run, plan).execute_update(BarePlan.confirm)

    async def _hint(self, plan: PlanScript) -> None:
        """What the webhooks door does about a delivery."""
        await self.client.start_workflow(
            BareHeart.run,
            plan.heart,
            id=plan.heart_id,
            task_queue=QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal="look_again",
        )

    def _cpu(self) -> float:
        return self.up.server_cpu() + cpu_of([self.process.pid])


@asynccontextmanager
async def bare_worker(up: Installed) -> AsyncIterator[Bare]:
    """A bare worker on the installation's own Temporal server."""
    address = up.local.addresses.temporal
    command = leashed((sys.executable, "-P", str(Path(__file__).with_name("bare.py")), address))
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"serving\n", "the bare worker did not start"
    try:
        client = await Client.connect(address, data_converter=pydantic_data_converter)
        yield Bare(up, client, process)
    finally:
        process.terminate()
        await process.wait()


def _scripts(cost: Cost, name: str) -> list[PlanScript]:
    heart = f"{name}-heart"
    return [
        PlanScript(
            f"{name}-plan-{plan}",
            script,
            {f"{name}-plan-{plan}-task-{box}": task for box, task in enumerate(tasks)},
            heart,
            cost.heart,
        )
        for plan, (script, tasks) in enumerate(zip(cost.plans, cost.tasks, strict=True))
    ]
