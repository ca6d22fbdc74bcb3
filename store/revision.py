"""A revision: another text of a plan that is confirmed, proposed beside it and then confirmed or withdrawn.

The plan goes on by the text that holds until the other one is confirmed. What it changes is compared anew in
the transaction that carries it out, so nothing that has begun meanwhile is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from sqlalchemy import Connection, select

from domain.decision import Decision, Outcome, PlanFacts, Reply, Revised, withdraw_revision
from domain.difference import in_words
from domain.document import parse
from domain.duties import Actor
from domain.errors import Fault
from domain.ledger import CeilingKind, ceiling_id
from domain.lifecycle import Move
from domain.plan import PlanEvent, PlanSpec, PlanState, RevisionEvent
from domain.publication import PublishTo
from domain.revising import Order, revise, revision_move
from domain.revision import Comparison, compare
from domain.task import TaskFacts, TaskState
from store.budgets import spent_or_held
from store.ceilings import locked
from store.moves import move, record_refusal
from store.plans import PlanRow, RevisionRow, last_revision, load_revision
from store.receipts import seq_of_key
from store.tables import tasks as task_rows
from store.tasks import load_tasks


def propose(connection: Connection, order: PublishTo, spec: PlanSpec, plan: PlanRow, incarnation: int) -> Reply:
    """Write another text of a confirmed plan down, in the place of one that waits already.

    Refused with every fault where it touches what it may not. The caller holds the plan's chain.
    """
    if plan.state is PlanState.ARCHIVED:
        return Reply(Outcome.REFUSED, "the plan is archived; give this text another slug", plan.state, plan.id)
    waiting = load_revision(connection, plan.id, plan.proposed) if plan.proposed else None
    if spec.digest == plan.digest:
        left = f"; revision {plan.proposed} still waits to be confirmed" if waiting else ""
        return Reply(Outcome.ALREADY, f"this is the text that holds{left}", plan.state, plan.id, plan.seq)
    compared = _compare(connection, plan, spec, load_tasks(connection, plan.id, order.at), order.base)
    if waiting is not None and waiting.digest == spec.digest:
        revised = Revised(waiting.number, waiting.digest, compared.difference, compared.faults)
        message = f"revision {waiting.number} waits to be confirmed"
        return Reply(Outcome.ALREADY, message, plan.state, plan.id, waiting.seq, revised)
    number = last_revision(connection, plan.id) + 1
    revised = Revised(number, spec.digest, compared.difference, compared.faults)
    if compared.faults:
        return Reply(Outcome.REFUSED, _told(compared.faults), plan.state, plan.id, revised=revised)
    cause = f"published by {order.publish.by or order.publish.owner}"
    facts = {"plan_id": plan.id, "number": number, "digest": spec.digest, "text": order.publish.text}
    moves = (
        revision_move(plan.id, number, RevisionEvent.PROPOSE, cause, order.at, facts),
        *withdraw_revision(plan, f"replaced by revision {number}", order.at),
    )
    seq = move(connection, *moves, incarnation=incarnation)[0].receipt.seq
    message = f"published revision {number}" + (f", replacing revision {plan.proposed}" if plan.proposed else "")
    return Reply(Outcome.DONE, f"{message}: {revised.difference.summary}", plan.state, plan.id, seq, revised)


def confirm(connection: Connection, decision: Decision, plan: PlanRow, at: datetime, incarnation: int) -> Reply:
    """Carry the revision that waits out, all of it or nothing. The caller holds the plan's chain."""
    waiting = load_revision(connection, plan.id, plan.proposed)
    spec = _read(waiting.text, plan.slug)
    _lock_money(connection, plan)
    tasks = load_tasks(connection, plan.id, at)
    compared = _compare(connection, plan, spec, tasks)
    revised = Revised(waiting.number, waiting.digest, compared.difference, compared.faults)
    cause = f"revision {waiting.number} confirmed by {decision.by or 'a person'}"
    if compared.faults:
        key = f"revise:{waiting.number}"
        wish = Move("plan", plan.id, PlanEvent.REVISE, key, plan.id, cause, at, by=Actor.PERSON)
        seq = record_refusal(connection, wish, _told(compared.faults)).receipt.seq
        return Reply(Outcome.REFUSED, _told(compared.faults), plan.state, plan.id, seq, revised)
    moves = revise(plan, compared.difference, tasks, Order(waiting.number, spec, cause, at))
    moved = move(connection, *moves, incarnation=incarnation)
    if moved[-1].refused:
        return Reply(Outcome.REFUSED, moved[-1].refused, plan.state, plan.id, moved[-1].receipt.seq)
    message = f"revision {waiting.number} confirmed: {compared.difference.summary}"
    state, seq = moved[-1].state or "", moved[-1].receipt.seq
    touched = touched_by(connection, plan.id, waiting.number)
    return Reply(Outcome.DONE, message, state, plan.id, seq, replace(revised, touched=touched))


