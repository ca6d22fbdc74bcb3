"""A plan from its document to merged pull requests, and what people do to these."""

from __future__ import annotations

import sqlite3

import httpx

from tests.end_to_end.plans import PROVEN, REPOSITORY, Box
from tests.end_to_end.rig import Rig


def test_every_box_with_changes_becomes_one_pull_request_that_is_merged_with_proof(rig: Rig):
    rig.submit(
        "three",
        "Write the first",
        Box("Write the second", "test -e three-1.txt && echo second > three-2.txt", "after=1"),
        Box("Change nothing"),
        concurrency="3",
        **PROVEN,
    )
    view = rig.until_completed("three")
    assert [task.state for task in view.tasks] == ["merged", "merged", "no_changes"]
    assert [task.proof for task in view.tasks] == ["proven", "proven", ""]
    pulls = rig.pulls("three")
    assert len(pulls) == len(rig.branches("three")) == 2
    assert all(pull["merged_at"] for pull in pulls)
    assert rig.file("three-2.txt") == "second\n"
    rig.command("status", "three", "--wait")
    report = rig.command("report", "three", "--markdown").out
    assert "unproven" not in report.lower()


def test_every_view_of_an_unconfined_run_says_so(rig: Rig):
    rig.submit("open", "Write it", checks='["true"]')
    task = rig.until_state("open", 1, "in_review")
    said = "Runs are unconfined."
    for command in (("status", "open"), ("report", "open"), ("report", "open", "--markdown")):
        assert said in rig.command(*command).out
    assert said in rig.pulls("open")[0]["body"]
    told = rig.begin("watch", "open", "--since", "0")
    while "run 1-author-1: running (" not in (line := told.stdout.readline()):
        assert line
    told.kill()
    assert line.rstrip().endswith(", unconfined)")
    shown = rig.command("watch", "open#1", "--screen")
    assert ", unconfined: finished" in shown.out
    assert rig.command("watch", "open#1", "--screen", "--json").json["confinement"] == "unconfined"
    for workflow in (f"plan-{rig.view('open').plan_id}", f"task-{task.id}"):
        asked = rig.temporal("workflow", "metadata", "--workflow-id", workflow)
        assert said in asked
    rig.command("cancel", "open")
    rig.until_completed("open")


def test_a_merge_by_hand_arrives_by_webhook_and_ends_the_task(rig: Rig):
    """Nobody reads an open pull request by itself for a quarter of an hour here: the webhook has to come."""
    rig.submit("by-hand", "Write it", checks='["true"]')
    task = rig.until_state("by-hand", 1, "in_review")
    assert rig.view("by-hand").needs_person
    rig.forge("PUT", f"repos/{REPOSITORY}/pulls/{rig.pull_number('by-hand')}/merge")
    view = rig.until_completed("by-hand")
    assert (view.tasks[0].state, view.tasks[0].proof) == ("merged", "proven")
    assert view.tasks[0].head_sha == task.head_sha
    assert rig.task("by-hand").reason == ""


def test_an_approval_lets_watchbill_merge_exactly_the_commit_that_was_approved(rig: Rig):
    rig.submit("approved", "Write it")
    task = rig.until_state("approved", 1, "in_review")
    other = "0" * 40
    assert rig.command("approve", "approved#1", "--sha", other, expect=3).err
    assert rig.task("approved").state == "in_review"
    rig.command("approve", "approved#1", "--sha", task.head_sha)
    view = rig.until_completed("approved")
    assert view.tasks[0].state == "merged"
    assert rig.pulls("approved")[0]["head"]["sha"] == task.head_sha


def test_a_merge_without_proof_is_merged_and_shown_as_unproven(rig: Rig):
    rig.submit("unproven", "Write it")
    rig.until_state("unproven", 1, "in_review")
    page = f"{rig.addresses.github}/{REPOSITORY}/pull/{rig.pull_number('unproven')}"
    assert httpx.post(page, data={"action": "merge"}).status_code == 303
    view = rig.until_completed("unproven")
    assert (view.tasks[0].state, view.tasks[0].proof) == ("merged", "unproven")
    assert "unproven" in rig.command("report", "unproven", "--markdown").out.lower()


def test_a_closed_pull_request_ends_the_task_until_somebody_opens_it_again(rig: Rig):
    rig.submit("closed", "Write it")
    rig.until_state("closed", 1, "in_review")
    path = f"repos/{REPOSITORY}/pulls/{rig.pull_number('closed')}"
    rig.forge("PATCH", path, state="closed")
    assert rig.until_completed("closed").tasks[0].state == "closed"
    rig.command("status", "closed", "--wait", expect=6)

    rig.forge("PATCH", path, state="open")
    rig.until_state("closed", 1, "in_review")
    assert rig.view("closed").state == "in_progress"
    rig.forge("PUT", f"{path}/merge")
    assert rig.until_completed("closed").tasks[0].state == "merged"
    assert len(rig.pulls("closed")) == 1


def test_a_row_that_was_changed_by_hand_is_found_and_named_by_the_audit(rig: Rig):
    rig.submit("by-hand-row", "Write it", **PROVEN)
    task = rig.until_completed("by-hand-row").tasks[0]
    with sqlite3.connect(rig.home / "graph.db", timeout=30) as graph:
        graph.execute("UPDATE tasks SET proof = 'unproven' WHERE id = ?", (task.id,))
    [finding] = rig.command("audit", "by-hand-row", "--json", expect=1).json["findings"]
    assert (finding["subject"], finding["column"]) == (task.id, "proof")
    with sqlite3.connect(rig.home / "graph.db", timeout=30) as graph:
        graph.execute("UPDATE tasks SET proof = 'proven' WHERE id = ?", (task.id,))
