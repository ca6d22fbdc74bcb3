"""Whatever is lost around a plan, it comes to the same end, by facts alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import psutil
import pytest

from domain.identity import heartbeat_workflow_id, plan_id, plan_workflow_id, task_id, task_workflow_id
from tests.end_to_end.installation import OWNER
from tests.end_to_end.plans import PROVEN, REPOSITORY, Box
from tests.end_to_end.rig import Rig
from tests.temporal_fixture import dev_server


@pytest.fixture
def rig(battered: Rig) -> Iterator[Rig]:
    yield battered
    battered.scene("DELETE", "faults")
    battered.assert_sound()


def merge(rig: Rig, slug: str) -> None:
    rig.forge("PUT", f"repos/{REPOSITORY}/pulls/{rig.pull_number(slug)}/merge")


def test_a_plan_goes_on_when_temporal_is_killed_under_it(rig: Rig, gate):
    boxes = Box("Wait", gate.script("temporal-1.txt")), Box("Follow", "echo 2 > temporal-2.txt", "after=1")
    rig.submit("temporal-dies", *boxes, **PROVEN)
    gate.agent(rig)
    rig.kill("temporal")
    gate.open()
    view = rig.until_completed("temporal-dies")
    assert [(task.state, task.runs) for task in view.tasks] == [("merged", 1)] * 2
    assert len(gate.agents()) == 1
    assert len(rig.pulls("temporal-dies")) == 2


def test_a_plan_goes_on_when_the_webhooks_door_is_killed(rig: Rig):
    rig.submit("door-dies", "Write it")
    rig.until_state("door-dies", 1, "in_review")
    pid = rig.pid("webhooks")
    os.kill(pid, signal.SIGKILL)
    merge(rig, "door-dies")
    assert rig.until_completed("door-dies").tasks[0].state == "merged"
    rig.until(lambda: rig.pid("webhooks") not in (None, pid), "the door is started again")


def test_deliveries_that_are_lost_are_made_up_for(rig: Rig):
    rig.scene("POST", "faults", kind="webhook-dropped", times=1000)
    rig.submit("lost", "Write it")
    rig.until_state("lost", 1, "in_review")
    merge(rig, "lost")
    assert rig.until_completed("lost").tasks[0].state == "merged"
    assert not rig.rows("SELECT * FROM inbox WHERE task_id = :task", task=task_id(plan_id(OWNER, "lost"), 1))


def test_deliveries_that_come_twice_and_out_of_order_leave_what_the_forge_says(rig: Rig):
    rig.submit("disorder", "Write it")
    rig.until_state("disorder", 1, "in_review")
    path = f"repos/{REPOSITORY}/pulls/{rig.pull_number('disorder')}"
    rig.scene("POST", "faults", kind="webhook-duplicated", times=2)
    rig.scene("POST", "faults", kind="webhook-permuted", path="pull_request.*", times=3)
    for state in ("closed", "open", "closed", "open"):
        rig.forge("PATCH", path, state=state)
    rig.forge("PUT", f"{path}/merge")
    rig.until_state("disorder", 1, "merged")
    hints = "SELECT handled_at FROM inbox WHERE task_id = :task AND action IN ('closed', 'reopened')"
    task = task_id(plan_id(OWNER, "disorder"), 1)
    rig.until(lambda: len(rig.rows(hints, task=task)) == 5, "every event came, each as one row", slug="disorder")
    rig.until(lambda: all(row.handled_at for row in rig.rows(hints, task=task)), "every hint is handled")
    assert rig.until_completed("disorder").tasks[0].state == "merged"
    assert len(rig.pulls("disorder")) == 1


@pytest.mark.parametrize("whose", ["plan", "task", "heartbeat", "all"])
def test_a_terminated_workflow_is_made_up_for_without_a_second_agent(rig: Rig, gate, whose):
    slug = f"terminated-{whose}"
    boxes = Box("Wait", gate.script(f"{slug}.txt")), Box("Follow", f"echo 2 > {slug}-2.txt", "after=1")
    rig.submit(slug, *boxes, **PROVEN)
    gate.agent(rig)
    plan = plan_id(OWNER, slug)
    ids = {
        "plan": plan_workflow_id(plan),
        "task": task_workflow_id(task_id(plan, 1)),
        "heartbeat": heartbeat_workflow_id(OWNER),
    }
    for workflow in ids.values() if whose == "all" else [ids[whose]]:
        rig.temporal("workflow", "terminate", "--workflow-id", workflow)
    gate.open()
    view = rig.until_completed(slug)
    assert [(task.state, task.runs) for task in view.tasks] == [("merged", 1)] * 2
    assert len(gate.agents()) == 1
    assert len(rig.pulls(slug)) == len(rig.branches(slug)) == 2


def test_answers_that_the_forge_loses_make_no_second_branch_or_pull_request(rig: Rig):
    """Every write is carried out and its answer lost, once or twice, and reads fail in between."""
    for method, path, times in (
        ("POST", "*/git-receive-pack", 1),
        ("POST", "*/pulls", 2),
        ("PUT", "*/merge", 1),
    ):
        rig.scene("POST", "faults", kind="lost-after", method=method, path=path, times=times)
    rig.scene("POST", "faults", kind="error-before", method="GET", path="/repos/*", times=3, status=502)
    rig.submit("lossy", "Write it", "Write another", **PROVEN)
    view = rig.until_completed("lossy")
    rig.scene("DELETE", "faults")
    assert [(task.state, task.runs) for task in view.tasks] == [("merged", 1)] * 2
    assert len(rig.pulls("lossy")) == len(rig.branches("lossy")) == 2


def test_a_plan_converges_from_facts_when_temporals_database_is_lost(tmp_path, gate):
    rig = Rig(tmp_path, WATCHBILL_LEASE="60", WATCHBILL_FOLLOW="2")
    rig.start()
    try:
        rig.submit("by-hand", "Write it")
        boxes = Box("Wait", gate.script("way.txt")), Box("Follow", "echo 2 > way-2.txt", "after=1")
        rig.submit("under-way", *boxes, **PROVEN)
        rig.until_state("by-hand", 1, "in_review")
        gate.agent(rig)
        rig.stop()
        lost = tmp_path / "lost"
        lost.mkdir()
        for file in rig.home.glob("temporal.db*"):
            file.rename(lost / file.name)

        rig.start()
        merge(rig, "by-hand")
        gate.open()
        assert rig.until_completed("by-hand").tasks[0].state == "merged"
        view = rig.until_completed("under-way")
        assert [(task.state, task.runs) for task in view.tasks] == [("merged", 1)] * 2
        assert len(gate.agents()) == 1
        assert len(rig.pulls("by-hand")) == 1
        assert len(rig.pulls("under-way")) == 2
        rig.assert_sound()

        told = psutil.Process(rig.pid("worker")).environ()
        with dev_server(lost, database=lost / "temporal.db") as server:
            worker = rig.begin("worker", environment={**told, "WATCHBILL_TEMPORAL_ADDRESS": server.address})
            _, said = worker.communicate(timeout=100)
        assert worker.returncode == 1
        assert "taken over" in said
        rig.assert_sound()
    finally:
        rig.stop()
