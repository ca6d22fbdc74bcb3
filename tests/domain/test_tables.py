"""What the steps and a person's decisions ask of a task is what its tables allow, and every end is an end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest

from domain import judge, landing
from domain.decision import Decision, DecisionKind, PlanFacts, decide_plan, decide_task
from domain.duties import may
from domain.flow import Answer, Pause, moves_of
from domain.ledger import RESERVATION, ReservationEvent, ReservationState
from domain.lifecycle import Lifecycle, Move
from domain.owner import OWNER
from domain.plan import PLAN, REVISION, PlanEvent, PlanState
from domain.pull import Merge, MergeKind, Opened, OpenKind, PullRequest, Push, PushKind
from domain.run import EVIDENCE, RUN, Collected, EndKind, Role, RunEnd, RunEvent, RunFacts, RunState
from domain.task import (
    ENDED,
    QUESTION,
    RESUME_AT,
    RUNNABLE,
    TASK,
    Question,
    QuestionKind,
    QuestionState,
    TaskEvent,
    TaskFacts,
    TaskState,
)

LIFECYCLES = {
    lifecycle.name: lifecycle for lifecycle in (PLAN, REVISION, TASK, QUESTION, RUN, EVIDENCE, OWNER, RESERVATION)
}
every_lifecycle = pytest.mark.parametrize("lifecycle", LIFECYCLES.values(), ids=LIFECYCLES)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

LEAVES_ITS_END = {
    "plan": {
        (PlanState.COMPLETED, PlanEvent.ARCHIVE),
        # A person retries a task, or the forge reopens a pull request.
        (PlanState.COMPLETED, PlanEvent.REOPEN),
        (PlanState.ARCHIVED, PlanEvent.REOPEN),
    },
    "task": {
        # The forge's fact moves what has ended; only a merge is for ever.
        (TaskState.NO_CHANGES, TaskEvent.MERGED),
        (TaskState.CLOSED, TaskEvent.MERGED),
        (TaskState.CLOSED, TaskEvent.REOPENED),
        (TaskState.FAILED, TaskEvent.MERGED),
        (TaskState.FAILED, TaskEvent.REOPENED),
        (TaskState.CANCELLED, TaskEvent.MERGED),
        # A person's.
        (TaskState.FAILED, TaskEvent.RETRY),
    },
    # What nobody answered for counts as spent, until somebody knows better.
    "reservation": {(ReservationState.EXPIRED, ReservationEvent.SETTLE)},
    # What a run left went with the host that it lay on, before anybody could collect it.
    "run": {
        (state, RunEvent.LOSE) for state in (RunState.FINISHED, RunState.CRASHED, RunState.STOPPED, RunState.REFUSED)
    },
}


def a_task(state: TaskState, **facts: Any) -> TaskFacts:
    task = TaskFacts(
        id="demo-12345678-1", plan_id="demo-12345678", owner="ann", ordinal=1, title="A box", body="",
        state=state, seq=7, round=2, epoch=1, repository="acme/shop", base="main", merge="by-hand",
        runtime="shell", timeout=60, checks=("make test",), head_sha="c" * 40, tree_sha="t" * 40,
        pushed_sha="c" * 40, pull_number=3, host="here",
    )  # fmt: skip
    return replace(task, **facts)


def a_run(task: TaskFacts, role: Role, state: RunState) -> RunFacts:
    return RunFacts(
        id=f"{task.id}-{role}-1", plan_id=task.plan_id, task_id=task.id, role=role, number=1,
        round=task.round, epoch=1, runtime="shell", host="here", state=state, command="make test",
        ordinal=0 if role is Role.AUTHOR else 1,
    )  # fmt: skip


def a_pull(**facts: Any) -> PullRequest:
    pull = PullRequest(3, "http://forge/3", True, False, "watchbill/demo-12345678-1", "c" * 40, "main")
    return replace(pull, **facts)


def every_pull() -> Iterator[PullRequest]:
    for head, mergeable in product(("c" * 40, "d" * 40), (True, False, None)):
        yield a_pull(head_sha=head, mergeable=mergeable)
        yield a_pull(head_sha=head, mergeable=mergeable, open=False, closed_at="2026-03-01T12:00:00Z")
        yield a_pull(head_sha=head, open=False, merged=True, merged_sha="m" * 40)


def answers_in(task: TaskFacts) -> Iterator[Answer | None]:
    """Every answer that the step of this state can give, over all that it can observe."""
    match task.state:
        case TaskState.WORKING:
            yield judge.before_run(replace(task, runs_begun=task.allowed_runs))
            yield from _after_work(task)
        case TaskState.CHECKING:
            yield judge.after_checks(task)
            yield judge.after_checks(replace(task, checks=()))
            for state, code in product((s for s in RunState if s not in ("starting", "running")), (0, 1, None)):
                check = a_run(task, Role.CHECK, state)
                yield judge.after_check(task, check, RunEnd(check.id, state, EndKind.EXITED, code, "why", "tail"))
        case TaskState.PUBLISHING:
            for kind, sha in product(PushKind, ("c" * 40, "d" * 40, "")):
                yield landing.after_push(task, Push(kind, sha))
            for opened in product(OpenKind, (None, a_pull())):
                yield landing.after_open(task, Opened(*opened))
        case TaskState.IN_REVIEW:
            for pull, foreign in product(every_pull(), (True, False)):
                seen = replace(task, foreign_commits=foreign)
                yield landing.after_look(seen, pull)
                for outcome in MergeKind:
                    yield landing.after_merge(seen, pull, Merge(outcome, "m" * 40))
        case _:
            return
    if task.state in (TaskState.WORKING, TaskState.CHECKING, TaskState.PUBLISHING):
        yield judge.after_work_lost(task)
    yield Pause(QuestionKind.CANNOT_GO_ON, "the forge says no", task.state)


def _after_work(task: TaskFacts) -> Iterator[Answer]:
    for state, (changed, strays), faults, tree in product(
        (s for s in RunState if s not in ("starting", "running")),
        ((0, ()), (1, ()), (1, ("docs/b.md",))),
        ((), ("docs/c.md cannot be read",)),
        ("t" * 40, "u" * 40),
    ):
        run = a_run(task, Role.AUTHOR, state)
        work = Collected(run.id, "b" * 40, "b" * 40, "d" * 40, tree, changed, strays, len(strays), faults)
        twin = replace(run, number=0, state=state, head_sha="d" * 40, reason="exit 1")
        for earlier, refused in product(((), (twin,)), ("", "Bash was refused: no")):
            end = RunEnd(run.id, state, EndKind.EXITED, 1, "exit 1", "last words", refused=refused)
            seen = replace(task, last_tree_sha="t" * 40, runs=(*earlier, run))
            yield judge.after_work(seen, run, end, work)


def illegal(moves: tuple[Move, ...], task: TaskFacts, question: QuestionState | None) -> list[Move]:
    """The moves of a group that the tables do not allow from where things stand, or not to who causes them."""
    states: dict[str, str | None] = {"task": task.state, "question": question}
    refused = []
    for move in moves:
        table = LIFECYCLES[move.kind]
        before = states[move.kind] if move.kind == "task" or move.event != "ask" else None
        if table.allows(before, move.event) and may(move.by, move.kind, move.event):
            states[move.kind] = table.after(before, move.event)
        else:
            refused.append(move)
    return refused


@every_lifecycle
def test_what_has_ended_leaves_its_end_only_by_the_named_exceptions(lifecycle: Lifecycle) -> None:
    leaving = {
        (state, event)
        for (state, event), after in lifecycle.moves.items()
        if state in lifecycle.ended and after != state
    }
    assert leaving == LEAVES_ITS_END.get(lifecycle.name, set())


@every_lifecycle
def test_what_has_not_ended_has_a_way_to_an_end(lifecycle: Lifecycle) -> None:
    if not lifecycle.ended:
        assert lifecycle is OWNER, "only an owner never ends"
        return
    ending: set[str | None] = set(lifecycle.ended)
    while grown := {state for (state, _), after in lifecycle.moves.items() if after in ending and state not in ending}:
        ending |= grown
    assert set(lifecycle.states) <= ending


def test_an_owners_gate_opens_and_shuts_again() -> None:
    assert OWNER.after(OWNER.after("open", "pause"), "resume") == "open"


@pytest.mark.parametrize("state", RUNNABLE)
def test_every_answer_of_a_step_is_a_move_that_its_state_allows(state: TaskState) -> None:
    task = a_task(state)
    for answer in answers_in(task):
        if answer is not None:
            assert illegal(moves_of(task, answer, NOW), task, None) == [], answer


@pytest.mark.parametrize("state", [state for state in RUNNABLE if state not in ("pending", "reviewing")])
def test_every_step_of_the_flow_has_an_answer_that_leads_on(state: TaskState) -> None:
    task = a_task(state)
    reached = {
        TASK.after(state, answer.event)
        for answer in answers_in(task)
        if answer is not None and hasattr(answer, "event")
    }
    assert reached - {state}


@pytest.mark.parametrize("state", TaskState)
def test_the_forges_fact_is_a_move_that_every_state_allows(state: TaskState) -> None:
    question = Question("q1", "demo-12345678-1", QuestionKind.NO_PROGRESS, "Why?", TaskState.WORKING)
    task = a_task(state, question=question if state is TaskState.PAUSED else None)
    for pull in every_pull():
        answer = landing.forge_fact(task, pull)
        if answer is not None:
            assert illegal(moves_of(task, answer, NOW), task, QuestionState.OPEN) == [], (pull, answer)


@pytest.mark.parametrize("state", [state for state in TaskState if state not in ENDED])
@pytest.mark.parametrize("kind", DecisionKind)
def test_a_decision_on_a_task_that_lives_is_carried_out_or_told_why_not(state: TaskState, kind: DecisionKind) -> None:
    for resume_at, question_kind in product(RESUME_AT, QuestionKind):
        question = Question("q1", "demo-12345678-1", question_kind, "Why?", resume_at)
        asked = question if state is TaskState.PAUSED else None
        task = a_task(state, question=asked)
        for names in ("q1", task.head_sha):
            ruling = decide_task(Decision(kind, task.plan_id, 1, names, "because", "ann"), a_plan(), task, asked, NOW)
            if isinstance(ruling, tuple):
                assert illegal(ruling, task, QuestionState.OPEN) == [], (names, ruling)
            else:
                assert ruling.message


@pytest.mark.parametrize("state", ENDED)
@pytest.mark.parametrize("kind", DecisionKind)
def test_a_decision_on_a_task_that_has_ended_moves_it_only_by_a_retry(state: TaskState, kind: DecisionKind) -> None:
    task = a_task(state)
    ruling = decide_task(Decision(kind, task.plan_id, 1, task.head_sha, "because"), a_plan(), task, None, NOW)
    if isinstance(ruling, tuple) and not illegal(ruling, task, None):
        assert (state, kind) == (TaskState.FAILED, DecisionKind.RETRY)


@pytest.mark.parametrize("state", [PlanState.CONFIRMED, PlanState.IN_PROGRESS])
@pytest.mark.parametrize(("kind", "paused"), [(DecisionKind.PAUSE, False), (DecisionKind.RESUME, True)])
def test_a_plan_under_way_can_be_paused_and_resumed(state: PlanState, kind: DecisionKind, paused: bool) -> None:
    ruling = decide_plan(Decision(kind, "demo-12345678"), replace(a_plan(), state=state, paused=paused), (), NOW)
    assert isinstance(ruling, tuple)
    assert [(move.event, PLAN.after(state, move.event)) for move in ruling] == [(kind, state)]


def test_a_cancelled_plan_cancels_every_task_that_lives_whatever_it_is_doing() -> None:
    question = Question("q1", "demo-12345678-1", QuestionKind.NO_PROGRESS, "Why?", TaskState.WORKING)
    for state in (*RUNNABLE, TaskState.PAUSED):
        task = a_task(state, question=question if state is TaskState.PAUSED else None)
        ruling = decide_plan(Decision(DecisionKind.CANCEL, task.plan_id), a_plan(), (task,), NOW)
        assert isinstance(ruling, tuple)
        assert illegal(ruling, task, QuestionState.OPEN) == []
        assert ruling[0].event == TaskEvent.CANCEL


def a_plan() -> PlanFacts:
    return PlanFacts(
        id="demo-12345678", owner="ann", slug="demo", title="Demo", state=PlanState.IN_PROGRESS, seq=7,
        paused=False, repository="acme/shop", base="main", merge="by-hand", concurrency=1, revision=1,
        digest="d" * 64,
    )  # fmt: skip
