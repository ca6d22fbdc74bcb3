"""Histories of earlier versions replay with this one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from worker.plugin import watchbill_plugin
from worker.wiring import WORKFLOWS

STORED = sorted((Path(__file__).parents[1] / "histories").glob("*.json"))


@pytest.fixture(scope="module")
def replayer() -> Replayer:
    return Replayer(workflows=WORKFLOWS, plugins=[watchbill_plugin()])


@pytest.mark.parametrize("stored", STORED, ids=lambda path: path.stem)
async def test_a_stored_history_replays(replayer: Replayer, stored: Path) -> None:
    await replayer.replay_workflow(WorkflowHistory.from_json(stored.stem, stored.read_text()))


def test_every_kind_of_workflow_has_a_stored_history() -> None:
    started = {
        json.loads(path.read_text())["events"][0]["workflowExecutionStartedEventAttributes"]["workflowType"]["name"]
        for path in STORED
    }
    assert started == {workflow.__name__ for workflow in WORKFLOWS}
