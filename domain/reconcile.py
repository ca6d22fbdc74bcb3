"""Reconcile: compare what is wanted with what is, and answer what to do. No memory, no clock.

It is given identities and states, never the event that woke it, so a lost or a doubled wake-up
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from domain.task import ENDED, SLOTTED, SUCCEEDED, TaskState


@dataclass(frozen=True)
class TaskStatus:
    """One confirmed task as dispatch sees it."""

    id: str
    ordinal: int
    state: TaskState
    has_slot: bool = False
    after: tuple[int, ...] = ()
    after_waived: bool = False


@dataclass(frozen=True)
class PlanStatus:
    """One confirmed plan: every task of it, how many may run at once, and whether its gate is shut."""

    id: str
    concurrency: int
    paused: bool
    tasks: tuple[TaskStatus, ...]


@dataclass(frozen=True)
class Room:
    """What the owner has left: `slots` to grant, none while the owner's own gate is shut."""

    slots: int
    paused: bool = False


@dataclass(frozen=True)
class Begin:
    """Grant a slot to a pending task and let it begin."""

    plan_id: str
    task_id: str


@dataclass(frozen=True)
class Grant:
    """Grant a slot to a task that is under way without one: its lease ran out, or it was resumed."""

    plan_id: str
    task_id: str


@dataclass(frozen=True)
class Block:
    """Ask a person about a pending task whose predecessor ended without success."""

    plan_id: str
    task_id: str
    predecessor: int
    ended_as: TaskState


Action = Begin | Grant | Block


def reconcile(plans: Iterable[PlanStatus], room: Room) -> tuple[Action, ...]:
    """The actions that bring the owner's plans closer to done.

    Slots go round: each plan holds one before any holds a second, and within a plan work under way
    comes before work not yet begun, so one large plan cannot starve the others. Blocking, and
    beginning what holds a slot already, needs none.
    """
    open_plans = [plan for plan in plans if not plan.paused]
    settled: list[Action] = []
    for plan in open_plans:
        settled += [*_blocked(plan), *_half_begun(plan)]
    if room.paused:
        return tuple(settled)
    return (*settled, *_round_robin(open_plans, room.slots))


def _round_robin(plans: list[PlanStatus], slots: int) -> Iterator[Action]:
    """Each slot goes to the plan that holds fewest by then; among equals, to the one that got least so far."""
    waiting = [
        (sum(task.has_slot for task in plan.tasks), _begun(plan), plan.id, list(_wanting(plan))) for plan in plans
    ]
    heap = [entry for entry in waiting if entry[3]]
    heapify(heap)
    while heap and slots > 0:
        held, begun, plan, wishes = heappop(heap)
        yield wishes.pop(0)
        slots -= 1
        if wishes:
            heappush(heap, (held + 1, begun + 1, plan, wishes))


def _begun(plan: PlanStatus) -> int:
    return sum(task.state is not TaskState.PENDING for task in plan.tasks)


def _wanting(plan: PlanStatus) -> Iterator[Action]:
    """The actions a plan would take if slots were free, best first, within its own concurrency."""
    free = plan.concurrency - sum(task.has_slot for task in plan.tasks)
    under_way = [task for task in plan.tasks if task.state in SLOTTED and not task.has_slot]
    pending = [task for task in plan.tasks if task.state is TaskState.PENDING and not task.has_slot]
    ready = [task for task in pending if _may_begin(plan, task)]
    for task in (*under_way, *ready)[: max(free, 0)]:
        yield Begin(plan.id, task.id) if task.state is TaskState.PENDING else Grant(plan.id, task.id)


def _half_begun(plan: PlanStatus) -> Iterator[Begin]:
    """Tasks whose slot was granted by a beat that died before it let them begin."""
    for task in plan.tasks:
        if task.state is TaskState.PENDING and task.has_slot:
            yield Begin(plan.id, task.id)


def _may_begin(plan: PlanStatus, task: TaskStatus) -> bool:
    return task.after_waived or all(state in SUCCEEDED for _, state in _predecessors(plan, task))


def _blocked(plan: PlanStatus) -> Iterator[Block]:
    for task in plan.tasks:
        if task.state is not TaskState.PENDING or task.after_waived:
            continue
        for ordinal, state in _predecessors(plan, task):
            if state in ENDED and state not in SUCCEEDED:
                yield Block(plan.id, task.id, ordinal, state)
                break


def _predecessors(plan: PlanStatus, task: TaskStatus) -> list[tuple[int, TaskState]]:
    """Boxes that were checked when the plan was published are no tasks, and hold nobody up."""
    states = {other.ordinal: other.state for other in plan.tasks}
    return [(ordinal, states[ordinal]) for ordinal in task.after if ordinal in states]
