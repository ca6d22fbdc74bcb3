"""Publishing a document and confirming it: how a plan comes into the graph.

Every case has its answer. Publishing the same text again is nothing. Another text before the
confirmation replaces the proposal; after it, it would be a change to what was agreed, and is
refused. A confirmation names a text by its digest, and confirms that text or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from domain.decision import Decision, Outcome, Reply
from domain.document import parse
from domain.errors import NotFound
from domain.identity import plan_id, task_id
from domain.lifecycle import Move
from domain.plan import PlanEvent, PlanSpec, PlanState, RevisionEvent, TaskSpec
from domain.publication import PublishTo
from domain.task import TaskEvent
from domain.wording import counted
from store.moves import lock_chain, move
from store.plans import PlanRow, load_plan, load_revision


def publish(connection: Connection, order: PublishTo, spec: PlanSpec, incarnation: int) -> Reply:
    """Write a document, which reads as `spec`, down as the plan's proposed revision."""
    identity = plan_id(order.publish.owner, spec.slug)
    lock_chain(connection, identity)
    plan = _load(connection, identity)
    if plan is None:
        return _propose(connection, order, spec, None, incarnation)
    if plan.digest == spec.digest:
        return Reply(
            Outcome.ALREADY,
            f"this text is published; the plan is {plan.state}",
            plan.state,
            plan.id,
            plan.seq,
        )
    if plan.state is PlanState.AWAITING_CONFIRMATION:
        return _propose(connection, order, spec, plan, incarnation)
    return Reply(
        Outcome.REFUSED,
        f"the plan is {plan.state}, and what was confirmed is not changed by publishing another text; "
        "give this one another slug",
        plan.state,
        plan.id,
    )


def confirm(connection: Connection, decision: Decision, plan: PlanRow, at: datetime, incarnation: int) -> Reply:
    """Confirm the text that the decision names; its open boxes become tasks, all or none."""
    if decision.names != plan.digest:
        named, there = decision.names[:12], plan.digest[:12]
        message = (
            f"this confirms {named}, but the proposed text is {there}; read it, then confirm it"
            if plan.state is PlanState.AWAITING_CONFIRMATION
            else f"the plan is {plan.state} with another text, {there}"
        )
        return Reply(Outcome.REFUSED, message, plan.state, plan.id)
    revision = load_revision(connection, plan.id, plan.revision)
    spec = parse(revision.text, file_name=f"{plan.slug}.md")
    moves = _confirmation(plan, spec, decision, at)
    moved = move(connection, *moves, incarnation=incarnation)
    first = moved[0]
    if first.refused:
        return Reply(Outcome.REFUSED, first.refused, plan.state, plan.id, first.receipt.seq)
    if not first.fresh and first.receipt.at != at:
        message = f"this text was confirmed at {first.receipt.at:%Y-%m-%d %H:%M} UTC; the plan is {plan.state}"
        return Reply(Outcome.ALREADY, message, plan.state, plan.id, first.receipt.seq)
    begun = sum(not task.done for task in spec.tasks)
    return Reply(Outcome.DONE, f"confirmed: {counted(begun, 'task')}", PlanState.CONFIRMED, plan.id, first.receipt.seq)


def _load(connection: Connection, plan: str) -> PlanRow | None:
    try:
        return load_plan(connection, plan)
    except NotFound:
        return None


def _propose(connection: Connection, order: PublishTo, spec: PlanSpec, plan: PlanRow | None, incarnation: int) -> Reply:
    identity = plan_id(order.publish.owner, spec.slug)
    number = plan.revision + 1 if plan else 1
    cause = f"published by {order.publish.by or order.publish.owner}"
    event = PlanEvent.REPUBLISH if plan else PlanEvent.PUBLISH
    facts = _plan_facts(order, spec, number)
    moves = [
        Move("plan", identity, event, f"publish:{number}", identity, cause, order.at, facts),
        _revision_move(identity, number, RevisionEvent.PROPOSE, cause, order.at, spec.digest, order.publish.text),
    ]
    if plan is not None:
        moves.append(_revision_move(identity, plan.revision, RevisionEvent.WITHDRAW, "replaced", order.at))
    moved = move(connection, *moves, incarnation=incarnation)
    message = f"published {counted(len(spec.tasks), 'box', 'boxes')}" + (", replacing the earlier text" if plan else "")
    return Reply(Outcome.DONE, message, PlanState.AWAITING_CONFIRMATION, identity, moved[0].receipt.seq)


def _plan_facts(order: PublishTo, spec: PlanSpec, number: int) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "owner": order.publish.owner,
        "slug": spec.slug,
        "title": spec.title,
        "repository": order.repository.name,
        "base": order.base,
        "merge": spec.merge,
        "concurrency": spec.concurrency,
        "attempts": spec.attempts,
        "checks": list(spec.checks),
        "paths": list(spec.paths),
        "reviewers": list(spec.reviewers),
        "budget_nano_usd": spec.budget_nano_usd,
        "spec": spec.spec,
        "revision": number,
    }
    return facts


def _revision_move(
    plan: str,
    number: int,
    event: RevisionEvent,
    cause: str,
    at: datetime,
    digest: str = "",
    text: str = "",
) -> Move:
    facts = {"plan_id": plan, "number": number, "digest": digest, "text": text} if digest else {}
    return Move("revision", f"{plan}-r{number}", event, f"revision:{number}:{event}", plan, cause, at, facts)


def _confirmation(plan: PlanRow, spec: PlanSpec, decision: Decision, at: datetime) -> Sequence[Move]:
    cause = f"confirmed by {decision.by or 'a person'}"
    return (
        Move("plan", plan.id, PlanEvent.CONFIRM, f"confirm:{plan.digest}", plan.id, cause, at),
        _revision_move(plan.id, plan.revision, RevisionEvent.CONFIRM, cause, at),
        *(_task_move(plan, task, cause, at) for task in spec.tasks if not task.done),
    )


def _task_move(plan: PlanRow, task: TaskSpec, cause: str, at: datetime) -> Move:
    identity = task_id(plan.id, task.ordinal)
    facts = {
        "plan_id": plan.id,
        "owner": plan.owner,
        "ordinal": task.ordinal,
        "title": task.title,
        "body": task.body,
        "after": list(task.after),
        "runtime": task.runtime,
        "model": task.model,
        "timeout": task.timeout,
        "budget_nano_usd": task.budget_nano_usd,
        "allowed_runs": plan.attempts,
    }
    return Move("task", identity, TaskEvent.CONFIRM, f"task:{task.ordinal}", plan.id, cause, at, facts)
