"""Changing a plan while it is under way, as a person does it: with another text of it."""

from __future__ import annotations

import os
import pty
import subprocess
from dataclasses import replace

import pytest

from domain.identity import plan_id
from domain.plan import RevisionState
from tests.end_to_end.installation import OWNER, WATCHBILL
from tests.end_to_end.plans import PROVEN, Box
from tests.end_to_end.rig import Rig


def states(rig: Rig, slug: str) -> list[str]:
    found = rig.rows("SELECT state FROM revisions WHERE plan_id = :plan ORDER BY number", plan=plan_id(OWNER, slug))
    return [row.state for row in found]


def at_a_terminal(rig: Rig, answer: str, *arguments: object) -> str:
    """What a command says to somebody at a terminal who types this answer; it exits with 0."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [WATCHBILL, *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=rig.folder,
        env=rig.environment,
    )
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    said = b""
    # A terminal whose other end is closed reads as an error.
    with os.fdopen(ours, "rb", buffering=0) as terminal, pytest.raises(OSError, match="Input/output error"):
        while True:
            said += terminal.read(1 << 16)
    assert process.wait(100) == 0, said.decode()
    return said.decode()


def test_a_plan_under_way_is_revised_box_by_box(rig: Rig, gate):
    """One box is done, one is paused and gets another text, one has yet to begin, one is struck out, one is new."""
    done = Box("Write it", "echo one > revised-1.txt")
    paused = Box("Work on it", gate.script("revised-2.txt"), "after=1")
    pending = Box("Follow", "echo three > revised-3.txt", "after=2")
    dropped = Box("Drop me", "echo four > revised-4.txt", "after=3")
    boxes = (done, paused, pending, dropped)
    path = rig.submit("revised", *boxes, **PROVEN)
    agent = gate.agent(rig)

    # At work and ended: neither is touched, and each is told with its line.
    rig.write("revised", replace(done, script="echo other > revised-1.txt"), replace(paused, script="true"), **PROVEN)
    refused = rig.command("revise", path, expect=1).err
    for told in ("task 1 is merged", "task 2 is working", "task 3 is gone", "task 4 is gone"):
        assert told in refused
    assert str(path) in refused
    assert states(rig, "revised") == [RevisionState.CONFIRMED]

    rig.command("pause", "revised#2")
    rig.until_asked("revised", "paused_by_person", 2)
    rig.until(lambda: not agent.is_running(), "the agent has ended")
    other = replace(paused, script="test ! -e revised-2.txt && echo anew > revised-2.txt")
    new = (
        done,
        other,
        replace(pending, title="Follow on", script="echo drei > revised-3.txt"),
        replace(dropped, title="~~Drop me~~"),
        Box("And more", "echo five > revised-5.txt", "after=3"),
    )
    rig.write("revised", *new, **PROVEN)
    published = rig.command("revise", path)
    for told in (
        "~ 2. Work on it (paused): text",
        "    +test ! -e revised-2.txt && echo anew > revised-2.txt",
        "~ 3. Follow on (pending): title 'Follow' → 'Follow on'; text",
        "- 4. Drop me (pending): struck out, and cancelled",
        "+ 5. And more: new; by shell; after 3",
        "= 1 box unchanged",
        "watchbill confirm revised --digest",
        "watchbill revise revised --withdraw",
    ):
        assert told in published.out
    assert rig.command("revise", path, "--json").json["outcome"] == "already"
    assert states(rig, "revised") == ["confirmed", "proposed"]
    shown = rig.until(
        lambda: (seen := rig.command("status", "revised", "--json").json)["proposed"] and seen, "the revision is shown"
    )
    assert (shown["proposed"]["number"], shown["needs_person"], shown["revision"]) == (2, True, 1)
    assert "revision 2 waits to be confirmed: 1 box added, 2 boxes changed, 1 box removed" in [
        each["text"] for each in shown["waiting"]
    ]
    assert rig.task("revised", 3).title == "Follow"

    assert rig.command("confirm", "revised", "--json").json["outcome"] == "done"
    assert rig.command("confirm", path, "--json").json["outcome"] == "already"
    question = rig.until_asked("revised", "revised", 2)
    rig.command("resume", "revised#2", "--question", question)
    view = rig.until_completed("revised")
    assert [task.state for task in view.tasks] == ["merged", "merged", "merged", "cancelled", "merged"]
    # What the run before had begun was made for another text, and is no part of the task.
    files = [rig.file(f"revised-{n}.txt") for n in (1, 2, 3, 4, 5)]
    assert files == ["one\n", "anew\n", "drei\n", None, "five\n"]
    assert rig.task("revised", 2).runs == 2
    assert states(rig, "revised") == ["confirmed", "confirmed"]
    assert rig.command("status", "revised", "--wait").code == 0
    assert "revision 2 confirmed by" in rig.command("report", "revised", "--markdown").out


def test_a_revision_of_a_plan_that_has_ended_begins_it_again_and_another_is_withdrawn(rig: Rig):
    path = rig.submit("once-more", "Write it", **PROVEN)
    rig.until_completed("once-more")
    rig.write("once-more", "Write it", "Write more", **PROVEN)
    asked = at_a_terminal(rig, "", "revise", path)
    assert "+ 2. Write more: new; by shell" in asked
    assert "Let revision 2 hold? [y/N]" in asked
    assert "watchbill revise once-more --withdraw" in asked
    assert rig.view("once-more").proposed is not None
    assert rig.command("revise", "once-more", "--withdraw", "--json").json["outcome"] == "done"
    assert rig.command("revise", "once-more", "--withdraw", "--json").json["outcome"] == "already"
    assert rig.view("once-more").state == "completed"
    assert "revision 3 confirmed: 1 box added" in at_a_terminal(rig, "y", "revise", path)
    assert [task.state for task in rig.until_completed("once-more").tasks] == ["merged", "merged"]
    assert states(rig, "once-more") == ["confirmed", "withdrawn", "confirmed"]
    assert rig.command("revise", path, "--yes", "--json").json["outcome"] == "already"
    rig.write("once-more", "Write it", "Write more", "And more", **PROVEN)
    done = rig.command("revise", path, "--yes", "--json").json
    assert (done["outcome"], done["revised"]["number"], done["state"]) == ("done", 4, "in_progress")
    rig.until_completed("once-more")


def test_a_task_in_review_whose_text_was_revised_is_done_anew_in_the_same_pull_request(rig: Rig):
    path = rig.submit("in-review", Box("Write it", "echo one > in-review.txt\necho more > in-review-more.txt"))
    before = rig.until_state("in-review", 1, "in_review").head_sha
    rig.command("pause", "in-review#1")
    rig.write("in-review", Box("Write it", "echo another > in-review.txt"))
    rig.command("revise", path, "--yes")
    question = rig.until_asked("in-review", "revised")
    rig.command("resume", "in-review#1", "--question", question)
    task = rig.until_state("in-review", 1, "in_review")
    assert task.head_sha != before
    (pull,) = rig.pulls("in-review")
    assert (pull["head"]["sha"], "echo another > in-review.txt" in pull["body"]) == (task.head_sha, True)
    assert rig.command("approve", "in-review#1", "--sha", before, expect=3).err
    rig.command("approve", "in-review#1")
    assert rig.until_completed("in-review").tasks[0].state == "merged"
    assert (rig.file("in-review.txt"), rig.file("in-review-more.txt")) == ("another\n", None)
