"""Who may review whom, what a review says, and what follows from it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from domain.document import parse
from domain.errors import IllegalMove, InvalidPlan
from domain.flow import REVIEWED, STANDARD, Continue, Pause, Wait, flow_of, run_to_continue
from domain.judge import after_checks, after_review, after_reviews, approved
from domain.review import (
    REVIEW,
    VERDICT_SCHEMA,
    Reviewer,
    ReviewFacts,
    ReviewState,
    Verdict,
    judgment_in,
    reviewer_of,
    told,
)
from domain.run import EndKind, Outcome, Role, RunEnd, RunFacts, RunState
from domain.task import TASK, QuestionKind, TaskEvent, TaskFacts, TaskState
from domain.vendors import vendor_of
from tests.domain.test_flow import a_run, a_task

REVIEWER = "codex:gpt-5.5"
SHA = "c" * 40


@pytest.mark.parametrize(
    ("model", "maker"),
    [
        ("claude-sonnet-4-6", "anthropic"),
        ("openrouter/anthropic/claude-3.5-sonnet", "anthropic"),
        ("us.anthropic.claude-sonnet-4-6-v1:0", "anthropic"),
        ("gpt-5.5", "openai"),
        ("GPT-4o", "openai"),
        ("o3", "openai"),
        ("o4-mini", "openai"),
        ("gemini-2.5-pro", "google"),
        ("qwen3-coder", "alibaba"),
        ("o1x", ""),
        ("anthropic/my-own", ""),
        ("claudette", ""),
        ("", ""),
    ],
)
def test_a_models_maker_is_told_by_its_own_name_and_never_by_who_serves_it(model: str, maker: str) -> None:
    assert vendor_of(model) == maker


def document(*front: str, box: str = "- [ ] Do it") -> str:
    return "\n".join(["---", "repository: acme/shop", "runtime: claude", *front, "---", "## Tasks", box, ""])


def faults_of(text: str) -> list[tuple[int, str]]:
    with pytest.raises(InvalidPlan) as refused:
        parse(text, file_name="plan.md")
    return [(fault.line, fault.message) for fault in refused.value.faults]


def test_a_plan_names_reviewers_each_with_the_model_that_it_uses() -> None:
    plan = parse(document("reviewers: [codex, 'opencode:gemini-2.5-pro']"), file_name="plan.md")
    assert plan.reviewers == ("codex:gpt-5.5", "opencode:gemini-2.5-pro")
    assert parse(document(), file_name="plan.md").reviewers == ()


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("reviewers: [claude]", "claude:claude-sonnet-4-6 is anthropic's like the author's claude-sonnet-4-6"),
        ("reviewers: ['opencode:claude-opus-4-1']", "is anthropic's like the author's"),
        ("reviewers: [opencode]", "has no model of its own"),
        ("reviewers: ['opencode:mystery-1']", "nobody can tell who made 'mystery-1'"),
        ("reviewers: [shell]", "'shell' is no agent that could review"),
        ("reviewers: [codex, codex]", "codex:gpt-5.5 stands twice"),
    ],
)
def test_a_reviewer_who_could_not_judge_is_refused_with_its_line(front: str, said: str) -> None:
    [(line, message)] = faults_of(document(front))
    assert line == 4
    assert said in message


def test_an_author_without_a_model_is_told_that_it_needs_one_and_nothing_else() -> None:
    [(_, message)] = faults_of(document("reviewers: [codex]", box="- [ ] Do it {runtime=opencode}"))
    assert message.startswith("model: opencode has none of its own")


def test_an_author_whose_maker_nobody_knows_has_no_reviewer() -> None:
    [(line, message)] = faults_of(document("reviewers: [codex]", box="- [ ] Do it {runtime=opencode model=mystery-1}"))
    assert (line, "nobody can tell who made 'mystery-1'" in message) == (4, True)


def test_a_scripts_author_is_a_person_and_a_box_that_is_done_has_none() -> None:
    box = "- [x] Did it {model=gpt-5.5 runtime=codex}\n- [ ] Do it {runtime=shell}\n  ```sh\n  true\n  ```"
    assert len(parse(document("reviewers: [codex]", box=box), file_name="plan.md").tasks) == 2


def test_reviewers_alone_may_prove_a_task() -> None:
    assert parse(document("reviewers: [codex]", "merge: when-proven"), file_name="plan.md").reviewers
    [(line, message)] = faults_of(document("merge: when-proven"))
    assert (line, "`checks` or `reviewers`" in message) == (4, True)


def test_what_a_review_may_cost_is_said_once_for_all_reviewers() -> None:
    plan = parse(document("reviewers: [codex]", "budget: 5 USD", "review_budget: 0.50 USD"), file_name="plan.md")
    assert plan.review_budget_nano_usd == 500_000_000
    assert parse(document("reviewers: [codex]"), file_name="plan.md").review_budget_nano_usd is None


@pytest.mark.parametrize(
    ("front", "line", "said"),
    [
        (("review_budget: 1 USD",), 4, "the plan names no `reviewers`"),
        (("reviewers: [codex]", "budget: 1 USD", "review_budget: 2 USD"), 6, "more than the plan's 1.00 USD"),
        (("reviewers: [codex]", "review_budget: much"), 5, "review_budget: "),
        (("reviewers: [codex]", "review_budget: 1 USD", "metering: off", "network: open"), 5, "it would hold nothing"),
    ],
)
def test_a_review_budget_that_could_not_hold_is_refused(front: tuple[str, ...], line: int, said: str) -> None:
    [(at, message)] = faults_of(document(*front))
    assert at == line
    assert said in message


def test_the_schema_is_one_and_takes_what_a_reviewer_says() -> None:
    Draft202012Validator.check_schema(VERDICT_SCHEMA)
    answer = {"verdict": "approve", "summary": "Good.", "findings": []}
    assert Draft202012Validator(VERDICT_SCHEMA).is_valid(answer)
    assert not Draft202012Validator(VERDICT_SCHEMA).is_valid({**answer, "verdict": "maybe"})
    assert not Draft202012Validator(VERDICT_SCHEMA).is_valid({"verdict": "approve", "summary": "Good."})


def test_changes_that_nobody_names_are_no_judgment() -> None:
    with pytest.raises(ValueError, match="asks for changes and names none"):
        judgment_in({"verdict": "request_changes", "summary": "Bad.", "findings": []})


def test_findings_are_told_where_they_stand() -> None:
    found = [{"path": "a.py", "line": 3, "text": "Off by one."}, {"path": "", "line": 0, "text": "No test."}]
    judgment = judgment_in({"verdict": "request_changes", "summary": "Nearly.", "findings": found})
    assert judgment.verdict is Verdict.REQUEST_CHANGES
    assert told(judgment) == "- `a.py:3`: Off by one.\n- No test."


@pytest.mark.parametrize(
    ("vendor", "authors", "allowed"),
    [
        ("openai", ["anthropic"], True),
        ("openai", [], True),
        ("openai", ["anthropic", "openai"], False),
        ("openai", ["", "anthropic"], False),
        ("", ["anthropic"], False),
    ],
)
def test_an_approval_by_the_authors_maker_is_no_move(vendor: str, authors: list[str], allowed: bool) -> None:
    facts = {"vendor": vendor, "author_vendors": authors}
    if allowed:
        assert REVIEW.after(None, "approve", facts) == "approved"
    else:
        with pytest.raises(IllegalMove):
            REVIEW.after(None, "approve", facts)
    assert REVIEW.after(None, "void", facts) == "void"


def test_a_plan_with_reviewers_has_one_more_step() -> None:
    task = a_task(reviewers=(REVIEWER,))
    assert (flow_of(task), flow_of(a_task())) == (REVIEWED, STANDARD)
    for step, following in pairwise(REVIEWED.steps):
        assert TASK.after(step, REVIEWED.onward(step)) == following


def reviewing(**facts: Any) -> TaskFacts:
    return a_task(**{"state": TaskState.REVIEWING, "reviewers": (REVIEWER,), "head_sha": SHA, "tree_sha": "t", **facts})


def a_review_run(state: RunState = RunState.FINISHED, number: int = 1, **facts: Any) -> RunFacts:
    run = a_run(state, number, **{"role": Role.REVIEWER, "ordinal": 1, "start_sha": SHA, **facts})
    return replace(run, id=f"demo-12345678-1-reviewer-{number}")


def a_review(state: ReviewState, number: int = 1, **facts: Any) -> ReviewFacts:
    run = f"demo-12345678-1-reviewer-{number}"
    values: dict[str, Any] = {"summary": "So it is.", "findings": "- `a.py:3`: Off by one."}
    return ReviewFacts(f"{run}-review", "demo-12345678-1", run, state, SHA, REVIEWER, **{**values, **facts})


def ended(run: RunFacts, **facts: Any) -> RunEnd:
    return RunEnd(run.id, run.state, EndKind.EXITED, **facts)


def test_passed_checks_lead_to_the_reviewers_and_prove_nothing_by_themselves() -> None:
    answer = after_checks(reviewing(state=TaskState.CHECKING, checks=("make test",)))
    assert isinstance(answer, Continue)
    assert answer.event is TaskEvent.CHECKED
    assert "proven_sha" not in answer.facts


def test_approvals_clear_the_commit_for_publishing_and_prove_it() -> None:
    run = a_review_run()
    task = reviewing(runs=(run,), reviews=(a_review(ReviewState.APPROVED),))
    assert after_review(task, run, ended(run), task.reviews[0]) is None
    assert approved(task, REVIEWER)
    answer = after_reviews(task)
    assert isinstance(answer, Continue)
    assert (answer.event, answer.facts) == (TaskEvent.CLEARED, {"proven_sha": SHA})


def test_an_approval_of_another_commit_or_by_another_reviewer_is_none() -> None:
    given = a_review(ReviewState.APPROVED)
    assert not approved(reviewing(reviews=(replace(given, commit_sha="d" * 40),)), REVIEWER)
    assert not approved(reviewing(reviews=(replace(given, reviewer="opencode:gemini-2.5-pro"),)), REVIEWER)


def test_requested_changes_go_back_to_the_author_with_what_was_found() -> None:
    run = a_review_run()
    task = reviewing(runs=(run,))
    answer = after_review(task, run, ended(run), a_review(ReviewState.CHANGES_REQUESTED))
    assert isinstance(answer, Continue)
    assert TASK.after(TaskState.REVIEWING, answer.event) == TaskState.WORKING
    assert answer.facts["round"] == task.round + 1
    assert "- `a.py:3`: Off by one." in answer.facts["note"]
    assert answer.facts["last_tree_sha"] == "t"


def test_a_rejection_asks_a_person() -> None:
    run = a_review_run()
    answer = after_review(reviewing(runs=(run,)), run, ended(run), a_review(ReviewState.REJECTED))
    assert isinstance(answer, Pause)
    assert (answer.kind, answer.resume_at) == (QuestionKind.REJECTED, TaskState.WORKING)
    assert "So it is." in answer.text


def test_a_void_review_is_given_again_so_often_and_then_a_person_is_asked() -> None:
    runs = tuple(a_review_run(RunState.CRASHED, number) for number in (1, 2, 3))
    void = a_review(ReviewState.VOID, why="it ended without a verdict")
    assert isinstance(after_review(reviewing(runs=runs[:1]), runs[0], ended(runs[0]), void), Wait)
    answer = after_review(reviewing(runs=runs), runs[2], ended(runs[2]), void)
    assert isinstance(answer, Pause)
    assert (answer.kind, answer.resume_at) == (QuestionKind.CANNOT_GO_ON, TaskState.REVIEWING)
    assert "it ended without a verdict" in answer.text


def test_a_run_whose_review_is_void_is_done_with() -> None:
    run = a_review_run()
    assert run_to_continue(reviewing(runs=(run,)), Role.REVIEWER, 1) == run
    task = reviewing(runs=(run,), reviews=(a_review(ReviewState.VOID),))
    assert run_to_continue(task, Role.REVIEWER, 1) is None


@pytest.mark.parametrize(
    ("outcome", "state", "kind"),
    [
        (Outcome.ASKED, RunState.FINISHED, QuestionKind.AGENT_ASKS),
        (Outcome.REFUSED, RunState.REFUSED, QuestionKind.OUT_OF_BUDGET),
        (Outcome.DENIED, RunState.REFUSED, QuestionKind.CANNOT_GO_ON),
    ],
)
def test_what_only_a_person_can_help_with_is_asked_at_once(
    outcome: Outcome, state: RunState, kind: QuestionKind
) -> None:
    run = a_review_run(state)
    end = ended(run, outcome=outcome, question="Which?")
    answer = after_review(reviewing(runs=(run,)), run, end, a_review(ReviewState.VOID))
    assert isinstance(answer, Pause)
    assert (answer.kind, answer.resume_at) == (kind, TaskState.REVIEWING)


def test_a_reviewer_is_written_as_it_is_read() -> None:
    assert str(reviewer_of("codex")) == "codex:gpt-5.5"
    assert reviewer_of("opencode:vendor/gemini-2.5-pro") == Reviewer("opencode", "vendor/gemini-2.5-pro")
    assert reviewer_of(str(reviewer_of("codex"))) == reviewer_of("codex")
