"""The report is made of facts alone, and is the same on every surface."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

from domain.lifecycle import GENESIS, Receipt
from domain.run import Role
from domain.task import TaskFacts, TaskState
from domain.view import PlanView, TaskView
from starter.report import Check, Seen, build, to_markdown

AT = datetime(2026, 1, 1, tzinfo=UTC)
PLAN = "faster-1a2b3c4d"
PROVEN, OTHER = "a" * 40, "b" * 40

VIEW = PlanView(
    PLAN, "faster", "ada", "Faster", "in_progress", "acme/shop", "main", "by-hand", paused=False,
    revision=1, digest="d" * 64, seq=12, head="c" * 64,
    tasks=(
        TaskView(1, "One", "merged", f"{PLAN}-1", proof="unproven", pull_url="http://forge/1"),
        TaskView(2, "Two", "paused", f"{PLAN}-2", question_id="q", question="Which name?"),
        TaskView(3, "Three", "done"),
    ),
)  # fmt: skip
FACTS = TaskFacts(
    f"{PLAN}-1", PLAN, "ada", 1, "One", "", TaskState.MERGED, 9, 1, 1, "acme/shop", "main", "by-hand", "shell", 60,
    proven_sha=PROVEN, head_sha=OTHER, merged_sha=OTHER,
)  # fmt: skip
SEEN = [
    Seen(f"{PLAN}-1", "check", Check("make test", PROVEN, 0)),
    Seen(f"{PLAN}-1", "check", Check("make test", OTHER, 2)),
    Seen(f"{PLAN}-1", "agent_crash", Check("", "", None)),
]


def receipt(seconds: float, kind: str, subject: str, event: str, before: str | None, after: str, **facts) -> Receipt:
    return Receipt(
        PLAN, 1, kind, subject, before, after, event, "", f"{event} by ada", AT + timedelta(seconds=seconds), facts,
        GENESIS, "",
    )  # fmt: skip


RECEIPTS = [
    receipt(0, "plan", PLAN, "publish", None, "awaiting_confirmation"),
    receipt(5, "plan", PLAN, "confirm", "awaiting_confirmation", "confirmed"),
    receipt(6, "task", f"{PLAN}-1", "begin", "pending", "working"),
    receipt(7, "run", "r1", "start", None, "starting", task_id=f"{PLAN}-1", role=Role.AUTHOR),
    receipt(8, "run", "r2", "start", None, "starting", task_id=f"{PLAN}-1", role=Role.CHECK),
    replace(receipt(9, "plan", PLAN, "confirm", "confirmed", "confirmed"), refused="no"),
    receipt(16.5, "task", f"{PLAN}-1", "merged", "in_review", "merged"),
]


def report():
    return build(VIEW, "Why we do this.", [FACTS], SEEN, RECEIPTS)


def test_a_task_is_told_with_its_times_its_runs_and_its_crashes():
    task = report().tasks[0]
    assert (task.seconds, task.runs, task.check_runs, task.crashes) == (10.5, 1, 1, 1)


def test_the_checks_are_those_of_the_commit_that_was_proven():
    assert report().tasks[0].checks == (Check("make test", PROVEN, 0),)


def test_what_persons_said_is_told_and_what_was_refused_is_not():
    assert [word.text for word in report().words] == ["publish by ada", "confirm by ada"]


def test_an_unproven_merge_stands_out():
    assert "- 1. One: **merged**, **unproven** in 10.5 s" in to_markdown(report())
    assert report().counts["unproven"] == 1


def test_what_waits_for_a_person_says_why():
    markdown = to_markdown(report())
    assert "## What waits for a person\n\n- 2. Two: Which name?" in markdown
    assert f"the chain's head is `{'c' * 64}`" in markdown


def test_one_of_a_kind_is_told_in_the_singular():
    assert "    - 1 run, 1 check, 1 crashed\n" in to_markdown(report())
    assert "\n1 receipt; the chain" in to_markdown(replace(report(), seq=1))


def test_what_the_agent_says_is_told_as_its_own_word_and_means_nothing():
    said = {f"{PLAN}-1": "# Done\n\n```\nfixes #3 for @ada"}
    told = build(VIEW, "Why we do this.", [FACTS], SEEN, RECEIPTS, said=said)
    assert told.tasks[0].said == said[f"{PLAN}-1"]
    markdown = to_markdown(told)
    assert "    - What the agent says of its work. In its own words, which nobody has checked:\n" in markdown
    assert "\n      ````text\n      # Done\n\n      ```\n      fixes #" in markdown
    assert "#3" not in markdown
    assert "@ada" not in markdown


def test_a_report_is_plain_data():
    assert asdict(report())["tasks"][1]["waits_for"] == "Which name?"


def test_a_report_says_which_tasks_were_done_by_agents_that_are_not_metered():
    begun = [
        receipt(7, "run", "r1", "start", None, "starting", task_id=f"{PLAN}-1", role=Role.AUTHOR, runtime="claude"),
        receipt(8, "run", "r1", "spawn", "starting", "running", confinement="networked", metering="unmetered"),
        receipt(9, "run", "r2", "start", None, "starting", task_id=f"{PLAN}-1", role=Role.CHECK, runtime="check"),
        receipt(9, "run", "r2", "spawn", "starting", "running", confinement="networked"),
    ]
    view = replace(VIEW, metering="unmetered", confinement="partly confined", spent_nano_usd=None)
    told = build(view, "", [FACTS], SEEN, begun)
    assert [task.metering for task in told.tasks] == ["unmetered", "", ""]
    markdown = to_markdown(told)
    assert "merge by-hand. Runs are partly confined. Agents are unmetered: they call their models on" in markdown
    assert "    - 1 run (unmetered), 1 check, 1 crashed\n" in markdown
    assert "Calls of models cost" not in markdown
    counted = to_markdown(build(replace(view, spent_nano_usd=10_000_000), "", [FACTS], SEEN, begun))
    assert "What was counted of calls of models cost 0.01 USD" in counted


def test_a_report_of_metered_agents_says_nothing_of_it():
    assert "unmetered" not in to_markdown(build(replace(VIEW, metering="metered"), "", [FACTS], SEEN, RECEIPTS))
