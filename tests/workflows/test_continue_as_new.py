"""Histories are bounded by continuing as new, and nothing that was said around it is lost."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from domain.decision import Outcome
from domain.identity import heartbeat_workflow_id
from domain.task import TaskState
from tests.temporal_fixture import dev_server
from tests.workflows.stage import Plan, Stage, open_stage
from tests.workflows.world import CRASHES, FAILS

pytestmark = pytest.mark.asyncio(loop_scope="module")

SUGGESTED = 30
"""Events after which this server suggests to continue as new."""

AT_ONCE = 10


@pytest.fixture(scope="module")
def hasty_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Temporal server of its own: when it suggests to continue as new is a setting of the whole server."""
    setting = f"limit.historyCount.suggestContinueAsNew={SUGGESTED}"
    with dev_server(tmp_path_factory.mktemp("hasty"), "--dynamic-config-value", setting) as server:
        yield server.address


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hasty(
    hasty_address: str, tmp_path_factory: pytest.TempPathFactory, migrated_file: Path
) -> AsyncIterator[Stage]:
    home = tmp_path_factory.mktemp("hasty-home")
    shutil.copyfile(migrated_file, home / "graph.db")
    async with open_stage(hasty_address, home, f"sqlite:///{home}/graph.db", interval=3600, follow=3600) as opened:
        yield opened


async def continued(stage: Stage, workflow_id: str) -> None:
    """Return once the workflow's chain is seen to have more than one run: visibility comes a little later."""
    async with asyncio.timeout(30):
        while len([run async for run in stage.client.list_workflows(f"WorkflowId = '{workflow_id}'")]) < 2:
            await asyncio.sleep(0.1)


async def waiting(stage: Stage) -> Plan:
    """A plan whose one pull request waits for a person."""
    plan = await stage.plan(merge="by-hand").begin()
    await plan.until(TaskState.IN_REVIEW)
    return plan


async def test_no_signalled_decision_is_lost_while_the_plan_continues_as_new(hasty: Stage) -> None:
    plan = await waiting(hasty)
    boxes = list(range(1001, 1201))
    for first in range(0, len(boxes), AT_ONCE):
        await asyncio.gather(*(plan.signal("pause", box) for box in boxes[first : first + AT_ONCE]))
    await hasty.until(lambda: len(plan.receipts(event="pause")) == len(boxes))
    await continued(hasty, plan.handle.id)
    await plan.decide("cancel")
    await plan.until_over()


async def test_signals_take_effect_in_the_order_in_which_they_came(hasty: Stage) -> None:
    plan = await waiting(hasty)
    wanted = ["pause", "resume"] * 15
    for kind in wanted:
        await plan.signal(kind)
    await hasty.until(lambda: len([one for one in plan.receipts("plan") if one.event in wanted]) == len(wanted))
    assert [one.event for one in plan.receipts("plan") if one.event in wanted] == wanted
    await plan.decide("cancel")
    await plan.until_over()


async def test_no_update_is_lost_while_the_plan_continues_as_new(hasty: Stage) -> None:
    plan = await waiting(hasty)
    for first in range(1001, 1061, 6):
        replies = await asyncio.gather(*(plan.decide("pause", box) for box in range(first, first + 6)))
        assert {reply.outcome for reply in replies} == {Outcome.REFUSED}
    assert len(plan.receipts(event="pause")) == 60
    await continued(hasty, plan.handle.id)
    await plan.decide("cancel")
    await plan.until_over()


async def test_a_task_and_its_heartbeat_go_on_where_they_stood(hasty: Stage) -> None:
    plan = hasty.plan(*[f"Box {n}" for n in range(1, 5)], attempts=6)
    plan.tell("author", CRASHES)
    plan.tell("check", FAILS, FAILS)
    await plan.begin()
    await plan.until_over()
    assert plan.started() == {"author-1": 1, "author-2": 1, "author-3": 1, "author-4": 1} | {
        f"check-{n}": 1 for n in (1, 2, 3)
    }
    await continued(hasty, plan.task_handle().id)
    await continued(hasty, heartbeat_workflow_id(plan.owner))
