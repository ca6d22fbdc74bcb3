"""The flow of a task as data: its steps, and the answers that a step can give.

A step does its work through activities, then answers one of five things: continue to another
state, done, pause with a question, fail, or wait. The task's workflow is the runtime of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from domain.decision import ask, task_move, withdraw_question
from domain.duties import Actor
from domain.lifecycle import Move
from domain.run import Role, RunFacts, RunState
from domain.task import QuestionKind, TaskEvent, TaskFacts, TaskState


@dataclass(frozen=True)
class Continue:
    """Go on to the state that `event` leads to; `key` names the fact that was observed.

    `by` is the forge where that fact is what was done there.
    """

    event: TaskEvent
    key: str
    cause: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    by: Actor = Actor.WORKER


@dataclass(frozen=True)
class Done(Continue):
    """As `Continue`, and the task has ended."""


@dataclass(frozen=True)
class Pause:
    """Ask a person; the answer resumes at `resume_at`. `facts` are kept for when that happens."""

    kind: QuestionKind
    text: str
    resume_at: TaskState
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Fail:
    """Give up: neither time nor an answer would help. A person may retry."""

    reason: str


@dataclass(frozen=True)
class Wait:
    """Nothing to do for `seconds`, or until something changes; None waits for a change alone."""

    seconds: float | None = None


Answer = Continue | Done | Pause | Fail | Wait


@dataclass(frozen=True)
class Flow:
    """The steps of a task in their order. A step that a plan does not want is left out."""

    name: str
    steps: tuple[TaskState, ...]

    def onward(self, step: TaskState) -> TaskEvent:
        """The event that leads from this step to the one after it."""
        return _ONWARD[step, self.steps[self.steps.index(step) + 1]]


_ONWARD: dict[tuple[TaskState, TaskState], TaskEvent] = {
    (TaskState.WORKING, TaskState.CHECKING): TaskEvent.WORKED,
    (TaskState.CHECKING, TaskState.REVIEWING): TaskEvent.CHECKED,
    (TaskState.CHECKING, TaskState.PUBLISHING): TaskEvent.CLEARED,
    (TaskState.REVIEWING, TaskState.PUBLISHING): TaskEvent.CLEARED,
    (TaskState.PUBLISHING, TaskState.IN_REVIEW): TaskEvent.PUBLISHED,
}

STANDARD = Flow("standard", (TaskState.WORKING, TaskState.CHECKING, TaskState.PUBLISHING, TaskState.IN_REVIEW))
REVIEWED = Flow("reviewed", (*STANDARD.steps[:2], TaskState.REVIEWING, *STANDARD.steps[2:]))


def flow_of(task: TaskFacts) -> Flow:
    """The flow that the task's plan wants."""
    return REVIEWED if task.reviewers else STANDARD


def run_to_continue(task: TaskFacts, role: Role, ordinal: int = 0) -> RunFacts | None:
    """The run that a step goes on with, or None when it has to begin another.

    One that lives is attached to, even if it is of an earlier round, so that no second agent works
    beside it; one of this round that ended is judged once; a broken one whose remains have been
    collected is done with.
    """
    own = [run for run in task.runs if run.role is role and run.ordinal == ordinal]
    for run in reversed(own):
        if run.live:
            return run
    latest = own[-1] if own and own[-1].round == task.round else None
    return None if latest is None or _done_with(task, latest) else latest


def _done_with(task: TaskFacts, run: RunFacts) -> bool:
    if run.role is Role.REVIEWER and any(review.run_id == run.id and review.is_void for review in task.reviews):
        return True
    if run.state is RunState.FINISHED:
        return False
    return run.role.judges or run.state is RunState.LOST or bool(run.head_sha)


def moves_of(task: TaskFacts, answer: Answer, at: datetime) -> tuple[Move, ...]:
    """The moves that carry out a step's answer; none for a wait."""
    match answer:
        case Continue():
            move = task_move(task, answer.event, answer.key, answer.cause, at, dict(answer.facts), by=answer.by)
            return (move, *withdraw_question(task, answer.cause, at, by=answer.by))
        case Pause():
            return ask(
                task,
                answer.kind,
                answer.text,
                answer.resume_at,
                f"asks a person: {answer.kind}",
                at,
                answer.facts,
                by=Actor.WORKER,
            )
        case Fail():
            key = f"failed:{task.round}:{task.seq}"
            facts = {"reason": answer.reason, "question_id": None}
            move = task_move(task, TaskEvent.FAIL, key, answer.reason, at, facts, by=Actor.WORKER)
            return (move, *withdraw_question(task, answer.reason, at, by=Actor.WORKER))
        case Wait():
            return ()


def rework(
    task: TaskFacts,
    event: TaskEvent,
    sha: str,
    note: str,
    facts: Mapping[str, Any] | None = None,
    *,
    by: Actor = Actor.WORKER,
) -> Continue:
    """Back to the author, in a new round that knows what was wrong with the last one."""
    return Continue(
        event,
        f"{event}:{task.round}:{sha}",
        note.splitlines()[0],
        {"round": task.round + 1, "note": note, "reason": "", "last_tree_sha": task.tree_sha, **(facts or {})},
        by,
    )
