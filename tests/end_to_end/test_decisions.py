"""What a person says, by command and by plain signals in Temporal, and what comes of it."""

from __future__ import annotations

import subprocess

import pytest

from domain.identity import plan_id, task_id
from forge.mirror import Mirror
from tests.end_to_end.installation import OWNER
from tests.end_to_end.plans import PROVEN, REPOSITORY, Box
from tests.end_to_end.rig import Rig


def preserved(rig: Rig, slug: str, ordinal: int, path: str) -> list[str]:
    """What the file at `path` holds in each of the commits that the task's runs were preserved as."""
    mirror = Mirror(rig.home, REPOSITORY).path
    refs = f"refs/watchbill/{task_id(plan_id(OWNER, slug), ordinal)}"

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", f"--git-dir={mirror}", *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    names = git("for-each-ref", "--format=%(refname)", refs).split()
    return [git("show", f"{name}:{path}") for name in names]


def test_a_cancel_in_the_middle_of_a_run_ends_the_agent_and_keeps_its_work(rig: Rig, gate):
    rig.submit("cancelled", Box("Write it", gate.script("cancelled.txt")), **PROVEN)
    agent = gate.agent(rig)
    rig.command("cancel", "cancelled#1", "--note", "not wanted any more")
    assert rig.until_completed("cancelled").tasks[0].state == "cancelled"
    rig.until(lambda: not agent.is_running(), "the agent has ended")
    kept = rig.until(lambda: preserved(rig, "cancelled", 1, "cancelled.txt"), "its work is preserved")
    assert kept == [f"begun by {agent.pid}\n"]
    assert "not wanted any more" in rig.task("cancelled").reason
    rig.assert_untouched("cancelled")
    assert rig.command("cancel", "cancelled#1", "--json").json["outcome"] == "already"


def test_a_cancelled_task_in_review_has_its_pull_request_closed(rig: Rig):
    rig.submit("cancelled-late", "Write it")
    rig.until_state("cancelled-late", 1, "in_review")
    rig.signal("cancelled-late", "cancel", {"task": 1, "by": "ada"})
    assert rig.until_completed("cancelled-late").tasks[0].state == "cancelled"
    rig.until(lambda: rig.pulls("cancelled-late")[0]["state"] == "closed", "the pull request is closed")
    assert rig.pulls("cancelled-late")[0]["merged_at"] is None


def test_a_plan_is_cancelled_by_a_signal_and_what_was_merged_stays_merged(rig: Rig, gate):
    boxes = (
        "Write it",
        Box("Wait", gate.script("second.txt"), "after=1"),
        Box("Never begin", "true", "after=2"),
    )
    rig.submit("cancelled-plan", *boxes, **PROVEN)
    gate.agent(rig)
    rig.signal("cancelled-plan", "cancel", {"text": "enough"})
    view = rig.until_completed("cancelled-plan")
    assert [task.state for task in view.tasks] == ["merged", "cancelled", "cancelled"]
    assert len(rig.pulls("cancelled-plan")) == 1
    rig.command("archive", "cancelled-plan")
    assert rig.view("cancelled-plan").state == "archived"


def test_a_paused_plan_begins_nothing_and_lets_run_what_runs(rig: Rig, gate):
    rig.submit("gate", Box("Wait", gate.script("gate-1.txt")), "Come later", **PROVEN)
    gate.agent(rig)
    rig.command("pause", "gate")
    assert rig.command("pause", "gate", "--json").json["outcome"] == "already"
    gate.open()
    rig.until_state("gate", 1, "merged")
    # Another plan goes all the way meanwhile, so there were slots and beats enough.
    rig.submit("witness", "Write it", **PROVEN)
    rig.until_completed("witness")
    assert (rig.task("gate", 2).state, rig.task("gate", 2).runs) == ("pending", 0)
    rig.signal("gate", "resume", {})
    assert rig.until_completed("gate").tasks[1].state == "merged"


def test_a_paused_task_has_its_run_stopped_and_goes_on_from_what_that_left(rig: Rig, gate):
    rig.submit("paused", Box("Write it", f"test ! -e paused.txt || exit 0\n{gate.script('paused.txt')}"), **PROVEN)
    agent = gate.agent(rig)
    rig.signal("paused", "pause", {"task": 1, "by": "ada"})
    question = rig.until_asked("paused", "paused_by_person")
    rig.until(lambda: not agent.is_running(), "the agent has ended")
    assert rig.command("resume", "paused#1", "--question", "no-such-question", expect=3).err
    rig.command("resume", "paused#1", "--question", question)
    assert rig.until_completed("paused").tasks[0].state == "merged"
    assert rig.file("paused.txt") == f"begun by {agent.pid}\n"


