"""Writing a person's decision down: the ruling is the domain's, the record is kept here.

A decision that cannot be carried out is recorded as a refused move all the same.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from domain.budget import format_usd
from domain.decision import (
    Already,
    Decision,
    DecisionKind,
    Outcome,
    Refusal,
    Reply,
    Ruling,
    decide_plan,
    decide_task,
)
from domain.duties import Actor
from domain.errors import NotFound
from domain.identity import task_id
from domain.lifecycle import Move
from domain.plan import PlanState
from domain.raising import decide_raise
from domain.task import Question, TaskFacts
from store.budgets import used_by
from store.moves import lock_chain, move, record_refusal
from store.plans import PlanRow, load_plan
from store.publication import confirm
from store.receipts import seq_of_key
from store.revision import withdraw
from store.tasks import load_question, load_task, load_tasks


def decide(connection: Connection, decision: Decision, at: datetime, incarnation: int) -> Reply:
    """Carry a decision out by its moves, or say why not. The same decision again answers its first receipt."""
    try:
        load_plan(connection, decision.plan_id)
    except NotFound:
        return Reply(
            Outcome.REFUSED,
            f"no plan {decision.plan_id} has been published; first: watchbill submit",
            plan_id=decision.plan_id,
        )
    lock_chain(connection, decision.plan_id)
    plan = load_plan(connection, decision.plan_id)
    if decision.kind is DecisionKind.CONFIRM:
        return confirm(connection, decision, plan, at, incarnation)
    if decision.kind is DecisionKind.WITHDRAW and decision.ordinal is None:
        return withdraw(connection, decision, plan, at, incarnation)
    if decision.ordinal is None:
        ruling = decide_plan(decision, plan, load_tasks(connection, plan.id, at), at)
        state, subject = str(plan.state), ("plan", plan.id)
    else:
        task = _task(connection, plan, decision.ordinal, at)
        if task is None:
            unconfirmed = plan.state is PlanState.AWAITING_CONFIRMATION
            until = f" before it is confirmed: watchbill confirm {plan.slug}" if unconfirmed else ""
            why = f"plan {plan.slug} has no task {decision.ordinal}{until}"
            return _refuse(connection, decision, why, plan, at)
        ruling = _rule(connection, decision, plan, task, at)
        state, subject = str(task.state), ("task", task.id)
    match ruling:
        case Already(message, key):
            return Reply(Outcome.ALREADY, message, state, plan.id, seq_of_key(connection, plan.id, key))
        case Refusal(message):
            return _refuse(connection, decision, message, plan, at, subject, state)
    moved = move(connection, *ruling, incarnation=incarnation)
    first = moved[0]
    if moved[-1].refused:
        return Reply(Outcome.REFUSED, moved[-1].refused, state, plan.id, moved[-1].receipt.seq)
    # A repeat of the same call, whose first answer was lost, is no second decision.
    outcome = Outcome.DONE if first.fresh or first.receipt.at == at else Outcome.ALREADY
    raised = _raised(decision)
    return Reply(outcome, f"{decision.kind}{raised}: now {first.state}", first.state or "", plan.id, first.receipt.seq)


def _raised(decision: Decision) -> str:
    """What may be spent from now on, in words; empty where that was not decided."""
    budgets = (("the task", decision.budget_nano_usd), ("the plan", decision.plan_budget_nano_usd))
    said = [f"{format_usd(nano_usd)} for {what}" for what, nano_usd in budgets if nano_usd]
    return f" {' and '.join(said)}" if said else ""


def _task(connection: Connection, plan: PlanRow, ordinal: int, at: datetime) -> TaskFacts | None:
    try:
        return load_task(connection, task_id(plan.id, ordinal), at)
    except NotFound:
        return None


def _rule(connection: Connection, decision: Decision, plan: PlanRow, task: TaskFacts, at: datetime) -> Ruling:
    question = _question(connection, decision, task)
    if not decision.raises:
        return decide_task(decision, plan, task, question, at)
    return decide_raise(decision, plan, task, question, used_by(connection, plan.owner, plan.id, task.id, at), at)


def _question(connection: Connection, decision: Decision, task: TaskFacts) -> Question | None:
    if not decision.names or (task.question is not None and decision.names == task.question.id):
        return task.question
    try:
        return load_question(connection, decision.names)
    except NotFound:
        return task.question


def _refuse(
    connection: Connection,
    decision: Decision,
    message: str,
    plan: PlanRow,
    at: datetime,
    subject: tuple[str, str] | None = None,
    state: str = "",
) -> Reply:
    kind, identity = subject or ("plan", plan.id)
    key = f"{decision.kind}:{decision.ordinal or ''}:{decision.names}"
    cause = f"{decision.kind} by {decision.by or 'a person'}"
    wish = Move(kind, identity, decision.kind, key, plan.id, cause, at, by=Actor.PERSON)
    refused = record_refusal(connection, wish, message)
    return Reply(Outcome.REFUSED, message, state or plan.state, plan.id, refused.receipt.seq)
