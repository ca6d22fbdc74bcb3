"""What stands in Temporal: made where it is missing, by any number of workers at once."""

from __future__ import annotations

import asyncio

from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import ScheduleOverlapPolicy

from domain.heartbeat import HeartbeatPolicy
from domain.identity import SWEEP_WORKFLOW_ID, TASK_QUEUE
from tests.workflows.stage import namespace
from worker import standing


async def test_everything_is_made_once_however_many_workers_start(temporal_address: str) -> None:
    client = await namespace(temporal_address)
    policy = HeartbeatPolicy(interval=3600)
    await asyncio.gather(*(standing.prepare(client, policy) for _ in range(5)))
    there = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    assert standing._TYPES.items() <= dict(there.custom_attributes).items()
    schedules = [one.id async for one in await client.list_schedules()]
    assert schedules in ([], ["watchbill-sweep"])
    described = await client.get_schedule_handle("watchbill-sweep").describe()
    assert described.schedule.action.workflow == "SweepWorkflow"
    assert described.schedule.action.id.startswith(SWEEP_WORKFLOW_ID)
    assert described.schedule.action.task_queue == TASK_QUEUE
    assert described.schedule.policy.overlap is ScheduleOverlapPolicy.SKIP


async def test_another_interval_is_taken_over_and_a_pause_is_left_alone(temporal_address: str) -> None:
    client = await namespace(temporal_address)
    handle = client.get_schedule_handle("watchbill-sweep")
    await standing.prepare(client, HeartbeatPolicy(interval=3600))
    await handle.pause()
    await asyncio.gather(*(standing.prepare(client, HeartbeatPolicy(interval=90)) for _ in range(3)))
    described = await handle.describe()
    assert described.schedule.spec.intervals[0].every.total_seconds() == 90
    assert described.schedule.state.paused
    await handle.delete()


async def test_a_tick_that_a_schedule_would_refuse_is_swept_at_the_shortest(temporal_address: str) -> None:
    client = await namespace(temporal_address)
    await client.get_schedule_handle("watchbill-sweep").delete()
    await standing.prepare(client, HeartbeatPolicy(interval=0.2))
    described = await client.get_schedule_handle("watchbill-sweep").describe()
    assert described.schedule.spec.intervals[0].every.total_seconds() == standing.SHORTEST_INTERVAL
    await client.get_schedule_handle("watchbill-sweep").delete()
