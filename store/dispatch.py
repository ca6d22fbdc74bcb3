"""One beat of an owner's heart, in the graph: what should begin is granted its slot and begins.

Slots are granted in one transaction under the owner's lock, before anything is scheduled; each
plan's moves follow in a transaction of their own. A crash in between leaves a pending task with a
slot, which the next beat begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, select

from domain.decision import ask, reopen_plan
from domain.duties import Actor
from domain.flow import moves_of
from domain.heartbeat import HeartbeatFacts, HeartbeatPolicy, closed_gate
from domain.identity import plan_of_task
from domain.landing import forge_fact
from domain.lifecycle import Move, Moved
from domain.owner import OwnerState
from domain.plan import PlanEvent, PlanState
from domain.publication import Beat, BeatReply, PlanRef, TaskRef
from domain.pull import PullRequest
from domain.reconcile import Action, Begin, Block, Grant, PlanStatus, Room, TaskStatus, reconcile
from domain.task import ENDED, QuestionKind, TaskEvent, TaskState
from store import inbox
from store.closing import as_borne_out
from store.database import Store
from store.leases import SLOT_LEASE, Slot, expire_slots, grant_slot, lock_owner, release_slot, slots_of
from store.moves import lock_chain, move
from store.plans import load_plan
from store.tables import owners, plans, tasks
from store.tasks import load_task

AT_MOST = 25
"""Tasks begun in one beat: what a beat does has to stay short."""

MAX_STRAYS = 100
"""Pull requests followed in one beat; the others are in the next."""

_LIVE_PLANS = (PlanState.CONFIRMED, PlanState.IN_PROGRESS)


def beat(store: Store, order: Beat, policy: HeartbeatPolicy, incarnation: int) -> BeatReply:
    """Compare what the owner wants with what is, grant slots, begin or block tasks, and say whom to wake.

    A repeat of the same beat names those again that it granted a slot: the first reply may be lost.
    """
    with store.write() as connection:
        lock_owner(connection, order.owner)
        expire_slots(connection, order.at)
        inbox.settle_merged(connection, order.owner, order.at)
        statuses = _statuses(connection, order)
        closed, actions = _gate_and_grant(connection, order, statuses, policy)
    woken = [task for plan in statuses for task in _act(store, plan.id, actions, order, incarnation)]
    with store.read() as connection:
        granted = {slot.task_id for slot in slots_of(connection, order.owner, order.at) if slot.granted_at == order.at}
        return replace(_reply(connection, order, statuses, granted.union(woken), closed), policy=policy)


def follow_forge(connection: Connection, task: str, pull: PullRequest, at: datetime, incarnation: int) -> bool:
    """Make the move that a pull request's state demands of a task, wherever it stands; whether it moved."""
    lock_chain(connection, plan_of_task(task))
    facts = load_task(connection, task, at)
    answer = forge_fact(facts, pull)
    if answer is None:
        return False
    plan = load_plan(connection, facts.plan_id)
    lives_again = answer.event is TaskEvent.REOPENED
    made = (as_borne_out(connection, wish) for wish in moves_of(facts, answer, at))
    moves = (*made, *(reopen_plan(plan, answer.cause, at, by=answer.by) if lives_again else ()))
    return _made(move(connection, *moves, incarnation=incarnation))


def owners_with_work(connection: Connection) -> list[str]:
    """Owners who have a plan under way, or hints about one of their tasks that nobody has looked at."""
    under_way = select(plans.c.owner).where(plans.c.state.in_(_LIVE_PLANS)).distinct()
    return sorted({*connection.scalars(under_way), *inbox.owners_with_hints(connection)})


def plans_awaiting(connection: Connection) -> list[PlanRef]:
    """The plans that wait for a person's confirmation."""
    waiting = select(plans.c.id, plans.c.owner).where(plans.c.state == PlanState.AWAITING_CONFIRMATION)
    return [PlanRef(row.id, row.owner) for row in connection.execute(waiting.order_by(plans.c.id))]


def _statuses(connection: Connection, order: Beat) -> list[PlanStatus]:
    """Every plan under way, with its tasks as dispatch sees them."""
    holding = {slot.task_id for slot in slots_of(connection, order.owner, order.at)}
    by_plan: dict[str, list[TaskStatus]] = {}
    query = (
        select(plans.c.id, plans.c.concurrency, plans.c.paused)
        .where(plans.c.owner == order.owner, plans.c.state.in_(_LIVE_PLANS))
        .order_by(plans.c.id)
    )
    live = connection.execute(query).all()
    columns = (
        tasks.c.id,
        tasks.c.plan_id,
        tasks.c.ordinal,
        tasks.c.state,
        tasks.c.after,
        tasks.c.after_waived,
    )
    boxes = select(*columns).where(tasks.c.plan_id.in_([plan.id for plan in live])).order_by(tasks.c.ordinal)
    for row in connection.execute(boxes):
        by_plan.setdefault(row.plan_id, []).append(
            TaskStatus(
                row.id,
                row.ordinal,
                TaskState(row.state),
                row.id in holding,
                tuple(row.after),
                row.after_waived,
            )
        )
    return [PlanStatus(plan.id, plan.concurrency, plan.paused, tuple(by_plan.get(plan.id, ()))) for plan in live]


