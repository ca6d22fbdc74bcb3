"""What a plan cost Temporal, read from the histories of its workflows.

A script is what one workflow had done, in its order: each step one of the names below. A bare
workflow that is given the same script does the same and nothing else, so that the two compare.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from domain.identity import TASK_QUEUE, heartbeat_workflow_id, plan_workflow_id, task_id, task_workflow_id

LOCAL, WAKE, SHARED, HOST = "local", "wake", "shared", "host"
"""A local activity; one that signals another workflow; regular ones on the shared queue and the host's own."""

AT_ONCE = 25
"""Calls to Temporal at the same time; a development server times out at a few hundred."""

Script = list[str]


@dataclass
class Cost:
    """Of plans from their confirmation to their end.

    `plans` and `tasks` are scripts, and `heart` is that of their owner's heartbeat, which they share.
    `signals` counts all that arrived, those with which workflows were started included.
    """

    plans: list[Script] = field(default_factory=list)
    tasks: list[list[Script]] = field(default_factory=list)
    heart: Script = field(default_factory=list)
    signals: int = 0
    events: int = 0

    @property
    def hints(self) -> int:
        """The signals that came neither from a step of a task nor with a workflow's start."""
        starts = len(self.plans) + sum(map(len, self.tasks))
        return max(0, self.signals - self.count()[WAKE] - starts)

    def count(self) -> Counter[str]:
        """How often each kind of step was taken."""
        scripts = (*self.plans, *(script for each in self.tasks for script in each), self.heart)
        return Counter(step for script in scripts for step in script)

    def __str__(self) -> str:
        steps = self.count()
        started = sum(map(len, self.tasks))
        return (
            f"{len(self.plans)} updates, {started} workflows started, {steps[LOCAL] + steps[WAKE]} local and "
            f"{steps[SHARED] + steps[HOST]} regular activities, {self.signals} signals"
        )


async def cost_of(client: Client, owner: str, plans: Iterable[str], boxes: int, since: datetime) -> Cost:
    """What these plans of so many boxes each have cost since their confirmation, all being at their end."""
    by_workflow = await _events(client, since)
    cost = Cost(events=sum(map(len, by_workflow.values())))
    for plan in plans:
        cost.plans.append(_script(by_workflow[plan_workflow_id(plan)]))
        tasks = [task_workflow_id(task_id(plan, box + 1)) for box in range(boxes)]
        cost.tasks.append([_script(by_workflow[task]) for task in tasks])
    cost.heart = _script(by_workflow[heartbeat_workflow_id(owner)])
    cost.signals = sum(
        event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
        for events in by_workflow.values()
        for event in events
    )
    return cost


async def _events(client: Client, since: datetime) -> dict[str, list[HistoryEvent]]:
    """The events since then by workflow, of all runs that were under way; the sweep's are nobody's cost."""
    query = f"ExecutionStatus = 'Running' OR CloseTime >= '{since.isoformat()}'"
    runs = [(run.id, run.run_id) async for run in client.list_workflows(query) if run.run_id]
    gate = asyncio.Semaphore(AT_ONCE)

    async def read(workflow: str, run: str) -> list[HistoryEvent]:
        async with gate:
            history = client.get_workflow_handle(workflow, run_id=run).fetch_history_events()
            return [event async for event in history if event.event_time.ToDatetime(UTC) >= since]

    read_all = await asyncio.gather(*(read(*run) for run in runs))
    found: dict[str, list[HistoryEvent]] = {}
    for (workflow, _), events in zip(runs, read_all, strict=True):
        if workflow.startswith(("plan-", "task-", "heartbeat-")):
            found.setdefault(workflow, []).extend(events)
    return {
        workflow: sorted(events, key=lambda event: event.event_time.ToNanoseconds())
        for workflow, events in found.items()
    }


def _script(events: Iterable[HistoryEvent]) -> Script:
    return [step for event in events if (step := _step(event))]


def _step(event: HistoryEvent) -> str:
    match event.event_type:
        case EventType.EVENT_TYPE_MARKER_RECORDED:
            # A local activity is a marker of the SDK's core, which says what it was.
            said = event.marker_recorded_event_attributes.details["data"].payloads[0].data
            return WAKE if json.loads(said)["activity_type"] == "wake" else LOCAL
        case EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            queue = event.activity_task_scheduled_event_attributes.task_queue.name
            return SHARED if queue == TASK_QUEUE else HOST
        case _:
            return ""
