"""A person's decision does exactly what it names, once, or says in one sentence why it does nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.decision import (
    Already,
    Decision,
    DecisionKind,
    PlanFacts,
    Refusal,
    decide_plan,
    decide_task,
    reopen_plan,
)
from domain.duties import Actor
from domain.lifecycle import Move
from domain.plan import PlanEvent, PlanState
from domain.task import (
    RESUME_AT,
    RUNNABLE,
    Question,
    QuestionKind,
    QuestionState,
    TaskEvent,
    TaskFacts,
    TaskState,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HEAD, OTHER = "c" * 40, "d" * 40


def a_plan(**facts: Any) -> PlanFacts:
    plan = PlanFacts(
        id="demo-12345678", owner="ann", slug="demo", title="Demo", state=PlanState.IN_PROGRESS, seq=7,
        paused=False, repository="acme/shop", base="main", merge="by-hand", concurrency=1, revision=1,
        digest="d" * 64,
    )  # fmt: skip
    return replace(plan, **facts)


def a_task(state: TaskState = TaskState.PAUSED, **facts: Any) -> TaskFacts:
    task = TaskFacts(
        id="demo-12345678-1", plan_id="demo-12345678", owner="ann", ordinal=1, title="A box", body="",
        state=state, seq=7, round=2, epoch=1, repository="acme/shop", base="main", merge="by-hand",
        runtime="shell", timeout=60, attempts=4, allowed_runs=4, runs_begun=3, head_sha=HEAD,
        question=a_question() if state is TaskState.PAUSED else None,
    )  # fmt: skip
    return replace(task, **facts)


def a_question(
    kind: QuestionKind = QuestionKind.NO_PROGRESS, resume_at: TaskState = TaskState.WORKING, **facts: Any
) -> Question:
    return replace(Question("q1", "demo-12345678-1", kind, "Why?", resume_at), **facts)


def decide(
    kind: DecisionKind, task: TaskFacts, names: str = "", text: str = "", question: Question | None = None
) -> Any:
    decision = Decision(kind, task.plan_id, task.ordinal, names, text, "bob")
    return decide_task(decision, a_plan(), task, question or task.question, NOW)


def decide_whole(kind: DecisionKind, plan: PlanFacts, *tasks: TaskFacts) -> Any:
    return decide_plan(Decision(kind, plan.id, by="bob"), plan, tasks, NOW)


def events(ruling: Any) -> list[tuple[str, str]]:
    assert isinstance(ruling, tuple), ruling
    return [(move.kind, str(move.event)) for move in ruling]


def of_task(ruling: Any) -> Move:
    """The move of the task itself, among those of a ruling."""
    assert isinstance(ruling, tuple), ruling
    (move,) = (move for move in ruling if move.kind == "task")
    assert isinstance(move, Move)
    return move


# Answers.


@pytest.mark.parametrize("resume_at", RESUME_AT)
def test_a_task_resumes_where_its_question_says(resume_at: TaskState) -> None:
    question = a_question(resume_at=resume_at)
    ruling = decide(DecisionKind.RESUME, a_task(question=question), "q1")
    assert events(ruling) == [("task", RESUME_AT[resume_at]), ("question", "answer")]


def test_an_answer_begins_a_new_round_with_as_many_runs_as_the_plan_allows() -> None:
    facts = of_task(decide(DecisionKind.RESUME, a_task(), "q1")).facts
    assert {"round": 3, "allowed_runs": 7, "question_id": None, "last_tree_sha": ""}.items() <= facts.items()


def test_what_a_person_says_reaches_the_next_run_and_is_kept_with_the_question() -> None:
    ruling = decide(DecisionKind.ANSWER, a_task(), "q1", text="  Use the other API. ")
    assert of_task(ruling).facts["note"] == "A person says: Use the other API."
    assert ruling[1].facts["answer"] == "Use the other API."


def test_a_resume_without_words_leaves_the_note_of_what_went_wrong() -> None:
    assert "note" not in of_task(decide(DecisionKind.RESUME, a_task(), "q1")).facts


def test_an_answer_without_words_is_refused() -> None:
    assert isinstance(decide(DecisionKind.ANSWER, a_task(), "q1", text="  \n"), Refusal)


@pytest.mark.parametrize("kind", [DecisionKind.RESUME, DecisionKind.ANSWER, DecisionKind.APPROVE])
@pytest.mark.parametrize("names", ["", "q2", HEAD])
def test_an_answer_that_does_not_name_the_open_question_is_told_its_name(kind: DecisionKind, names: str) -> None:
    ruling = decide(kind, a_task(), names, text="yes")
    assert isinstance(ruling, Refusal)
    assert "q1" in ruling.message


@pytest.mark.parametrize("state", [state for state in RUNNABLE if state is not TaskState.IN_REVIEW])
@pytest.mark.parametrize("kind", [DecisionKind.RESUME, DecisionKind.APPROVE])
def test_a_task_that_asks_nothing_takes_no_answer(state: TaskState, kind: DecisionKind) -> None:
    assert isinstance(decide(kind, a_task(state), "q1"), Refusal)


def test_an_answer_to_another_tasks_question_is_refused() -> None:
    other = a_question(task_id="demo-12345678-2", id="q2")
    assert isinstance(decide(DecisionKind.RESUME, a_task(), "q2", question=other), Refusal)


def test_a_second_click_on_an_answered_question_answers_nothing_else() -> None:
    """The task asks something new by now; the click was for the old question."""
    answered = a_question(state=QuestionState.ANSWERED, answer="resume")
    task = a_task(question=a_question(id="q2"))
    assert isinstance(decide(DecisionKind.RESUME, task, "q1", question=answered), Already)


def test_an_answer_to_a_question_that_was_withdrawn_has_not_been_carried_out() -> None:
    withdrawn = a_question(state=QuestionState.WITHDRAWN)
    assert isinstance(decide(DecisionKind.RESUME, a_task(TaskState.MERGED), "q1", question=withdrawn), Refusal)


def test_approving_work_out_of_scope_takes_it_to_its_checks_as_it_is() -> None:
    question = a_question(QuestionKind.OUT_OF_SCOPE)
    ruling = decide(DecisionKind.APPROVE, a_task(question=question), "q1")
    assert of_task(ruling).event == TaskEvent.RESUME_CHECKING


def test_resuming_work_out_of_scope_lets_it_be_done_again() -> None:
    question = a_question(QuestionKind.OUT_OF_SCOPE)
    ruling = decide(DecisionKind.RESUME, a_task(question=question), "q1")
    assert of_task(ruling).event == TaskEvent.RESUME_WORKING


def test_only_an_answer_about_a_predecessor_lets_a_task_begin_without_it() -> None:
    pending = TaskState.PENDING
    asked = a_task(question=a_question(QuestionKind.PREDECESSOR, pending))
    paused = a_task(question=a_question(QuestionKind.PAUSED_BY_PERSON, pending))
    assert of_task(decide(DecisionKind.RESUME, asked, "q1")).facts["after_waived"] is True
    assert "after_waived" not in of_task(decide(DecisionKind.RESUME, paused, "q1")).facts


def test_the_same_answer_given_twice_is_the_same_moves() -> None:
    first, second = (decide(DecisionKind.RESUME, a_task(), "q1") for _ in range(2))
    assert first == second


# Approving a pull request.


def test_approving_a_pull_request_approves_exactly_the_commit_it_names() -> None:
    move = of_task(decide(DecisionKind.APPROVE, a_task(TaskState.IN_REVIEW), HEAD))
    assert (move.event, move.facts) == (TaskEvent.APPROVED, {"approved_sha": HEAD})


@pytest.mark.parametrize("names", ["", OTHER, HEAD[:12]])
def test_approving_another_commit_than_the_pull_request_is_at_is_refused(names: str) -> None:
    ruling = decide(DecisionKind.APPROVE, a_task(TaskState.IN_REVIEW), names)
    assert isinstance(ruling, Refusal)
    assert HEAD[:12] in ruling.message


def test_a_second_approval_of_the_same_commit_changes_nothing() -> None:
    task = a_task(TaskState.IN_REVIEW, approved_sha=HEAD)
    assert isinstance(decide(DecisionKind.APPROVE, task, HEAD), Already)


def test_a_commit_that_comes_back_after_another_was_approved_can_be_approved_again() -> None:
    first = of_task(decide(DecisionKind.APPROVE, a_task(TaskState.IN_REVIEW), HEAD))
    back = a_task(TaskState.IN_REVIEW, approved_sha=OTHER, round=4)
    assert of_task(decide(DecisionKind.APPROVE, back, HEAD)).key != first.key


def test_the_same_commit_on_two_tasks_branches_takes_two_approvals() -> None:
    first = of_task(decide(DecisionKind.APPROVE, a_task(TaskState.IN_REVIEW), HEAD))
    other = a_task(TaskState.IN_REVIEW, id="demo-12345678-2", ordinal=2)
    assert of_task(decide(DecisionKind.APPROVE, other, HEAD)).key != first.key


# Pausing, retrying, cancelling.


@pytest.mark.parametrize("state", RUNNABLE)
def test_a_person_can_pause_a_task_wherever_it_is_and_it_resumes_there(state: TaskState) -> None:
    pause, ask = decide(DecisionKind.PAUSE, a_task(state))
    assert (pause.event, ask.event) == (TaskEvent.PAUSE, "ask")
    assert (ask.facts["kind"], ask.facts["resume_at"]) == (QuestionKind.PAUSED_BY_PERSON, state)


def test_pausing_a_paused_task_asks_no_second_question() -> None:
    assert isinstance(decide(DecisionKind.PAUSE, a_task()), Already)


def test_a_retry_lets_a_failed_task_begin_anew_and_reopens_its_plan() -> None:
    decision = Decision(DecisionKind.RETRY, "demo-12345678", 1, by="bob")
    failed = a_task(TaskState.FAILED, reason="gave up")
    ruling = decide_task(decision, a_plan(state=PlanState.COMPLETED), failed, None, NOW)
    assert events(ruling) == [("task", TaskEvent.RETRY), ("plan", PlanEvent.REOPEN)]
    assert {"round": 3, "allowed_runs": 7, "reason": ""}.items() <= of_task(ruling).facts.items()


@pytest.mark.parametrize("state", [state for state in TaskState if state is not TaskState.FAILED])
def test_only_a_failed_task_can_be_retried(state: TaskState) -> None:
    assert isinstance(decide(DecisionKind.RETRY, a_task(state)), Refusal)


def test_cancelling_a_task_withdraws_what_it_asked() -> None:
    ruling = decide(DecisionKind.CANCEL, a_task(), text="not needed")
    assert events(ruling) == [("task", TaskEvent.CANCEL), ("question", "withdraw")]
    assert of_task(ruling).facts["reason"] == "cancel by bob: not needed"


def test_cancelling_twice_is_one_cancellation() -> None:
    assert isinstance(decide(DecisionKind.CANCEL, a_task(TaskState.CANCELLED)), Already)


@pytest.mark.parametrize("kind", [DecisionKind.CONFIRM, DecisionKind.ARCHIVE])
def test_what_concerns_a_whole_plan_is_not_decided_on_a_task(kind: DecisionKind) -> None:
    ruling = decide(kind, a_task(TaskState.WORKING))
    assert isinstance(ruling, Refusal)
    assert "demo" in ruling.message


# The whole plan.


def test_a_plan_that_is_paused_or_not_is_left_as_it_is() -> None:
    assert isinstance(decide_whole(DecisionKind.PAUSE, a_plan(paused=True)), Already)
    assert isinstance(decide_whole(DecisionKind.RESUME, a_plan(paused=False)), Already)


def test_pausing_again_after_a_resume_is_another_pause() -> None:
    """The plan's last receipt is in the key, so the second pause is no repeat of the first."""
    (first,) = decide_whole(DecisionKind.PAUSE, a_plan(seq=7))
    (second,) = decide_whole(DecisionKind.PAUSE, a_plan(seq=9))
    assert first.key != second.key


