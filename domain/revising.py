"""How a revision is carried out: the moves of a plan, of its tasks and of what they ask, all in one group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.decision import PlanFacts, reopen_plan, task_move, withdraw_question
from domain.difference import BoxChange, BoxKind, Difference
from domain.duties import Actor
from domain.identity import task_id
from domain.lifecycle import Move
from domain.plan import PlanEvent, PlanSpec, RevisionEvent, TaskSpec
from domain.revision import ALLOWING, PROVING, has_begun
from domain.task import QuestionEvent, QuestionKind, TaskEvent, TaskFacts, TaskState

_STEPS = (
    TaskState.PENDING,
    TaskState.WORKING,
    TaskState.CHECKING,
    TaskState.REVIEWING,
    TaskState.PUBLISHING,
    TaskState.IN_REVIEW,
)
_TEXT = frozenset({"title", "body"})


@dataclass(frozen=True)
class Order:
    """A confirmed revision: its number, the text that it is, who confirmed it in words, and when."""

    number: int
    spec: PlanSpec
    cause: str
    at: datetime


def revise(plan: PlanFacts, difference: Difference, tasks: Iterable[TaskFacts], order: Order) -> tuple[Move, ...]:
    """The moves by which a difference without faults is made so. Each of their keys names the revision.

    Tasks go in the order of their boxes, and the plan behind them, as everybody locks them.
    """
    facts = {task.ordinal: task for task in tasks}
    specs = {box.ordinal: box for box in order.spec.tasks}
    changes = {box.ordinal: box for box in difference.boxes}
    renewed = any(change.what == "attempts" for change in difference.plan)
    moves = [revision_move(plan.id, order.number, RevisionEvent.CONFIRM, order.cause, order.at)]
    for ordinal, spec in specs.items():
        change, task = changes.get(ordinal), facts.get(ordinal)
        if change is not None and task is None:
            moves.append(_added(plan, spec, order))
        elif task is not None and change is not None and change.kind is BoxKind.REMOVED:
            moves += _removed(task, order)
        elif task is not None and (change is not None or (renewed and _is_fresh(task))):
            moves += _changed(task, spec, change, order, renewed=renewed)
    moves += reopen_plan(plan, order.cause, order.at, by=Actor.PERSON)
    return (*moves, _plan_move(plan, difference, order))


def revision_move(
    plan: str, number: int, event: RevisionEvent, cause: str, at: datetime, facts: Mapping[str, Any] | None = None
) -> Move:
    """A move of one of a plan's texts: what they say is a person's word."""
    key, said = f"revision:{number}:{event}", facts or {}
    return Move("revision", f"{plan}-r{number}", event, key, plan, cause, at, said, by=Actor.PERSON)


def task_facts(plan: str, owner: str, spec: TaskSpec, allowed_runs: int) -> dict[str, Any]:
    """What a task's row holds when its box is confirmed."""
    return {
        "plan_id": plan,
        "owner": owner,
        "ordinal": spec.ordinal,
        "title": spec.title,
        "body": spec.body,
        "after": list(spec.after),
        "runtime": spec.runtime,
        "model": spec.model,
        "timeout": spec.timeout,
        "budget_nano_usd": spec.budget_nano_usd,
        "allowed_runs": allowed_runs,
    }


def plan_facts(spec: PlanSpec) -> dict[str, Any]:
    """What of a plan's row its text says, but for what it says once for all, and for its budget."""
    return {
        "title": spec.title,
        "merge": spec.merge,
        "concurrency": spec.concurrency,
        "attempts": spec.attempts,
        "checks": list(spec.checks),
        "paths": list(spec.paths),
        "reviewers": list(spec.reviewers),
        "spec": spec.spec,
    }


def _plan_move(plan: PlanFacts, difference: Difference, order: Order) -> Move:
    changed = {change.what for change in difference.plan}
    facts = {**plan_facts(order.spec), "revision": order.number}
    if "budget" in changed:
        facts["budget_nano_usd"] = order.spec.budget_nano_usd
    if changed & {*PROVING, *ALLOWING}:
        facts["judged"] = order.number
    key = f"revise:{order.number}"
    return Move("plan", plan.id, PlanEvent.REVISE, key, plan.id, order.cause, order.at, facts, by=Actor.PERSON)


