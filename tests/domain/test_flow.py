"""A task's flow as data: which step follows, which run a step goes on with, and what an answer writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from domain.flow import STANDARD, Answer, Continue, Done, Fail, Pause, Wait, moves_of, run_to_continue
from domain.run import Role, RunFacts, RunState
from domain.task import TASK, Question, QuestionKind, QuestionState, TaskEvent, TaskFacts, TaskState

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ENDED_BADLY = [RunState.CRASHED, RunState.LOST, RunState.REFUSED, RunState.STOPPED]


def a_task(**facts: Any) -> TaskFacts:
    task = TaskFacts(
        id="demo-12345678-1", plan_id="demo-12345678", owner="ann", ordinal=1, title="A box", body="",
        state=TaskState.WORKING, seq=7, round=2, epoch=1, repository="acme/shop", base="main",
        merge="by-hand", runtime="shell", timeout=60,
    )  # fmt: skip
    return replace(task, **facts)


def a_run(state: RunState, number: int = 1, **facts: Any) -> RunFacts:
    run = RunFacts(
        id=f"demo-12345678-1-author-{number}", plan_id="demo-12345678", task_id="demo-12345678-1",
        role=Role.AUTHOR, number=number, round=2, epoch=number, runtime="shell", host="here", state=state,
    )  # fmt: skip
    return replace(run, **facts)


ASKED = Question("q1", "demo-12345678-1", QuestionKind.NO_PROGRESS, "Why?", TaskState.WORKING)
ANSWERS: list[Answer] = [
    Continue(TaskEvent.WORKED, "worked:1", "a run left something", {"head_sha": "c"}),
    Done(TaskEvent.MERGED, "merged:3", "somebody merged it"),
    Pause(QuestionKind.TOO_MANY_RUNS, "Go on?", TaskState.WORKING),
    Fail("there is no way"),
    Wait(3),
]


def test_each_step_leads_to_the_one_after_it_by_a_move_that_the_table_has() -> None:
    for step, following in pairwise(STANDARD.steps):
        assert TASK.after(step, STANDARD.onward(step)) == following


def test_a_step_without_a_run_begins_one() -> None:
    assert run_to_continue(a_task(), Role.AUTHOR) is None


@pytest.mark.parametrize("state", [RunState.STARTING, RunState.RUNNING])
def test_a_run_that_lives_is_attached_to(state: RunState) -> None:
    run = a_run(state)
    assert run_to_continue(a_task(runs=(run,)), Role.AUTHOR) is run


def test_a_run_that_finished_is_judged_and_no_second_one_begins_beside_it() -> None:
    run = a_run(RunState.FINISHED, head_sha="c" * 40)
    assert run_to_continue(a_task(runs=(run,)), Role.AUTHOR) is run


@pytest.mark.parametrize("state", [state for state in ENDED_BADLY if state is not RunState.LOST])
def test_what_a_broken_run_left_is_collected_before_another_begins(state: RunState) -> None:
    run = a_run(state)
    assert run_to_continue(a_task(runs=(run,)), Role.AUTHOR) is run
    assert run_to_continue(a_task(runs=(replace(run, head_sha="c" * 40),)), Role.AUTHOR) is None


def test_a_lost_run_has_nothing_to_collect() -> None:
    assert run_to_continue(a_task(runs=(a_run(RunState.LOST),)), Role.AUTHOR) is None


@pytest.mark.parametrize("state", ENDED_BADLY)
def test_a_broken_check_is_simply_begun_again(state: RunState) -> None:
    check = a_run(state, role=Role.CHECK, ordinal=1)
    assert run_to_continue(a_task(runs=(check,)), Role.CHECK, 1) is None


def test_the_latest_run_of_a_step_is_the_one_that_counts() -> None:
    broken, alive = a_run(RunState.CRASHED, 1, head_sha="c" * 40), a_run(RunState.RUNNING, 2)
    assert run_to_continue(a_task(runs=(broken, alive)), Role.AUTHOR) is alive


def test_a_check_is_told_from_other_checks_and_from_the_author() -> None:
    first = a_run(RunState.FINISHED, role=Role.CHECK, ordinal=1, exit_code=0)
    author = a_run(RunState.FINISHED, 2)
    task = a_task(runs=(first, author))
    assert run_to_continue(task, Role.CHECK, 1) is first
    assert run_to_continue(task, Role.CHECK, 2) is None
    assert run_to_continue(task, Role.AUTHOR) is author


def test_going_on_is_one_move_on_the_plans_chain() -> None:
    (move,) = moves_of(a_task(), ANSWERS[0], NOW)
    assert (move.kind, move.subject, move.event) == ("task", "demo-12345678-1", TaskEvent.WORKED)
    assert (move.chain, move.cause, move.at) == ("demo-12345678", "a run left something", NOW)
    assert move.facts == {"head_sha": "c"}


def test_a_pause_and_its_question_are_written_together_and_name_each_other() -> None:
    pause, ask = moves_of(a_task(), Pause(QuestionKind.OUT_OF_SCOPE, "Take it?", TaskState.WORKING, {"a": 1}), NOW)
    assert (pause.event, ask.event) == (TaskEvent.PAUSE, "ask")
    assert pause.facts == {"question_id": ask.subject, "a": 1}
    assert ask.facts["task_id"] == "demo-12345678-1"
    assert (ask.facts["kind"], ask.facts["text"]) == (QuestionKind.OUT_OF_SCOPE, "Take it?")
    assert ask.facts["resume_at"] == TaskState.WORKING


def test_waiting_writes_nothing() -> None:
    assert moves_of(a_task(), Wait(), NOW) == ()


@pytest.mark.parametrize("answer", [ANSWERS[1], ANSWERS[3]], ids=["ended by the forge", "failed"])
def test_whatever_ends_a_paused_task_withdraws_its_question(answer: Answer) -> None:
    moves = moves_of(a_task(state=TaskState.PAUSED, question=ASKED), answer, NOW)
    assert ("withdraw", "q1") in [(move.event, move.subject) for move in moves]


def test_a_question_that_was_answered_is_not_withdrawn() -> None:
    answered = replace(ASKED, state=QuestionState.ANSWERED)
    moves = moves_of(a_task(question=answered), ANSWERS[1], NOW)
    assert [move.kind for move in moves] == ["task"]


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_same_facts_make_the_same_moves_whenever_they_are_looked_at(answer: Answer) -> None:
    first = moves_of(a_task(), answer, NOW)
    later = moves_of(a_task(), answer, NOW + timedelta(hours=1))
    assert [replace(move, at=NOW) for move in later] == list(first)


@pytest.mark.parametrize("answer", ANSWERS)
def test_no_two_tasks_of_a_plan_ever_spend_the_same_key(answer: Answer) -> None:
    """Keys are unique in a chain, and a chain is a plan: the same commit may be on two tasks' branches."""
    other = a_task(id="demo-12345678-2", ordinal=2, seq=8)
    keys = [{move.key for move in moves_of(task, answer, NOW)} for task in (a_task(), other)]
    assert not keys[0] & keys[1]


def test_a_question_asked_later_is_another_question() -> None:
    pause = Pause(QuestionKind.NO_PROGRESS, "Why?", TaskState.WORKING)
    asked = {moves_of(a_task(seq=seq), pause, NOW)[1].subject for seq in (7, 9)}
    assert len(asked) == 2
