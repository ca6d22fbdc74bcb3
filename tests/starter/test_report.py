"""The report is made of facts alone, and is the same on every surface."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import pytest

from domain.projection import Check
from domain.review import ReviewFacts, ReviewState
from domain.spending import Share, Spending, total
from domain.view import PlanView, TaskView
from starter.output import _json
from starter.reporting.building import Known, Told, build, morning, unmetered
from starter.reporting.markdown import morning_to_markdown, to_markdown
from store.reports import Attempt, Happened, Seen, Work

AT = datetime(2026, 1, 1, tzinfo=UTC)
LATER = AT + timedelta(hours=9)
PLAN = "faster-1a2b3c4d"
PROVEN, OTHER = "a" * 40, "b" * 40

VIEW = PlanView(
    PLAN, "faster", "ada", "Faster", "in_progress", "acme/shop", "main", "by-hand", paused=False,
    revision=1, digest="d" * 64, seq=12, head="c" * 64,
    tasks=(
        TaskView(1, "One", "merged", f"{PLAN}-1", proof="unproven", pull_url="http://forge/1"),
        TaskView(2, "Two", "paused", f"{PLAN}-2", question_id="q", question="Which name?"),
        TaskView(3, "Three", "done"),
        TaskView(4, "Four", "failed", f"{PLAN}-4", reason="It would not do."),
        TaskView(5, "Five", "pending", f"{PLAN}-5"),
    ),
)  # fmt: skip
WORK = Work(f"{PLAN}-1", PLAN, "", "shell", "", None, OTHER, PROVEN, OTHER, 1)
SEEN = [
    Seen(PLAN, f"{PLAN}-1", "check", "make test", PROVEN, 0),
    Seen(PLAN, f"{PLAN}-1", "check", "make test", OTHER, 2),
    Seen(PLAN, f"{PLAN}-1", "agent_crash", "", "", None),
]
ATTEMPTS = [
    Attempt("r1", PLAN, f"{PLAN}-1", "author", 1, "finished", "done", "claude", "a-model"),
    Attempt("r2", PLAN, f"{PLAN}-1", "check", 1, "running", "", "shell", ""),
]


def happened(seconds: float, kind: str, subject: str, event: str, before: str | None, after: str) -> Happened:
    return Happened(PLAN, kind, subject, event, before, after, AT + timedelta(seconds=seconds), f"{event} by ada")


STORY = [
    happened(0, "plan", PLAN, "publish", None, "awaiting_confirmation"),
    happened(5, "plan", PLAN, "confirm", "awaiting_confirmation", "confirmed"),
    happened(6, "task", f"{PLAN}-1", "begin", "pending", "working"),
    happened(6, "task", f"{PLAN}-4", "fail", "pending", "failed"),
    happened(7, "run", "r1", "start", None, "starting"),
    happened(9.25, "run", "r1", "finish", "running", "finished"),
    happened(12, "run", "r1", "lose", "finished", "lost"),
    happened(13, "run", "r2", "start", None, "starting"),
    happened(16.5, "task", f"{PLAN}-1", "merged", "in_review", "merged"),
]


def share(task: int, run: str, role: str, model: str, spent: int, held: int = 0, calls: int = 1) -> Share:
    spending = Spending(held, spent, calls, 0, {"input": 10, "output": 3})
    return Share(PLAN, f"{PLAN}-{task}", run, role, model, spending)


SHARES = [share(1, "r1", "author", "a-model", 2_000_000_000), share(2, "r3", "check", "b-model", 500_000_000, 7, 2)]
KNOWN = Known(
    VIEW, "Why we do this.", Told.of(STORY), {WORK.task_id: WORK}, ATTEMPTS, SEEN, SHARES, budget_nano_usd=12 * 10**9
)


def report(since: datetime | None = None):
    return build(KNOWN, LATER, since)


def test_a_task_is_told_with_its_times_its_runs_and_its_crashes():
    task = report().tasks[0]
    assert (task.seconds, task.runs, task.check_runs, task.crashes) == (10.5, 1, 1, 1)


def test_a_run_is_told_until_its_end_and_its_loss_does_not_prolong_it():
    ended, at_work = report().tasks[0].attempts
    assert (ended.seconds, ended.spent_nano_usd) == (2.25, 2_000_000_000)
    assert (at_work.began_at, at_work.ended_at, at_work.seconds) == ("2026-01-01T00:00:13.000+00:00", "", None)


def test_the_checks_are_those_of_the_commit_that_was_proven():
    assert report().tasks[0].checks == (Check("make test", PROVEN, 0),)


def test_what_persons_said_is_told():
    assert [word.text for word in report().words] == ["publish by ada", "confirm by ada"]


def test_an_unproven_merge_stands_out():
    told = to_markdown(report())
    assert "### Merged without proof\n\n- 1. One: **merged**, **unproven** in 10.5 s" in told
    assert "### Landed" not in told
    assert report().counts["unproven"] == 1


def test_what_failed_is_told_apart_and_why():
    assert "### Ended without a merge\n\n- 4. Four: **failed**\n    - It would not do.\n" in to_markdown(report())


def test_what_waits_for_a_person_says_why_and_what_answers_it():
    markdown = to_markdown(report())
    assert "## What waits for a person\n\n- 2. Two: Which name?\n    - `watchbill resume faster#2`\n" in markdown
    assert '    - `watchbill answer faster#2 "what the next run should know"`\n' in markdown
    assert f"the chain's head is `{'c' * 64}`" in markdown


def test_what_is_asked_in_several_lines_keeps_them():
    asking = replace(VIEW, tasks=(replace(VIEW.tasks[1], question="Which?\n\n```\nthis"),))
    told = to_markdown(build(replace(KNOWN, view=asking), LATER))
    assert "- 2. Two:\n\n  ````text\n  Which?\n\n  ```\n  this\n  ````\n\n    - `watchbill resume" in told


def test_what_it_cost_is_told_by_task_role_and_model():
    told = to_markdown(report())
    assert "2.50 USD spent, 0.000000007 USD held, 3 calls of models; the plan's budget is 12.00 USD.\n" in told
    assert "| 1. One | 1 | 10 | 0 | 0 | 3 | 2.00 USD | 0.00 USD |\n" in told
    assert "| check | 2 | 10 | 0 | 0 | 3 | 0.50 USD | 0.000000007 USD |\n" in told
    assert "| a-model | 1 | 10 | 0 | 0 | 3 | 2.00 USD | 0.00 USD |\n" in told


def test_the_parts_are_the_whole_and_nothing_is_told_where_no_model_was_called():
    costs = report().costs
    for parts in (costs.tasks, costs.roles, costs.models, costs.cells):
        assert Spending.of(part.spending for part in parts) == costs.whole
    assert "## What it cost" not in to_markdown(build(replace(KNOWN, shares=()), LATER))


def test_of_a_time_only_what_moved_in_it_and_what_waits_is_told():
    told = report(AT + timedelta(seconds=10))
    assert [(task.ordinal, task.moved) for task in told.tasks] == [(1, True), (2, False)]
    assert told.still == {"done": 1, "failed": 1, "pending": 1}
    markdown = to_markdown(told)
    assert "- 4. Four" not in markdown
    assert (
        "Of the other boxes nothing moved since 2026-01-01T00:00:10+00:00: 1 done, 1 failed, 1 pending.\n" in markdown
    )
    assert report().still is None


def test_a_morning_begins_with_what_waits_and_what_all_of_it_cost():
    plans = [
        report(AT),
        build(replace(KNOWN, view=replace(VIEW, plan_id="b-00000000", slug="b", title="B")), LATER, AT),
    ]
    told = morning("ada", plans, [*SHARES, replace(SHARES[0], plan="b-00000000")], LATER, AT)
    assert [(part.name, part.spending.spent_nano_usd) for part in told.costs.tasks] == [
        ("faster", 2_500_000_000),
        ("b", 2_000_000_000),
    ]
    markdown = morning_to_markdown(told)
    assert markdown.startswith("# Since 2026-01-01T00:00:00+00:00\n\n2 plans. Merged without proof: 2, ")
    assert "## What waits for a person\n\n- faster#2. Two: Which name?\n    - `watchbill resume faster#2`" in markdown
    assert markdown.index("## What it cost") < markdown.index("## Faster\n") < markdown.index("## B\n")
    assert "### What became of it\n\n#### Merged without proof" in markdown


def test_one_of_a_kind_is_told_in_the_singular():
    assert "    - 1 run, 1 check, 1 crashed\n" in to_markdown(report())
    assert "\n1 receipt; the chain" in to_markdown(replace(report(), seq=1))


def test_what_the_agent_says_is_told_as_its_own_word_and_means_nothing():
    said = {f"{PLAN}-1": "# Done\n\n```\nfixes #3 for @ada"}
    told = build(replace(KNOWN, said=said), LATER)
    assert told.tasks[0].said == said[f"{PLAN}-1"]
    markdown = to_markdown(told)
    assert "    - What the agent says of its work. In its own words, which nobody has checked:\n" in markdown
    assert "\n      ````text\n      # Done\n\n      ```\n      fixes #" in markdown
    assert "#3" not in markdown
    assert "@ada" not in markdown


def test_a_report_is_plain_data():
    told = json.loads(_json(report()))
    assert told["tasks"][1]["waits_for"] == "Which name?"
    assert told["costs"]["whole"]["spent_nano_usd"] == 2_500_000_000
    assert told["waiting"][0]["commands"][0] == "watchbill resume faster#2"
    assert asdict(report())["tasks"][0]["checks"] == ({"command": "make test", "commit_sha": PROVEN, "exit_code": 0},)


@pytest.mark.parametrize(("paused", "told"), [(True, "**in_progress, paused**: "), (False, "**in_progress**: ")])
def test_a_plan_that_is_paused_says_so(paused, told):
    assert told in to_markdown(build(replace(KNOWN, view=replace(VIEW, paused=paused)), LATER))


UNMETERED = Attempt(
    "r1", PLAN, f"{PLAN}-1", "author", 1, "finished", "done", "claude", "a-model", "networked", "unmetered"
)


def around(*spent: Share, since: datetime | None = None):
    """The report of a plan whose agents are unmetered, with what was counted beside them."""
    view = replace(
        VIEW, metering="unmetered", confinement="partly confined", spent_nano_usd=total(spent).spent_nano_usd or None
    )
    attempts = [UNMETERED, replace(ATTEMPTS[1], confinement="networked")]
    shares = [*spent, *unmetered(attempts, KNOWN.told, since)]
    return build(replace(KNOWN, view=view, attempts=attempts, shares=shares, budget_nano_usd=None), LATER, since)


def test_a_report_says_which_tasks_were_done_by_agents_that_are_not_metered():
    told = around()
    assert [task.metering for task in told.tasks] == ["unmetered", "", "", "", ""]
    assert [run.metering for run in told.tasks[0].attempts] == ["unmetered", ""]
    markdown = to_markdown(told)
    assert "merge by-hand. Runs are partly confined. Agents are unmetered: they call their models on" in markdown
    assert "    - 1 run (unmetered), 1 check, 1 crashed\n" in markdown


def test_what_they_cost_is_nowhere_said_to_be_nothing():
    told = around()
    assert (told.costs.whole.spent_nano_usd, told.costs.whole.unmetered_runs) == (None, 1)
    assert [run.spent_nano_usd for run in told.tasks[0].attempts] == [None, 0]
    markdown = to_markdown(told)
    assert "## What it cost\n\nWhat 1 unmetered run cost is not known.\n" in markdown
    for name in ("1. One", "author", "a-model"):
        assert f"| {name} |  |  |  |  |  | not known | 0.00 USD |\n" in markdown
    spoken = json.loads(_json(told))
    assert (spoken["metering"], spoken["spent_nano_usd"], spoken["tasks"][0]["metering"]) == (
        "unmetered", None, "unmetered",
    )  # fmt: skip
    assert all(part["spending"]["spent_nano_usd"] is None for part in spoken["costs"]["roles"])
    night = morning_to_markdown(morning("ada", [told], list(unmetered([UNMETERED], KNOWN.told, AT)), LATER, AT))
    assert "wait for a person; what 1 unmetered run cost is not known.\n" in night.replace("thing waits", "wait")


def test_what_was_counted_beside_them_is_told_with_what_is_not():
    markdown = to_markdown(around(SHARES[0]))
    assert "2.00 USD spent, 1 call of models; what 1 unmetered run cost is not known.\n" in markdown
    assert "| author | 1 | 10 | 0 | 0 | 3 | 2.00 USD, and what is not known | 0.00 USD |\n" in markdown


def test_of_a_time_only_the_unmetered_runs_that_were_at_work_in_it_are_told():
    assert around(since=AT + timedelta(seconds=9)).costs.whole.unmetered_runs == 1
    assert around(since=AT + timedelta(seconds=10)).costs.whole == Spending()


def test_a_report_of_metered_agents_says_nothing_of_it():
    metered = replace(UNMETERED, metering="metered")
    told = build(replace(KNOWN, view=replace(VIEW, metering="metered"), attempts=[metered]), LATER)
    assert "unmetered" not in to_markdown(told)
    assert [run.spent_nano_usd for run in told.tasks[0].attempts] == [2_000_000_000]


WORDS = "# Fine\n\n```\nfixes #3 for @ada"
REVIEWS = [
    ReviewFacts("v1", f"{PLAN}-1", "r4", ReviewState.VOID, OTHER, "codex:gpt-5.5", why="it ended without a verdict"),
    ReviewFacts(
        "v2", f"{PLAN}-1", "r5", ReviewState.CHANGES_REQUESTED, OTHER, "codex:gpt-5.5", WORDS, "- `a.py:3`: no"
    ),
    ReviewFacts("v3", f"{PLAN}-1", "r6", ReviewState.APPROVED, PROVEN, "codex:gpt-5.5", "Of another commit."),
]


def test_what_reviewers_said_of_the_commit_that_it_stands_at_is_told_as_their_own_word():
    reviewer = Attempt("r5", PLAN, f"{PLAN}-1", "reviewer", 1, "finished", "done", "codex", "gpt-5.5")
    told = build(replace(KNOWN, reviews=REVIEWS, attempts=[*ATTEMPTS, reviewer]), LATER)
    first, second = told.tasks[0].reviews
    assert (first.verdict, first.why, first.commit_sha) == ("void", "it ended without a verdict", OTHER)
    assert (second.reviewer, second.verdict) == ("codex:gpt-5.5", "changes_requested")
    assert (second.summary, second.findings) == (WORDS, "- `a.py:3`: no")
    assert json.loads(_json(told))["tasks"][0]["reviews"][1]["verdict"] == "changes_requested"
    assert told.tasks[0].attempts[-1].role == "reviewer"
    markdown = to_markdown(told)
    assert "    - 1 run, 1 check, 1 review, 1 crashed\n" in markdown
    said = f"    - review by `codex:gpt-5.5` on `{OTHER[:12]}`: changes requested. In its own words, which nobody has"
    assert f"{said} checked:\n\n      ````text\n      # Fine\n\n      ```\n      fixes #" in markdown
    assert "      - `a.py:3`: no\n      ````\n" in markdown
    assert not any(each in markdown for each in ("#3", "@ada"))


def test_what_reviewers_said_of_earlier_commits_is_told_apart_from_what_counts():
    told = build(replace(KNOWN, reviews=REVIEWS), LATER)
    (earlier,) = told.tasks[0].earlier_reviews
    assert (earlier.commit_sha, earlier.verdict, earlier.summary) == (PROVEN, "approved", "Of another commit.")
    assert earlier not in told.tasks[0].reviews
    assert json.loads(_json(told))["tasks"][0]["earlier_reviews"][0]["commit_sha"] == PROVEN
    markdown = to_markdown(told)
    said = (
        f"    - before that, review by `codex:gpt-5.5` on `{PROVEN[:12]}`: approved. In its own words, which nobody has"
    )
    assert f"{said} checked:\n\n      ```text\n      Of another commit.\n" in markdown
    assert markdown.index("changes requested") < markdown.index("before that")


def test_a_review_passes_no_secret_on():
    secret = f"ghp_{'a1B2' * 9}"
    said = [replace(each, summary=secret, findings=secret, why=secret) for each in REVIEWS]
    told = build(replace(KNOWN, reviews=said), LATER)
    assert secret not in _json(told)
    assert _json(told).count("redacted") == 9
