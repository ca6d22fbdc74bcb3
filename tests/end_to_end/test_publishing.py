"""Publishing and confirming: how often, by how many, and in whatever state the plan is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from domain.identity import plan_id
from tests.end_to_end.installation import OWNER
from tests.end_to_end.plans import REPOSITORY, Box, document
from tests.end_to_end.rig import Rig

STARTERS = 6


def test_six_starters_make_one_workflow_and_for_each_box_one_branch_and_one_pull_request(rig: Rig, gate):
    boxes = [Box(f"Write {n}", gate.script(f"six-{n}.txt")) for n in (1, 2)]
    path = rig.write("six", *boxes, checks='["true"]', merge="when-proven", concurrency="2")
    starters = [rig.begin("submit", path, "--confirm", "--json") for _ in range(STARTERS)]
    said = [starter.communicate(timeout=100) for starter in starters]
    assert [starter.returncode for starter in starters] == [0] * STARTERS, said
    outcomes = sorted(json.loads(out)["outcome"] for out, _ in said)
    assert outcomes == ["already"] * (STARTERS - 1) + ["done"]
    gate.open()
    rig.until_completed("six")
    assert len(gate.agents()) == 2
    assert len(rig.pulls("six")) == len(rig.branches("six")) == 2
    plan = plan_id(OWNER, "six")
    listed = rig.temporal("workflow", "list", "--query", f"WorkflowId = 'plan-{plan}'", "--output", "json")
    # Whoever saw the plan alive a moment before its end may begin its workflow again, which finds nothing to do.
    first, *again = sorted(json.loads(listed), key=lambda one: str(one["startTime"]))
    assert all(one["startTime"] >= first["closeTime"] for one in again), listed
    assert rig.rows("SELECT count(*) FROM runs WHERE plan_id = :plan AND role = 'author'", plan=plan)[0][0] == 2


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another text of the plan `matrix`."""
    path = tmp_path / "other.md"
    path.write_text(document("matrix", Box("Something else", "echo other > other.txt")))
    return path


def test_publishing_and_confirming_have_one_answer_in_every_state_of_the_plan(rig: Rig, other, gate):
    box = Box("Write it", gate.script("matrix.txt"))
    path = rig.write("matrix", box, checks='["true"]', merge="when-proven")

    def outcome(*arguments: object, expect: int = 0) -> str:
        return str(rig.command(*arguments, "--json", expect=expect).json["outcome"])

    # Before anything was published.
    assert outcome("confirm", path, expect=4) == "refused"
    assert "has been published" in rig.command("confirm", path, expect=4).err

    # Published, and not yet confirmed.
    assert outcome("submit", other) == "done"
    assert outcome("submit", other) == "already"
    assert outcome("submit", path) == "done"
    assert outcome("confirm", other, expect=3) == "refused"
    assert rig.rows("SELECT count(*) FROM tasks WHERE plan_id = :plan", plan=plan_id(OWNER, "matrix"))[0][0] == 0

    # Confirmed, under way, ended, and with its history gone.
    assert outcome("confirm", path) == "done"

    def later() -> None:
        assert outcome("confirm", path) == "already"
        assert outcome("confirm", "matrix") == "already"
        assert outcome("submit", path) == "already"
        assert outcome("submit", path, "--confirm") == "already"
        assert outcome("submit", other, expect=3) == "refused"
        assert outcome("submit", other, "--confirm", expect=3) == "refused"
        assert outcome("confirm", other, expect=3) == "refused"
        assert rig.command("status", "matrix", "--json").json["digest"] == rig.view("matrix").digest

    later()
    rig.until_state("matrix", 1, "working")
    later()
    gate.open()
    rig.until_completed("matrix")
    later()
    workflow = f"plan-{plan_id(OWNER, 'matrix')}"
    rig.temporal("workflow", "delete", "--workflow-id", workflow, "--yes")
    later()
    assert [pull["state"] for pull in rig.pulls("matrix")] == ["closed"]
    assert rig.branches("matrix") == [f"watchbill/{plan_id(OWNER, 'matrix')}-1"]
    assert rig.file("matrix.txt") == f"begun by {gate.agents()[0]}\nended\n"
    assert rig.file("other.txt") is None


def test_a_plan_is_the_same_plan_whatever_its_title_and_file_are_called(rig: Rig, tmp_path):
    rig.submit("same-slug", "Write it", checks='["true"]', merge="when-proven")
    rig.until_completed("same-slug")
    renamed = tmp_path / "elsewhere.md"
    renamed.write_text(document("same-slug", "Write it", title="Another title"))
    assert rig.command("submit", renamed, "--confirm", "--json", expect=3).json["outcome"] == "refused"
    assert len(rig.pulls("same-slug", REPOSITORY)) == 1