def touched_by(connection: Connection, plan_id: str, number: int) -> tuple[int, ...]:
    """The boxes whose tasks the revision of this number was the last to change, without those yet to begin."""
    of_plan = (task_rows.c.plan_id == plan_id) & (task_rows.c.revision == number)
    chosen = of_plan & (task_rows.c.state != TaskState.PENDING)
    return tuple(connection.scalars(select(task_rows.c.ordinal).where(chosen).order_by(task_rows.c.ordinal)))


def withdraw(connection: Connection, decision: Decision, plan: PlanRow, at: datetime, incarnation: int) -> Reply:
    """Take the revision that waits back. The caller holds the plan's chain."""
    number = decision.revision or plan.proposed or last_revision(connection, plan.id)
    if not plan.proposed or number != plan.proposed:
        seq = seq_of_key(connection, plan.id, f"revision:{number}:{RevisionEvent.WITHDRAW}")
        if seq:
            return Reply(Outcome.ALREADY, f"revision {number} was withdrawn", plan.state, plan.id, seq)
        what = f"revision {number} does not wait" if decision.revision else "no revision waits"
        return _refuse(connection, decision, plan, f"{what} to be confirmed", at)
    waiting = load_revision(connection, plan.id, plan.proposed)
    if decision.names and decision.names != waiting.digest:
        message = f"this withdraws {decision.names[:12]}, but what waits is {waiting.digest[:12]}"
        return _refuse(connection, decision, plan, message, at)
    moves = withdraw_revision(plan, f"withdrawn by {decision.by or 'a person'}", at)
    seq = move(connection, *moves, incarnation=incarnation)[0].receipt.seq
    return Reply(Outcome.DONE, f"revision {number} is withdrawn", plan.state, plan.id, seq)


def _refuse(connection: Connection, decision: Decision, plan: PlanRow, message: str, at: datetime) -> Reply:
    cause = f"{decision.kind} by {decision.by or 'a person'}"
    key = f"{decision.kind}:{decision.names}"
    wish = Move("plan", plan.id, decision.kind, key, plan.id, cause, at, by=Actor.PERSON)
    return Reply(Outcome.REFUSED, message, plan.state, plan.id, record_refusal(connection, wish, message).receipt.seq)


@dataclass(frozen=True)
class Proposal:
    """A revision that waits, and how it stands beside the plan as it is now."""

    revision: RevisionRow
    compared: Comparison

    @property
    def lines(self) -> tuple[str, ...]:
        """What it changes, and what stands in its way by now."""
        faults = (f"! line {fault.line}: {fault.message}" for fault in self.compared.faults)
        return (*in_words(self.compared.difference), *faults)


def proposal_of(connection: Connection, plan: PlanRow, tasks: Sequence[TaskFacts]) -> Proposal | None:
    """The revision that waits to be confirmed; None where there is none."""
    if not plan.proposed:
        return None
    waiting = load_revision(connection, plan.id, plan.proposed)
    return Proposal(waiting, _compare(connection, plan, _read(waiting.text, plan.slug), tasks))


def is_proposed(connection: Connection, decision: Decision, plan: PlanRow) -> bool:
    """Whether a confirmation is of the revision that waits, and not of the text that holds."""
    if not plan.proposed or decision.revision not in (0, plan.proposed):
        return False
    return load_revision(connection, plan.id, plan.proposed).digest == decision.names


def _compare(
    connection: Connection, plan: PlanFacts, spec: PlanSpec, tasks: Sequence[TaskFacts], base: str = ""
) -> Comparison:
    holds = _read(load_revision(connection, plan.id, plan.revision).text, plan.slug)
    used = spent_or_held(connection, plan.id, [task.id for task in tasks])
    return compare(plan, holds, spec, tasks, base, used)


@lru_cache(maxsize=64)
def _read(text: str, slug: str) -> PlanSpec:
    return parse(text, file_name=f"{slug}.md")


def _lock_money(connection: Connection, plan: PlanFacts) -> None:
    """Let nobody hold money of the plan's tasks meanwhile: their rows first, then the ceilings, as everybody does."""
    rows = select(task_rows.c.id).where(task_rows.c.plan_id == plan.id).order_by(task_rows.c.ordinal)
    ids = list(connection.scalars(rows.with_for_update()))
    known = [ceiling_id(CeilingKind.PLAN, plan.id), *(ceiling_id(CeilingKind.TASK, task) for task in ids)]
    locked(connection, (), known)


def _told(faults: Sequence[Fault]) -> str:
    return "; ".join(f"line {fault.line}: {fault.message}" for fault in faults)
