"""A decision is a person's word, and a fact: it is written down before anything acts on it.

It names what it answers (the digest of a document, a question, a commit), so a second click
answers nothing else, and the same word given twice answers its first receipt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from domain.difference import Difference
from domain.duties import Actor
from domain.errors import Fault
from domain.lifecycle import Move
from domain.plan import PlanEvent, PlanState, RevisionEvent
from domain.task import (
    RESUME_AT,
    Question,
    QuestionEvent,
    QuestionKind,
    QuestionState,
    TaskEvent,
    TaskFacts,
    TaskState,
)


class DecisionKind(StrEnum):
    CONFIRM = "confirm"
    PAUSE = "pause"
    RESUME = "resume"
    APPROVE = "approve"
    ANSWER = "answer"
    RETRY = "retry"
    CANCEL = "cancel"
    ARCHIVE = "archive"
    WITHDRAW = "withdraw"


@dataclass(frozen=True)
class Decision:
    """`ordinal` is None for a decision on the whole plan.

    `names` is what it answers: for confirm and withdraw the digest of the document, and `revision` the number of
    that text, 0 where only the text is known; for resume, approve and answer of a paused task the question's id;
    for approve of a pull request the head sha. `by` is who says so, as far as the door knows. `budget_nano_usd`
    and `plan_budget_nano_usd` are what the task and its plan may cost from now on, 0 where that stays as it is:
    an approval of money approves nothing else.
    """

    kind: DecisionKind
    plan_id: str
    ordinal: int | None = None
    names: str = ""
    text: str = ""
    by: str = ""
    budget_nano_usd: int = 0
    plan_budget_nano_usd: int = 0
    revision: int = 0

    @property
    def raises(self) -> bool:
        return bool(self.budget_nano_usd or self.plan_budget_nano_usd)


class Outcome(StrEnum):
    DONE = "done"
    ALREADY = "already"
    REFUSED = "refused"


@dataclass(frozen=True)
class Revised:
    """A revision of a confirmed plan: its number, its text, what it changes, and what stands in its way.

    `touched` are the tasks under way that it has moved, once it is confirmed.
    """

    number: int
    digest: str
    difference: Difference
    faults: tuple[Fault, ...] = ()
    touched: tuple[int, ...] = ()


@dataclass(frozen=True)
class Reply:
    """What a decision or a publication came to, in one sentence, and the state that holds now.

    `seq` is the receipt that records it (the first one, on a repeat), 0 where there is none. `revised` is set
    where it was about a revision of a plan that is confirmed.
    """

    outcome: Outcome
    message: str
    state: str = ""
    plan_id: str = ""
    seq: int = 0
    revised: Revised | None = None


@dataclass(frozen=True)
class PlanFacts:
    """A plan's row, as far as decisions and dispatch read it.

    `proposed` is the number of a revision that waits to be confirmed beside the one that holds, 0 for none.
    """

    id: str
    owner: str
    slug: str
    title: str
    state: PlanState
    seq: int
    paused: bool
    repository: str
    base: str
    merge: str
    concurrency: int
    revision: int
    digest: str
    attempts: int = 4
    checks: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    budget_nano_usd: int | None = None
    proposed: int = 0


@dataclass(frozen=True)
class Refusal:
    """The decision cannot be carried out as things stand, and why."""

    message: str


@dataclass(frozen=True)
class Already:
    """What the decision asks for holds already; `key` is that of the move by which it came to be, if known."""

    message: str
    key: str = ""


Ruling = tuple[Move, ...] | Refusal | Already


def decide_plan(decision: Decision, plan: PlanFacts, tasks: tuple[TaskFacts, ...], at: datetime) -> Ruling:
    """The moves by which a decision on a whole plan is carried out (`confirm` is the publication's)."""

    def plan_move(event: PlanEvent, key: str, facts: Mapping[str, Any] | None = None) -> Move:
        return Move("plan", plan.id, event, key, plan.id, cause_of(decision), at, facts or {}, by=Actor.PERSON)

    match decision.kind:
        case DecisionKind.PAUSE if plan.paused:
            return Already("the plan is paused")
        case DecisionKind.PAUSE:
            return (plan_move(PlanEvent.PAUSE, f"pause:{plan.seq}", {"paused": True}),)
        case DecisionKind.RESUME if not plan.paused:
            return Already("the plan is not paused")
        case DecisionKind.RESUME:
            return (plan_move(PlanEvent.RESUME, f"resume:{plan.seq}", {"paused": False}),)
        case DecisionKind.ARCHIVE if plan.state is PlanState.ARCHIVED:
            return Already("the plan is archived")
        case DecisionKind.ARCHIVE if plan.state in (PlanState.CONFIRMED, PlanState.IN_PROGRESS):
            return Refusal(f"the plan is {plan.state}: cancel it first, then archive it")
        case DecisionKind.ARCHIVE:
            return (plan_move(PlanEvent.ARCHIVE, "archive"), *withdraw_revision(plan, cause_of(decision), at))
        case DecisionKind.CANCEL if plan.state is PlanState.AWAITING_CONFIRMATION:
            return Refusal("nothing of this plan has been confirmed; archive it instead")
        case DecisionKind.CANCEL:
            moves = [move for task in tasks if not task.ended for move in _cancel(decision, task, at)]
            return tuple(moves) or Already(f"every task of this plan has ended; the plan is {plan.state}")
        case _:
            return Refusal(f"{decision.kind} is about one task: name it as {plan.slug}#<number>")


def decide_task(
    decision: Decision, plan: PlanFacts, task: TaskFacts, question: Question | None, at: datetime
) -> Ruling:
    """The moves by which a decision on one task is carried out.

    `question` is the one that the decision names, open or not, else the task's open one.
    """
    match decision.kind:
        case DecisionKind.PAUSE if task.state is TaskState.PAUSED:
            return Already("the task is paused")
        case DecisionKind.PAUSE:
            return ask(
                task, QuestionKind.PAUSED_BY_PERSON, "Paused by a person. Resume to go on.", task.state,
                cause_of(decision), at, by=Actor.PERSON,
            )  # fmt: skip
        case DecisionKind.APPROVE if task.state is TaskState.IN_REVIEW:
            return _approve_head(decision, task, at)
        case DecisionKind.RESUME | DecisionKind.ANSWER | DecisionKind.APPROVE:
            return _answer(decision, task, question, at)
        case DecisionKind.RETRY:
            return _retry(decision, plan, task, at)
        case DecisionKind.CANCEL if task.state is TaskState.CANCELLED:
            return Already("the task is cancelled")
        case DecisionKind.CANCEL:
            return _cancel(decision, task, at)
        case _:
            return Refusal(f"{decision.kind} is about a whole plan: name {plan.slug} without a task")


def ask(
    task: TaskFacts,
    kind: QuestionKind,
    text: str,
    resume_at: TaskState,
    cause: str,
    at: datetime,
    facts: Mapping[str, Any] | None = None,
    *,
    by: Actor,
) -> tuple[Move, ...]:
    """Pause a task with a question. The question's id comes from the task's last receipt: asked once."""
    question = f"{task.id}-q{task.seq}"
    said = {"question_id": question, **(facts or {})}
    return (
        task_move(task, TaskEvent.PAUSE, f"pause:{question}", cause, at, said, by=by),
        Move(
            "question", question, QuestionEvent.ASK, f"ask:{question}", task.plan_id, cause, at,
            {"plan_id": task.plan_id, "task_id": task.id, "kind": kind, "text": text, "resume_at": resume_at},
            by=by,
        ),
    )  # fmt: skip


def withdraw_question(task: TaskFacts, cause: str, at: datetime, *, by: Actor) -> tuple[Move, ...]:
    """The move that closes the task's open question because something else has settled it."""
    if task.question is None or task.question.state is not QuestionState.OPEN:
        return ()
    return (
        Move(
            "question", task.question.id, QuestionEvent.WITHDRAW, f"withdraw:{task.question.id}",
            task.plan_id, cause, at, by=by,
        ),
    )  # fmt: skip


def withdraw_revision(plan: PlanFacts, cause: str, at: datetime) -> tuple[Move, ...]:
    """The move that takes back the revision which waits to be confirmed, if there is one."""
    if not plan.proposed:
        return ()
    event, number = RevisionEvent.WITHDRAW, plan.proposed
    key = f"revision:{number}:{event}"
    return (Move("revision", f"{plan.id}-r{number}", event, key, plan.id, cause, at, by=Actor.PERSON),)


def _approve_head(decision: Decision, task: TaskFacts, at: datetime) -> Ruling:
    if decision.names != task.head_sha:
        return Refusal(
            f"this approves {decision.names[:12] or 'no commit'}, but the pull request is at {task.head_sha[:12]}"
        )
    if task.approved_sha == task.head_sha:
        return Already(f"{task.head_sha[:12]} is approved", f"{task.id}:approved:{task.round}:{task.head_sha}")
    return (
        task_move(
            task, TaskEvent.APPROVED, f"approved:{task.round}:{task.head_sha}", cause_of(decision), at,
            {"approved_sha": task.head_sha}, by=Actor.PERSON,
        ),
    )  # fmt: skip


TAKEN_AT: Mapping[QuestionKind, TaskState] = {
    QuestionKind.OUT_OF_SCOPE: TaskState.CHECKING,
    # Nothing proves it: it is published, and stands as unproven.
    QuestionKind.REJECTED: TaskState.PUBLISHING,
}
"""Where a task goes on whose work a person approves as it is, by what was asked."""


def _answer(decision: Decision, task: TaskFacts, question: Question | None, at: datetime) -> Ruling:
    if question is None or question.task_id != task.id:
        return Refusal(f"the task is {task.state} and asks nothing")
    if question.state is QuestionState.WITHDRAWN:
        return Refusal("this question was withdrawn; something else has settled it")
    if question.state is QuestionState.ANSWERED:
        return Already(f"this question was answered: {question.answer}", f"{task.id}:answer:{question.id}")
    if decision.names != question.id:
        return Refusal(f"the open question is {question.id}; name it")
    if decision.kind is DecisionKind.ANSWER and not decision.text.strip():
        return Refusal("an answer needs words")
    taken_as_it_is = decision.kind is DecisionKind.APPROVE and question.kind in TAKEN_AT
    resume_at = TAKEN_AT[question.kind] if taken_as_it_is else question.resume_at
    cause = cause_of(decision)
    facts: dict[str, Any] = {
        "question_id": None,
        "round": task.round + 1,
        "allowed_runs": task.runs_begun + task.attempts,
        "last_tree_sha": "",
    }
    if decision.text.strip():
        said = f"A person says: {decision.text.strip()}"
        # What a revision changed is known to no run yet.
        facts["note"] = f"{task.note}\n\n{said}" if question.kind is QuestionKind.REVISED else said
    if question.kind is QuestionKind.OUT_OF_SCOPE and not taken_as_it_is:
        # Begin without what strayed, unless that would drop somebody else's commits.
        facts["fresh_start"] = not task.foreign_commits
    if question.kind is QuestionKind.PREDECESSOR:
        facts["after_waived"] = True
    return (
        task_move(task, RESUME_AT[resume_at], f"answer:{question.id}", cause, at, facts, by=Actor.PERSON),
        Move(
            "question", question.id, QuestionEvent.ANSWER, f"answered:{question.id}", task.plan_id, cause, at,
            {"answer": decision.text.strip() or decision.kind}, by=Actor.PERSON,
        ),
    )  # fmt: skip


def _retry(decision: Decision, plan: PlanFacts, task: TaskFacts, at: datetime) -> Ruling:
    if task.state is not TaskState.FAILED:
        return Refusal(f"only a failed task can be retried; this one is {task.state}")
    facts = {"round": task.round + 1, "allowed_runs": task.runs_begun + task.attempts, "reason": ""}
    retry = task_move(task, TaskEvent.RETRY, f"retry:{task.round}", cause_of(decision), at, facts, by=Actor.PERSON)
    return (retry, *reopen_plan(plan, cause_of(decision), at, by=Actor.PERSON))


def reopen_plan(plan: PlanFacts, cause: str, at: datetime, *, by: Actor) -> tuple[Move, ...]:
    """The move that a plan which had ended makes when one of its tasks lives again."""
    if plan.state not in (PlanState.COMPLETED, PlanState.ARCHIVED):
        return ()
    return (Move("plan", plan.id, PlanEvent.REOPEN, f"reopen:{plan.seq}", plan.id, cause, at, by=by),)


def _cancel(decision: Decision, task: TaskFacts, at: datetime) -> tuple[Move, ...]:
    cause = cause_of(decision)
    facts = {"question_id": None, "reason": cause}
    cancel = task_move(task, TaskEvent.CANCEL, "cancel", cause, at, facts, by=Actor.PERSON)
    return (cancel, *withdraw_question(task, cause, at, by=Actor.PERSON))


def task_move(
    task: TaskFacts, event: TaskEvent, key: str, cause: str, at: datetime, facts: Mapping[str, Any], *, by: Actor
) -> Move:
    """A task's move on its plan's chain, where keys of other tasks are as well: so the key names the task."""
    return Move("task", task.id, event, f"{task.id}:{key}", task.plan_id, cause, at, facts, by=by)


def cause_of(decision: Decision) -> str:
    said = f": {decision.text.strip()[:500]}" if decision.text.strip() else ""
    return f"{decision.kind} by {decision.by or 'a person'}{said}"