def _added(plan: PlanFacts, spec: TaskSpec, order: Order) -> Move:
    facts = {**task_facts(plan.id, plan.owner, spec, order.spec.attempts), "revision": order.number}
    key = f"task:{spec.ordinal}:r{order.number}"
    identity = task_id(plan.id, spec.ordinal)
    return Move("task", identity, TaskEvent.CONFIRM, key, plan.id, order.cause, order.at, facts, by=Actor.PERSON)


def _removed(task: TaskFacts, order: Order) -> tuple[Move, ...]:
    reason = f"struck out by revision {order.number}"
    facts = {"question_id": None, "reason": reason, "revision": order.number}
    key = f"revise:{order.number}"
    cancel = task_move(task, TaskEvent.CANCEL, key, order.cause, order.at, facts, by=Actor.PERSON)
    return (cancel, *withdraw_question(task, reason, order.at, by=Actor.PERSON))


def _changed(
    task: TaskFacts, spec: TaskSpec, change: BoxChange | None, order: Order, *, renewed: bool
) -> Iterator[Move]:
    """What a revision changes of a task; one that waits for a person asks anew, since its question was about less."""
    names = {each.what for each in change.changes} if change else set[str]()
    row = task_facts(task.plan_id, task.owner, spec, order.spec.attempts)
    facts = {name: row[name] for name in row if name in names}
    if renewed and _is_fresh(task):
        facts["allowed_runs"] = order.spec.attempts
    if "after" in names:
        # A person let it begin without what it came after then.
        facts["after_waived"] = False
    asked: tuple[Move, ...] = ()
    if change is not None:
        facts["revision"] = order.number
        if has_begun(task):
            facts |= _of_what_was_done(task, change, order)
        if task.state is TaskState.PAUSED:
            facts["question_id"] = _question_id(task)
            before = withdraw_question(task, order.cause, order.at, by=Actor.PERSON)
            asked = (*before, _question(task, change, order))
    yield task_move(task, TaskEvent.REVISE, f"revise:{order.number}", order.cause, order.at, facts, by=Actor.PERSON)
    yield from asked


def _of_what_was_done(task: TaskFacts, change: BoxChange, order: Order) -> dict[str, Any]:
    """What a change of its text means for a task that has begun: what was done was done for another text.

    Commits that are not ours stay, and what is to be done is done on top of them.
    """
    told = [f"The plan was revised (revision {order.number}), and this task with it: {_what(change)}."]
    if not _TEXT & {each.what for each in change.changes}:
        return {"note": " ".join((*told, task.note)).strip(), "last_tree_sha": ""}
    if task.foreign_commits:
        told.append("What stands in the workspace was made for the text before; see that all of it fits this one.")
    else:
        told.append("What was made for the text before is not in the workspace: the work begins at the base again.")
    return {
        "note": " ".join(told),
        "fresh_start": not task.foreign_commits,
        "proven_sha": "",
        "approved_sha": "",
        "last_tree_sha": "",
    }


def _question_id(task: TaskFacts) -> str:
    return f"{task.id}-q{task.seq}"


def _question(task: TaskFacts, change: BoxChange, order: Order) -> Move:
    before = f" What it asked before: {task.question.text}" if task.question else ""
    text = (
        f"Revision {order.number} of the plan changed this task: {_what(change)}. "
        f"Resume to let it go on by that, or cancel.{before}"
    )
    facts = {
        "plan_id": task.plan_id,
        "task_id": task.id,
        "kind": QuestionKind.REVISED,
        "text": text,
        "resume_at": _resume_at(task, change),
    }
    question = _question_id(task)
    return Move(
        "question", question, QuestionEvent.ASK, f"ask:{question}", task.plan_id, order.cause, order.at, facts,
        by=Actor.PERSON,
    )  # fmt: skip


def _resume_at(task: TaskFacts, change: BoxChange) -> TaskState:
    """Where the task goes on: no further on than where what was changed has its say."""
    furthest = [task.question.resume_at if task.question else TaskState.WORKING]
    if _TEXT & {each.what for each in change.changes} or set(change.by) & {*ALLOWING}:
        furthest.append(TaskState.WORKING)
    if set(change.by) & {*PROVING}:
        furthest.append(TaskState.CHECKING)
    return min(furthest, key=_STEPS.index)


def _what(change: BoxChange) -> str:
    """What changed, in words that stand in a sentence."""
    return "; ".join((*map(str, change.changes), *(f"the plan's {key}" for key in change.by)))


def _is_fresh(task: TaskFacts) -> bool:
    """Whether nothing has happened to the task since it was confirmed that its bound on runs would be for."""
    return task.state is TaskState.PENDING and not has_begun(task)
