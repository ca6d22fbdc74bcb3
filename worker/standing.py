"""What has to stand in Temporal for Watchbill to run: search attributes, and the sweep's schedule."""

from __future__ import annotations

from datetime import timedelta

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError, RPCStatusCode

from domain.heartbeat import HeartbeatPolicy
from domain.identity import SWEEP_WORKFLOW_ID, TASK_QUEUE
from workflows import surface

_TYPES = {
    surface.OWNER.name: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    surface.PLAN.name: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    surface.STATE.name: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    surface.NEEDS_PERSON.name: IndexedValueType.INDEXED_VALUE_TYPE_BOOL,
}

SHORTEST_INTERVAL = 1.0
"""Seconds; a Temporal Schedule refuses less."""


async def prepare(client: Client, policy: HeartbeatPolicy) -> None:
    """Make what is missing. Any number of workers may do this at once, and every one does at its start."""
    await _search_attributes(client)
    await _sweep(client, timedelta(seconds=max(policy.interval, SHORTEST_INTERVAL)))


async def _search_attributes(client: Client) -> None:
    there = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    missing = {name: kind for name, kind in _TYPES.items() if name not in there.custom_attributes}
    if not missing:
        return
    try:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
        )
    except RPCError as error:
        if error.status is not RPCStatusCode.ALREADY_EXISTS:
            raise


async def _sweep(client: Client, every: timedelta) -> None:
    schedule = Schedule(
        action=ScheduleActionStartWorkflow("SweepWorkflow", id=SWEEP_WORKFLOW_ID, task_queue=TASK_QUEUE),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=every)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP),
    )
    try:
        await client.create_schedule("watchbill-sweep", schedule, trigger_immediately=True)
    except ScheduleAlreadyRunningError:
        await client.get_schedule_handle("watchbill-sweep").update(lambda there: _at_interval(there, schedule.spec))


def _at_interval(there: ScheduleUpdateInput, spec: ScheduleSpec) -> ScheduleUpdate | None:
    """An earlier start may have made it with another interval. Whether it is paused is an operator's to say."""
    schedule = there.description.schedule
    if schedule.spec.intervals == spec.intervals:
        return None
    schedule.spec = spec
    return ScheduleUpdate(schedule)