def test_a_pause_of_the_plan_stops_nothing_that_runs() -> None:
    working = a_task(TaskState.WORKING)
    assert events(decide_whole(DecisionKind.PAUSE, a_plan(), working)) == [("plan", PlanEvent.PAUSE)]


def test_cancelling_a_plan_cancels_what_lives_and_leaves_what_has_ended() -> None:
    living = a_task(TaskState.WORKING)
    asking = a_task(id="demo-12345678-2", ordinal=2)
    merged = a_task(TaskState.MERGED, id="demo-12345678-3", ordinal=3)
    ruling = decide_whole(DecisionKind.CANCEL, a_plan(), living, asking, merged)
    assert [(move.subject, move.event) for move in ruling if move.kind == "task"] == [
        ("demo-12345678-1", TaskEvent.CANCEL),
        ("demo-12345678-2", TaskEvent.CANCEL),
    ]
    assert len({move.key for move in ruling}) == len(ruling)


def test_cancelling_a_plan_whose_tasks_have_all_ended_says_so() -> None:
    merged = a_task(TaskState.MERGED)
    assert isinstance(decide_whole(DecisionKind.CANCEL, a_plan(state=PlanState.COMPLETED), merged), Already)


def test_a_plan_that_nobody_confirmed_is_archived_and_not_cancelled() -> None:
    waiting = a_plan(state=PlanState.AWAITING_CONFIRMATION)
    assert isinstance(decide_whole(DecisionKind.CANCEL, waiting), Refusal)
    assert events(decide_whole(DecisionKind.ARCHIVE, waiting)) == [("plan", PlanEvent.ARCHIVE)]


@pytest.mark.parametrize("state", [PlanState.CONFIRMED, PlanState.IN_PROGRESS])
def test_a_plan_under_way_is_cancelled_before_it_is_archived(state: PlanState) -> None:
    assert isinstance(decide_whole(DecisionKind.ARCHIVE, a_plan(state=state)), Refusal)


@pytest.mark.parametrize("kind", [DecisionKind.APPROVE, DecisionKind.ANSWER, DecisionKind.RETRY])
def test_what_concerns_one_task_is_not_decided_on_a_plan(kind: DecisionKind) -> None:
    assert isinstance(decide_whole(kind, a_plan()), Refusal)


@pytest.mark.parametrize("state", [PlanState.COMPLETED, PlanState.ARCHIVED])
def test_a_plan_that_had_ended_lives_again_with_its_task(state: PlanState) -> None:
    assert events(reopen_plan(a_plan(state=state), "reopened", NOW, by=Actor.FORGE)) == [("plan", PlanEvent.REOPEN)]


def test_a_plan_that_lives_is_not_reopened() -> None:
    assert reopen_plan(a_plan(), "reopened", NOW, by=Actor.FORGE) == ()
