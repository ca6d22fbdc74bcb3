"""Publishing a document and confirming it: how a plan comes into the graph.

Every case has its answer. Publishing the same text again is nothing. Another text before the
confirmation replaces the proposal; after it, it would be a change to what was agreed, and is
refused, unless it is published as a revision (store.revision). A confirmation names a text by its
digest, and confirms that text or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from domain.decision import Decision, Outcome, Reply, Revised
from domain.difference import Difference
from domain.document import parse
from domain.duties import Actor
from domain.errors import NotFound
from domain.identity import plan_id, task_id
from domain.lifecycle import Move
from domain.plan import PlanEvent, PlanSpec, PlanState, RevisionEvent, RevisionState, TaskSpec
from domain.publication import PublishTo
from domain.revising import plan_facts, revision_move, task_facts
from domain.task import TaskEvent
from domain.wording import counted
from store import revision as revisions
from store.moves import lock_chain, move
from store.plans import PlanRow, RevisionRow, load_plan, load_revision
from store.receipts import hash_and_moment_at, seq_of_key


def publish(connection: Connection, order: PublishTo, spec: PlanSpec, incarnation: int) -> Reply:
    """Write a document, which reads as `spec`, down as the plan's proposed revision."""
    identity = plan_id(order.publish.owner, spec.slug)
    lock_chain(connection, identity)
    plan = _load(connection, identity)
    if order.publish.revise:
        return _revise(connection, order, spec, plan, incarnation)
    if plan is None:
        return _propose(connection, order, spec, None, incarnation)
    if plan.state is PlanState.ARCHIVED:
        message = "this plan was archived; to have it done again, give its document another slug"
        return Reply(Outcome.REFUSED, message, plan.state, plan.id)
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
        "`watchbill revise` does that, or give this one another slug",
        plan.state,
        plan.id,
    )


def _revise(connection: Connection, order: PublishTo, spec: PlanSpec, plan: PlanRow | None, incarnation: int) -> Reply:
    if plan is None:
        identity = plan_id(order.publish.owner, spec.slug)
        message = f"no plan {identity} has been published, so there is nothing to revise; first: watchbill submit"
        return Reply(Outcome.REFUSED, message, plan_id=identity)
    if plan.state is PlanState.AWAITING_CONFIRMATION:
        message = "nothing of this plan has been confirmed; `watchbill submit` replaces its text"
        return Reply(Outcome.REFUSED, message, plan.state, plan.id)
    return revisions.propose(connection, order, spec, plan, incarnation)


def confirm(connection: Connection, decision: Decision, plan: PlanRow, at: datetime, incarnation: int) -> Reply:
    """Confirm the text that the decision names; its open boxes become tasks, all or none."""
    if revisions.is_proposed(connection, decision, plan):
        return revisions.confirm(connection, decision, plan, at, incarnation)
    if decision.revision not in (0, plan.revision) or (decision.revision and decision.names != plan.digest):
        return _not_there(connection, decision, plan)
    if decision.names != plan.digest:
        named, there = decision.names[:12], plan.digest[:12]
        message = (
            f"this confirms {named}, but the proposed text is {there}; read it, then confirm it"
            if plan.state is PlanState.AWAITING_CONFIRMATION
            else f"this confirms {named}, but revision {plan.proposed}, which waits, is another text; read it"
            if plan.proposed
            else f"the plan is {plan.state} with another text, {there}"
        )
        return Reply(Outcome.REFUSED, message, plan.state, plan.id)
    revision = load_revision(connection, plan.id, plan.revision)
    if revision.state is RevisionState.CONFIRMED:
        return _confirmed_before(connection, plan, revision, at)
    spec = parse(revision.text, file_name=f"{plan.slug}.md")
    moves = _confirmation(plan, spec, decision, at)
    moved = move(connection, *moves, incarnation=incarnation)
    first = moved[0]
    if first.refused:
        return Reply(Outcome.REFUSED, first.refused, plan.state, plan.id, first.receipt.seq)
    begun = sum(not task.starts_nothing for task in spec.tasks)
    return Reply(Outcome.DONE, f"confirmed: {counted(begun, 'task')}", PlanState.CONFIRMED, plan.id, first.receipt.seq)