def test_a_failing_check_is_reworked_once_then_asked_about_and_the_answer_reaches_the_next_run(rig: Rig):
    script = 'echo try > tried.txt\nif grep -q "by hand" "$WATCHBILL_NOTE"; then echo ok > checked.txt; fi'
    rig.submit("no-progress", Box("Write it", script), checks='["test -e checked.txt"]', merge="when-proven")
    question = rig.until_asked("no-progress", "no_progress")
    assert rig.task("no-progress").runs == 2
    checks = rig.evidence("no-progress", "check")
    assert [seen.exit_code for seen, _ in checks] == [1]
    rig.command("answer", "no-progress#1", "do it by hand")
    view = rig.until_completed("no-progress")
    assert (view.tasks[0].state, view.tasks[0].proof, view.tasks[0].runs) == ("merged", "proven", 3)
    again = rig.command("answer", "no-progress#1", "something else", "--question", question, "--json").json
    assert (again["outcome"], "do it by hand" in again["message"]) == ("already", True)


def test_a_script_that_fails_alike_twice_is_asked_about_and_resumed_by_a_signal(rig: Rig, tmp_path):
    script = f"echo try > twice.txt\nif [ ! -e {tmp_path}/mended ]; then echo cannot go on; exit 3; fi"
    rig.submit("twice", Box("Write it", script), **PROVEN)
    question = rig.until_asked("twice", "no_progress")
    crashes = rig.evidence("twice", "agent_crash")
    assert [(seen.exit_code, "cannot go on" in tail) for seen, tail in crashes] == [(3, True), (3, True)]
    assert "cannot go on" in rig.task("twice").question
    (tmp_path / "mended").touch()
    rig.signal("twice", "resume", {"task": 1, "names": question})
    assert rig.until_completed("twice").tasks[0].state == "merged"


def test_paths_outside_the_plan_are_asked_about_and_an_approval_takes_them_as_they_are(rig: Rig):
    script = "mkdir -p docs\necho in > docs/in.txt\necho out > out.txt"
    rig.submit("outside", Box("Write it", script), paths='["docs/"]', **PROVEN)
    question = rig.until_asked("outside", "out_of_scope")
    assert "out.txt" in rig.task("outside").question
    assert rig.pulls("outside") == []
    rig.signal("outside", "approve", {"task": 1, "names": question, "by": "ada"})
    assert rig.until_completed("outside").tasks[0].state == "merged"
    assert rig.file("out.txt") == "out\n"
    assert rig.task("outside").runs == 1


def test_a_cancelled_predecessor_is_asked_about_and_the_answer_lets_the_task_begin(rig: Rig, gate):
    rig.submit(
        "chain",
        Box("Wait", gate.script("chain.txt")),
        Box("Follow", "echo 2 > chain-2.txt", "after=1"),
        **PROVEN,
    )
    gate.agent(rig)
    rig.command("cancel", "chain#1")
    question = rig.until_asked("chain", "predecessor", 2)
    rig.signal("chain", "answer", {"task": 2, "names": question, "text": "begin all the same"})
    view = rig.until_completed("chain")
    assert [task.state for task in view.tasks] == ["cancelled", "merged"]


def test_a_signalled_approval_of_another_commit_approves_nothing(rig: Rig):
    rig.submit("signalled", "Write it")
    head = rig.until_state("signalled", 1, "in_review").head_sha
    rig.signal("signalled", "approve", {"task": 1, "names": "f" * 40, "by": "ada"})
    rig.until(lambda: [one for one in rig.receipts("signalled") if one.refused], "the refusal is recorded")
    assert rig.task("signalled").state == "in_review"
    rig.signal("signalled", "approve", {"task": 1, "names": head, "by": "ada"})
    assert rig.until_completed("signalled").tasks[0].state == "merged"
    assert any("ada" in one.cause for one in rig.receipts("signalled") if one.event == "approved")


def test_a_task_that_failed_begins_again_when_a_person_lets_it(rig: Rig):
    """A file where the workspace belongs is a defect that nobody foresaw: the task fails with its name."""
    rig.write("failed", "Write it", **PROVEN)
    task = task_id(plan_id(OWNER, "failed"), 1)
    obstacle = rig.home / "workspaces" / task
    obstacle.parent.mkdir(parents=True, exist_ok=True)
    obstacle.touch()
    rig.command("submit", rig.folder / "failed.md", "--confirm")
    assert rig.until_completed("failed").tasks[0].state == "failed"
    assert "defect" in rig.task("failed").reason
    assert rig.pulls("failed") == []
    obstacle.unlink()
    rig.command("retry", "failed#1", "--note", "the disk is mended")
    rig.until_state("failed", 1, "merged")
    assert rig.until_completed("failed").tasks[0].state == "merged"


@pytest.mark.parametrize("name", ["approve", "answer", "resume", "pause", "retry", "cancel", "archive", "withdraw"])
def test_a_signal_to_a_task_that_is_not_there_is_refused_and_recorded(rig: Rig, name):
    slug = f"nothing-{name}"
    rig.write(slug, "Write it")
    rig.command("submit", rig.folder / f"{slug}.md")
    rig.signal(slug, name, {"task": 7, "text": "words"})
    refused = rig.until(lambda: [one for one in rig.receipts(slug) if one.refused], "the refusal is recorded")
    assert "has no task 7" in refused[0].refused
    assert rig.view(slug).state == "awaiting_confirmation"