def _gate_and_grant(
    connection: Connection, order: Beat, statuses: list[PlanStatus], policy: HeartbeatPolicy
) -> tuple[str, tuple[Action, ...]]:
    in_use = sum(task.has_slot for plan in statuses for task in plan.tasks)
    paused = connection.scalar(select(owners.c.state).where(owners.c.id == order.owner)) == OwnerState.PAUSED
    closed = closed_gate(policy, HeartbeatFacts(paused, in_use))
    room = Room(min(AT_MOST, max(0, policy.slots - in_use)), paused)
    actions = reconcile(statuses, room)
    for action in actions:
        if isinstance(action, Begin | Grant):
            grant_slot(
                connection,
                Slot(action.task_id, action.plan_id, order.owner, order.at, order.at + SLOT_LEASE),
            )
    return closed, actions


def _act(store: Store, plan_id: str, actions: Iterable[Action], order: Beat, incarnation: int) -> list[str]:
    """Make one plan's moves; the ids of tasks that have something to do now."""
    mine = [action for action in actions if action.plan_id == plan_id]
    if not mine:
        return []
    with store.write() as connection:
        return [action.task_id for action in mine if _carry_out(connection, action, order, incarnation)]


def _carry_out(connection: Connection, action: Action, order: Beat, incarnation: int) -> bool:
    match action:
        case Grant():
            return True
        case Begin():
            return _begin(connection, action, order.at, incarnation)
        case Block():
            lock_chain(connection, action.plan_id)
            task = load_task(connection, action.task_id, order.at)
            text = (
                f"Task {action.predecessor}, which this one comes after, ended as {action.ended_as}. "
                "Resume to begin all the same, or cancel."
            )
            why = "its predecessor ended"
            moves = ask(task, QuestionKind.PREDECESSOR, text, TaskState.PENDING, why, order.at, by=Actor.HEARTBEAT)
            return _made(move(connection, *moves, incarnation=incarnation))


def _begin(connection: Connection, action: Begin, at: datetime, incarnation: int) -> bool:
    lock_chain(connection, action.plan_id)
    task = load_task(connection, action.task_id, at)
    cause = "the heartbeat granted a slot"
    key = f"begin:{task.id}:{task.round}"
    moves = [Move("task", task.id, TaskEvent.BEGIN, key, task.plan_id, cause, at, by=Actor.HEARTBEAT)]
    plan = load_plan(connection, task.plan_id)
    if plan.state is PlanState.CONFIRMED:
        why = "its first task began"
        moves.append(Move("plan", plan.id, PlanEvent.BEGIN, "begin", plan.id, why, at, by=Actor.HEARTBEAT))
    moved = move(connection, *moves, incarnation=incarnation)
    if moved[-1].refused:
        release_slot(connection, task.id)
    return _made(moved)


def _made(moved: tuple[Moved, ...]) -> bool:
    return moved[0].fresh and not moved[-1].refused


def _unwatched_pulls(connection: Connection, live: list[str]) -> set[str]:
    """Tasks of plans under way that have a pull request and are not in review: nobody else looks at these."""
    query = select(tasks.c.id).where(
        tasks.c.plan_id.in_(live), tasks.c.pull_number.is_not(None), tasks.c.state != TaskState.MERGED
    )
    return set(connection.scalars(query))


def _reply(connection: Connection, order: Beat, statuses: list[PlanStatus], woken: set[str], closed: str) -> BeatReply:
    hinted = inbox.hinted_tasks(connection, order.owner)
    in_review = {task.id for plan in statuses for task in plan.tasks if task.state is TaskState.IN_REVIEW}
    wake = {*woken, *(hinted & in_review), *(in_review if order.follow else ())}
    alive = {
        task.id
        for plan in statuses
        for task in plan.tasks
        if order.whole and task.state not in (*ENDED, TaskState.PENDING) and task.id not in wake
    }
    strays = inbox.hinted_tasks(connection, order.owner, about_pulls=True)
    if order.follow:
        strays |= _unwatched_pulls(connection, [plan.id for plan in statuses])
    strays -= in_review
    wanted = select(tasks.c.id, tasks.c.plan_id, tasks.c.title).where(tasks.c.id.in_({*wake, *alive, *strays}))
    refs = {row.id: TaskRef(row.id, row.plan_id, order.owner, row.title) for row in connection.execute(wanted)}
    return BeatReply(
        wake=tuple(refs[task] for task in sorted(wake)),
        alive=tuple(refs[task] for task in sorted(alive)),
        strays=tuple(refs[task] for task in sorted(strays)[:MAX_STRAYS]),
        plans=tuple(PlanRef(plan.id, order.owner) for plan in statuses) if order.whole else (),
        closed_gate=closed,
        idle=not statuses and not strays,
    )