def _confirmed_before(connection: Connection, plan: PlanRow, revision: RevisionRow, at: datetime) -> Reply:
    """The answer to a confirmation of what holds: a repeat of the same call is the one confirmation still."""
    revised = seq_of_key(connection, plan.id, f"revise:{revision.number}")
    seq = revised or seq_of_key(connection, plan.id, f"confirm:{revision.digest}")
    _, when = hash_and_moment_at(connection, plan.id, seq)
    if when != at:
        said = f" at {when:%Y-%m-%d %H:%M} UTC" if when else ""
        message = f"this text was confirmed{said}; the plan is {plan.state}"
        return Reply(Outcome.ALREADY, message, plan.state, plan.id, seq)
    if not revised:
        spec = parse(revision.text, file_name=f"{plan.slug}.md")
        begun = sum(not task.starts_nothing for task in spec.tasks)
        return Reply(Outcome.DONE, f"confirmed: {counted(begun, 'task')}", plan.state, plan.id, seq)
    touched = revisions.touched_by(connection, plan.id, revision.number)
    told = Revised(revision.number, revision.digest, Difference(), touched=touched)
    return Reply(Outcome.DONE, f"revision {revision.number} confirmed", plan.state, plan.id, seq, told)


def _not_there(connection: Connection, decision: Decision, plan: PlanRow) -> Reply:
    """Why a confirmation that names a revision by its number confirms nothing."""
    try:
        named = load_revision(connection, plan.id, decision.revision)
    except NotFound as error:
        return Reply(Outcome.REFUSED, str(error), plan.state, plan.id)
    if decision.names != named.digest:
        message = f"revision {named.number} is {named.digest[:12]}, and not {decision.names[:12]}; read it first"
    elif named.state is RevisionState.WITHDRAWN:
        message = f"revision {named.number} was withdrawn"
    else:
        message = f"revision {named.number} was confirmed before; revision {plan.revision} holds now"
    return Reply(Outcome.REFUSED, message, plan.state, plan.id)


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
        Move("plan", identity, event, f"publish:{number}", identity, cause, order.at, facts, by=Actor.PERSON),
        revision_move(
            identity, number, RevisionEvent.PROPOSE, cause, order.at,
            {"plan_id": identity, "number": number, "digest": spec.digest, "text": order.publish.text},
        ),
    ]  # fmt: skip
    if plan is not None:
        moves.append(revision_move(identity, plan.revision, RevisionEvent.WITHDRAW, "replaced", order.at))
    moved = move(connection, *moves, incarnation=incarnation)
    message = f"published {counted(len(spec.tasks), 'box', 'boxes')}" + (", replacing the earlier text" if plan else "")
    return Reply(Outcome.DONE, message, PlanState.AWAITING_CONFIRMATION, identity, moved[0].receipt.seq)


def _plan_facts(order: PublishTo, spec: PlanSpec, number: int) -> dict[str, Any]:
    return {
        "owner": order.publish.owner,
        "slug": spec.slug,
        "repository": order.repository.name,
        "base": order.base,
        "budget_nano_usd": spec.budget_nano_usd,
        "revision": number,
        **plan_facts(spec),
    }


def _confirmation(plan: PlanRow, spec: PlanSpec, decision: Decision, at: datetime) -> Sequence[Move]:
    cause = f"confirmed by {decision.by or 'a person'}"
    return (
        Move("plan", plan.id, PlanEvent.CONFIRM, f"confirm:{plan.digest}", plan.id, cause, at, by=Actor.PERSON),
        revision_move(plan.id, plan.revision, RevisionEvent.CONFIRM, cause, at),
        *(_task_move(plan, task, cause, at) for task in spec.tasks if not task.starts_nothing),
    )


def _task_move(plan: PlanRow, task: TaskSpec, cause: str, at: datetime) -> Move:
    identity = task_id(plan.id, task.ordinal)
    facts = task_facts(plan.id, plan.owner, task, plan.attempts)
    key = f"task:{task.ordinal}"
    return Move("task", identity, TaskEvent.CONFIRM, key, plan.id, cause, at, facts, by=Actor.PERSON)
