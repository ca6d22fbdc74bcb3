"""`python -m tests.histories.record`: record the histories that later versions must still replay.

Real workflows make them, on a Temporal and a store of their own, with a scripted host and forge. Record
anew only when an incompatible change is meant, which means that running workflows are drained first.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from domain.identity import heartbeat_workflow_id
from domain.pull import Merge, MergeKind
from domain.task import TaskState
from store.database import migrate
from tests.temporal_fixture import dev_server
from tests.workflows.stage import Plan, Stage, document, open_stage
from tests.workflows.world import CRASHES, FAILS, Held, Left

FOLDER = Path(__file__).parent


async def eventful(stage: Stage) -> Plan:
    """Nearly everything that can happen on the way: crash, rework, questions, gates, a refused merge."""
    plan = stage.plan("First", "Second {after=1}", owner="ada", paths='["src/**"]')
    plan.tell("author", CRASHES)
    plan.tell("check", FAILS)
    plan.tell("collect", Left(), Left(), Left(strays=("deploy/key.txt",)))
    plan.tell("merge", Merge(MergeKind.BLOCKED, reason="1 approving review is required"))
    second = Held()
    plan.tell("author", second, ordinal=2)
    await plan.begin()
    asked = await plan.until(TaskState.PAUSED)
    assert asked.question is not None
    await plan.decide("approve", 1, asked.question.id)
    await stage.until(lambda: plan.events()[-1] == "blocked")
    await plan.hint()
    await plan.until_started(ordinal=2)
    await plan.signal("pause")
    await plan.signal("resume")
    await plan.signal("pause", 2)
    asked = await plan.until(TaskState.PAUSED, 2)
    assert asked.question is not None
    await plan.signal("answer", 2, asked.question.id, "Go on.")
    await plan.until_over()
    return plan


async def simple(stage: Stage) -> Plan:
    plan = await stage.plan(owner="grace").begin()
    await plan.until_over()
    return plan


async def followed(stage: Stage) -> Plan:
    """Merged by hand after its workflow had ended."""
    plan = await stage.plan(owner="joan", merge="by-hand").begin()
    await plan.until(TaskState.IN_REVIEW)
    stage.forge.push(plan.task(), "somebody's commit")
    await plan.hint()
    await stage.until(lambda: plan.events()[-3:] == ["head_moved", "cleared", "published"])
    await plan.decide("cancel", 1)
    await plan.until_over()
    stage.forge.merge(plan.task())
    await plan.hint()
    await plan.until(TaskState.MERGED)
    return plan


async def revised(stage: Stage) -> Plan:
    """Another text while it is under way: a paused task is changed, another struck out, and one is new."""
    plan = stage.plan("First", "Second {after=1}", owner="mary")
    plan.tell("author", Held())
    await plan.begin()
    await plan.until_started()
    await plan.decide("pause", 1)
    await plan.until(TaskState.PAUSED)
    text = document(plan.slug, "The first", "~~Second~~", "Third {after=1}")
    for answer in ("withdraw", "confirm"):
        published = await stage.temporal.publish(plan.id, replace(plan.publication(text), revise=True))
        assert published.revised is not None
        await plan.decide(answer, names=published.revised.digest)
    asked = plan.facts().question
    assert asked is not None
    await plan.decide("resume", 1, asked.id)
    await plan.until_over()
    return plan


async def record(address: str, home: Path) -> None:
    migrate(f"sqlite:///{home}/graph.db")
    async with open_stage(address, home, f"sqlite:///{home}/graph.db", interval=3600, follow=3600) as stage:
        plays = (("simple", simple), ("eventful", eventful), ("followed", followed), ("revised", revised))
        for name, play in plays:
            plan = await play(stage)
            # The plan ended after its last task's nudge, and here no tick comes.
            await stage.nudge(plan.owner)
            await stage.until_closed(heartbeat_workflow_id(plan.owner))
            await _keep(stage, f"plan-{name}", plan.handle.id)
            await _keep(stage, f"task-{name}", plan.task_handle().id)
            await _keep(stage, f"heartbeat-{name}", heartbeat_workflow_id(plan.owner))
        await stage.client.execute_workflow("SweepWorkflow", id="a-sweep", task_queue="watchbill")
        await _keep(stage, "sweep", "a-sweep")


async def _keep(stage: Stage, name: str, workflow_id: str) -> None:
    history = await stage.client.get_workflow_handle(workflow_id).fetch_history()
    text = json.dumps(_anonymous(history.to_json_dict()), separators=(",", ":"), sort_keys=True)
    (FOLDER / f"{name}.json").write_text(text + "\n")


def _anonymous(value: Any) -> Any:
    """The same without the name of the machine that it was recorded on."""
    if isinstance(value, dict):
        return {key: _anonymous(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_anonymous(one) for one in value]
    if isinstance(value, str):
        return re.sub(rf"\b{os.getpid()}\b", "1", value.replace(socket.gethostname(), "host"))
    return value


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home, dev_server(Path(home)) as server:
        asyncio.run(record(server.address, Path(home)))
