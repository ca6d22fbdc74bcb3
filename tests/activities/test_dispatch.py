"""Starting and waking workflows: any number of times, and one that fails holds up no other."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from activities.dispatch import AT_ONCE, Dispatch, _at_most
from domain.identity import heartbeat_workflow_id, task_workflow_id
from domain.publication import EnsureTasks, TaskRef


@pytest.fixture
def nobody() -> str:
    """An owner and plan that no other test has; nobody polls for their workflows."""
    return f"nobody-{uuid4().hex[:8]}"


async def test_ensuring_starts_once_and_afterwards_wakes(temporal_client: Client, nobody: str) -> None:
    dispatch = Dispatch(temporal_client)
    await asyncio.gather(*(dispatch.ensure_heartbeat(nobody) for _ in range(5)))
    handle = temporal_client.get_workflow_handle(heartbeat_workflow_id(nobody))
    history = await handle.fetch_history()
    signals = [one for one in history.events if one.HasField("workflow_execution_signaled_event_attributes")]
    assert len(signals) == 5
    await handle.terminate("by a test")
    await dispatch.ensure_heartbeat(nobody)
    assert (await handle.describe()).status is WorkflowExecutionStatus.RUNNING
    await handle.terminate("by a test")


async def test_tasks_are_ensured_without_waking_them(temporal_client: Client, nobody: str) -> None:
    refs = tuple(TaskRef(f"{nobody}-{n}", nobody, nobody, "A title") for n in range(1, 4))
    dispatch = Dispatch(temporal_client)
    for _ in range(2):
        await dispatch.ensure_tasks(EnsureTasks(refs))
    for ref in refs:
        handle = temporal_client.get_workflow_handle(task_workflow_id(ref.task_id))
        events = (await handle.fetch_history()).events
        assert not any(one.HasField("workflow_execution_signaled_event_attributes") for one in events)
        assert await (await handle.describe()).static_summary() == "A title"
        await handle.terminate("by a test")


async def test_waking_somebody_who_is_not_there_is_nothing(temporal_client: Client, nobody: str) -> None:
    await Dispatch(temporal_client).wake(f"plan-{nobody}")
    with pytest.raises(RPCError):
        await temporal_client.get_workflow_handle(f"plan-{nobody}").describe()


async def test_one_that_fails_holds_up_no_other_and_is_told_at_the_end() -> None:
    called: list[int] = []
    at_once = most = 0

    async def call(number: int) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        called.append(number)
        at_once -= 1
        if number == 3:
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        await _at_most(AT_ONCE, call, range(100))
    assert sorted(called) == list(range(100))
    assert most <= AT_ONCE
