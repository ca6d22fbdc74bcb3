"""Starting the workflows that should live, and waking those that should look again.

There is one `ensure`: heartbeat, sweep and decisions all call it. It starts what is not running
and wakes what is, and never decides whether something ought to live: the graph did that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from temporalio import activity
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode

from domain.identity import TASK_QUEUE, heartbeat_workflow_id, plan_workflow_id, task_workflow_id
from domain.publication import EnsureTasks, OwnerRef, PlanRef, TaskRef

_T = TypeVar("_T")

AT_ONCE = 25
"""Workflows started at the same time; a development server times out at a few hundred."""


@dataclass(frozen=True)
class Dispatch:
    client: Client

    @activity.defn
    async def ensure_tasks(self, order: EnsureTasks) -> None:
        """Start these tasks' workflows where none runs. A repeat at most hints once more, which changes nothing."""
        await _at_most(AT_ONCE, partial(self._ensure_task, wake=order.wake), order.tasks)

    @activity.defn
    async def ensure_plans(self, refs: list[PlanRef]) -> None:
        """Start these plans' workflows where none runs. A repeat finds them running."""
        await _at_most(AT_ONCE, self._ensure_plan, refs)

    @activity.defn
    async def ensure_heartbeat(self, owner: str) -> None:
        """Start or nudge an owner's heartbeat. A repeat nudges once more, which changes nothing."""
        await self._ensure("HeartbeatWorkflow", OwnerRef(owner), heartbeat_workflow_id(owner), owner, wake=True)

    @activity.defn
    async def wake(self, workflow_id: str) -> None:
        """Hint that a workflow should look again, if it runs. A repeat hints once more, which changes nothing."""
        try:
            await self.client.get_workflow_handle(workflow_id).signal("look_again")
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise

    async def _ensure_task(self, ref: TaskRef, *, wake: bool) -> None:
        await self._ensure("TaskWorkflow", ref, task_workflow_id(ref.task_id), ref.title or ref.task_id, wake=wake)

    async def _ensure_plan(self, ref: PlanRef, *, wake: bool = False) -> None:
        await self._ensure("PlanWorkflow", ref, plan_workflow_id(ref.plan_id), ref.plan_id, wake=wake)

    async def _ensure(self, workflow: str, ref: object, workflow_id: str, summary: str, *, wake: bool) -> None:
        await self.client.start_workflow(
            workflow,
            ref,
            id=workflow_id,
            task_queue=TASK_QUEUE,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal="look_again" if wake else None,
            static_summary=summary[:200],
        )


async def _at_most(limit: int, call: Callable[[_T], Awaitable[None]], items: Iterable[_T]) -> None:
    """Make every call, so many at a time. One that fails holds up no other, and is raised at the end."""
    gate = asyncio.Semaphore(limit)

    async def one(item: _T) -> None:
        async with gate:
            await call(item)

    outcomes = await asyncio.gather(*(one(item) for item in items), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
