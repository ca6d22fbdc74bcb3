"""An owner's heartbeat: timer ticks that dispatch confirmed work within the owner's gates.

Each beat compares what is wanted with what is, and starts what should run. A nudge makes it beat
now, and passes the interval but no other gate. Beats never overlap, and one that fails is simply
followed by the next, so nothing can be left marked as in flight.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from activities.dispatch import Dispatch
    from activities.facts import Facts
    from activities.landing import Landing
    from domain.decision import Reply
    from domain.heartbeat import HeartbeatPolicy
    from domain.notes import EditContext
    from domain.publication import Beat, BeatReply, EnsureTasks, OwnerRef, PlanRef, TaskRef
    from domain.raising import SetDay
    from workflows import options, surface
    from workflows.calls import facts, failure_of


@workflow.defn
class HeartbeatWorkflow:
    @workflow.init
    def __init__(self, ref: OwnerRef) -> None:
        self._owner = ref.owner
        self._nudged = False
        self._policy = HeartbeatPolicy()
        self._whole_at: datetime | None = None
        self._followed_at: datetime | None = None
        # Local activities of one workflow follow one another, or they do not replay (sdk-python#1578).
        self._graph = asyncio.Lock()

    @workflow.run
    async def run(self, ref: OwnerRef) -> str:
        while True:
            self._nudged = False
            try:
                idle = await self._beat(ref)
                if idle and not self._nudged:
                    await workflow.wait_condition(workflow.all_handlers_finished)
                    return "nothing left to dispatch"
            except ActivityError as error:
                workflow.logger.warning("a beat failed", extra={"reason": failure_of(error)})
            if workflow.info().is_continue_as_new_suggested():
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(ref)
            await self._interval_passes()

    @workflow.signal
    def look_again(self) -> None:
        """A nudge: something was confirmed, decided, or has ended."""
        self._nudged = True

    @workflow.update
    async def budget(self, order: SetDay) -> Reply:
        """Write down what the owner's runs may cost a day. The reply says what it came to."""
        async with self._graph:
            reply: Reply = await facts(Facts.set_day, order)
        return reply

    @budget.validator
    def _budget_shape(self, order: SetDay) -> None:
        if order.owner != self._owner:
            message = f"a budget of {order.owner} came to {self._owner}"
            raise ApplicationError(message, type="InvalidDecision", non_retryable=True)

    @workflow.update
    async def edit_context(self, order: EditContext) -> Reply:
        """Write down what a person changed of what is known of one of the owner's repositories."""
        async with self._graph:
            reply: Reply = await facts(Facts.edit_context, order)
        return reply

    @edit_context.validator
    def _edit_shape(self, order: EditContext) -> None:
        if order.owner != self._owner or order.plan_id or not order.repository:
            message = f"an edit by {order.owner} came to {self._owner}"
            raise ApplicationError(message, type="InvalidDecision", non_retryable=True)

    async def _beat(self, ref: OwnerRef) -> bool:
        """One beat; whether the owner has nothing left that a further beat could further."""
        now = workflow.now()
        whole = _due(self._whole_at, now, self._policy.interval)
        follow = whole and _due(self._followed_at, now, self._policy.follow)
        async with self._graph:
            beat: BeatReply = await facts(Facts.beat, Beat(ref.owner, now, whole, follow))
        self._policy = beat.policy
        surface.show_heartbeat(ref.owner, beat)
        await self._ensure(beat.wake, wake=True)
        await self._ensure(beat.alive, wake=False)
        if beat.plans:
            await workflow.execute_activity_method(Dispatch.ensure_plans, list(beat.plans), **options.BEAT)
        await asyncio.gather(*(self._follow(stray) for stray in beat.strays))
        # Only now: what failed on the way is asked for again by the next beat.
        self._whole_at = now if whole else self._whole_at
        self._followed_at = now if follow else self._followed_at
        return beat.idle

    async def _ensure(self, tasks: tuple[TaskRef, ...], *, wake: bool) -> None:
        if tasks:
            await workflow.execute_activity_method(Dispatch.ensure_tasks, EnsureTasks(tasks, wake), **options.BEAT)

    async def _follow(self, task: TaskRef) -> None:
        """Let the forge's fact move a task that does not watch it. One that cannot be read holds up no other."""
        try:
            if await workflow.execute_activity_method(Landing.follow_forge, task.task_id, **options.BEAT):
                await self._ensure((task,), wake=True)
                plan = PlanRef(task.plan_id, task.owner)
                await workflow.execute_activity_method(Dispatch.ensure_plans, [plan], **options.BEAT)
        except ActivityError as error:
            workflow.logger.warning("could not follow a pull request", extra={"reason": failure_of(error)})

    async def _interval_passes(self) -> None:
        """Wait for the next tick or a nudge."""
        tick = timedelta(seconds=self._policy.interval)
        try:
            await workflow.wait_condition(lambda: self._nudged, timeout=tick, timeout_summary="next tick")
        except TimeoutError:
            return


def _due(last: datetime | None, now: datetime, seconds: float) -> bool:
    return last is None or now - last >= timedelta(seconds=seconds)
