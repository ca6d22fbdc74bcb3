"""What is tried again and again behind a plan's tasks, and why; read from Temporal, which alone knows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.errors import NotFound, Unavailable
from domain.task import SLOTTED, TaskState
from domain.view import PlanView, TaskView
from starter.output import one_line

if TYPE_CHECKING:
    from temporalio.api.workflow.v1 import PendingActivityInfo

    from starter.client import Temporal

AT_ONCE = 20
"""How many tasks are asked about, all at the same time; those at work come before those in review."""


@dataclass(frozen=True)
class Retry:
    """A step of a task that failed and is tried again. `next_try` is in ISO 8601, empty while it is tried."""

    task: int
    step: str
    attempt: int
    failure: str
    next_try: str

    @property
    def text(self) -> str:
        due = f"next try at {self.next_try}" if self.next_try else "tried right now"
        return f"{self.step}, attempt {self.attempt}: {one_line(self.failure)}; {due}"


async def retries(temporal: Temporal, view: PlanView) -> tuple[Retry, ...]:
    """What the plan's tasks try again, in the tasks' order. A task that Temporal cannot tell of is left out."""
    at_work = [task for task in view.tasks if task.state in SLOTTED]
    in_review = [task for task in view.tasks if task.state == TaskState.IN_REVIEW]
    asked = (at_work + in_review)[:AT_ONCE]
    found = await asyncio.gather(*(_retries_of(temporal, task) for task in asked))
    return tuple(sorted((each for some in found for each in some), key=lambda each: each.task))


async def _retries_of(temporal: Temporal, task: TaskView) -> list[Retry]:
    try:
        pending = await temporal.pending_activities(task.id)
    except (NotFound, Unavailable):
        return []
    return [_retry(task.ordinal, each) for each in pending if each.HasField("last_failure") and not _alive(each)]


def _alive(step: PendingActivityInfo) -> bool:
    """Whether this attempt has been heard of: a run that is watched again has no trouble any more."""
    return _tried_now(step) and step.last_heartbeat_time.ToNanoseconds() > step.last_started_time.ToNanoseconds()


def _tried_now(step: PendingActivityInfo) -> bool:
    from temporalio.api.enums.v1 import PendingActivityState

    return step.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED


def _retry(ordinal: int, step: PendingActivityInfo) -> Retry:
    due = step.next_attempt_schedule_time
    waits = not _tried_now(step) and due.ToNanoseconds()
    return Retry(
        task=ordinal,
        step=step.activity_type.name.replace("_", " "),
        attempt=step.attempt,
        failure=step.last_failure.message,
        next_try=f"{due.ToDatetime().isoformat(timespec='seconds')}+00:00" if waits else "",
    )
