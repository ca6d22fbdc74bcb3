"""What reports and projections tell of plans beyond their views.

Each function is one statement for any number of plans, tasks and runs, and reads the rows of those plans alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, or_, select

from domain.agents import AGENTS
from domain.metering import Metering
from domain.plan import PLAN, PlanEvent
from domain.run import LIVE, EvidenceKind, Role, RunEvent, RunState
from store.tables import chains, evidence, plans, receipts, runs, seals, tasks, words
from store.words import WordKind

_BOUNDS = (RunEvent.START, RunEvent.FINISH, RunEvent.CRASH, RunEvent.LOSE, RunEvent.REFUSE, RunEvent.STOP)

_AT_ONCE = 2000
"""Rows that are in memory at once where there may be many."""


@dataclass(frozen=True)
class Work:
    """What a task is and has come to, beside its view. `budget_nano_usd` is None where nobody said one."""

    task_id: str
    plan_id: str
    body: str
    runtime: str
    model: str
    budget_nano_usd: int | None
    head_sha: str
    proven_sha: str
    merged_sha: str
    pull_number: int | None

    @property
    def counts(self) -> str:
        """The commit whose checks count: the proven one, else the last."""
        return self.proven_sha or self.head_sha


@dataclass(frozen=True)
class Attempt:
    """A run, as far as a report tells of it. `number` counts within its task and role.

    `confinement` is empty until it has begun, `metering` a Metering, empty for what calls no model.
    """

    id: str
    plan_id: str
    task_id: str
    role: str
    number: int
    state: str
    outcome: str
    runtime: str
    model: str
    confinement: str = "unconfined"
    metering: str = ""

    @property
    def begun_by_an_agent(self) -> bool:
        return self.runtime in AGENTS and self.confinement != ""

    @property
    def unmetered(self) -> bool:
        """Whether nobody knows what it cost."""
        return self.metering == Metering.UNMETERED


class Seen(NamedTuple):
    """A piece of evidence. `exit_code` is None where a check never came to one."""

    plan_id: str
    task_id: str
    kind: str
    command: str
    commit_sha: str
    exit_code: int | None


class Happened(NamedTuple):
    """A receipt of something that was done. `before` is None for what began with it."""

    chain: str
    kind: str
    subject: str
    event: str
    before: str | None
    after: str | None
    at: datetime
    cause: str

    @property
    def of_a_person(self) -> bool:
        """Whether it is a person's word on the plan's text."""
        return self.kind == "plan" and self.event in (
            PlanEvent.PUBLISH, PlanEvent.REPUBLISH, PlanEvent.CONFIRM, PlanEvent.REVISE,
        )  # fmt: skip


def moved_since(connection: Connection, owner: str, since: datetime) -> set[str]:
    """The ids of an owner's plans that have a receipt from then on, or a run that is still at work."""
    newest = (receipts.c.chain == chains.c.chain) & (receipts.c.seq == chains.c.seq)
    receipted = select(chains.c.chain).join(receipts, newest).where(chains.c.owner == owner, receipts.c.at >= since)
    at_work = select(runs.c.id).where(runs.c.plan_id == plans.c.id, runs.c.state.in_(LIVE)).exists()
    moved = or_(plans.c.id.in_(receipted), plans.c.state.not_in(PLAN.ended) & at_work)
    return set(connection.scalars(select(plans.c.id).where(plans.c.owner == owner, moved)))


def works_of(connection: Connection, plan_ids: Collection[str]) -> dict[str, Work]:
    """The tasks of these plans, by their ids."""
    columns = (tasks.c[name] for name in Work.__dataclass_fields__ if name != "task_id")
    query = select(tasks.c.id.label("task_id"), *columns).where(tasks.c.plan_id.in_(plan_ids))
    return {row["task_id"]: Work(**row) for row in connection.execute(query).mappings()}


def attempts_of(connection: Connection, plan_ids: Collection[str]) -> tuple[Attempt, ...]:
    """The runs of these plans, in the order in which each task's began."""
    query = select(*(runs.c[name] for name in Attempt.__dataclass_fields__)).where(runs.c.plan_id.in_(plan_ids))
    rows = connection.execute(query.order_by(runs.c.plan_id, runs.c.epoch, runs.c.ordinal, runs.c.number))
    return tuple(Attempt(*row) for row in rows)


def seen_of(connection: Connection, plan_ids: Collection[str]) -> tuple[Seen, ...]:
    """What was seen of these plans' tasks: checks and crashes, in the order in which they were recorded."""
    kinds = (EvidenceKind.CHECK, EvidenceKind.AGENT_CRASH, EvidenceKind.WORKER_CRASH)
    query = (
        select(*(evidence.c[name] for name in Seen._fields))
        .where(evidence.c.plan_id.in_(plan_ids), evidence.c.kind.in_(kinds), evidence.c.task_id.is_not(None))
        .order_by(evidence.c.plan_id, evidence.c.receipt_seq)
    )
    return tuple(Seen(*row) for row in connection.execute(query))


def happened(
    connection: Connection, plan_ids: Collection[str], kinds: Collection[str] = ("plan", "task", "run")
) -> Iterator[Happened]:
    """What was done with these plans, their tasks and their runs, in each plan's order; refusals are none of it.

    Of runs their begin and their end.
    """
    query = (
        select(*(receipts.c[name] for name in Happened._fields))
        .where(receipts.c.chain.in_(plan_ids), receipts.c.kind.in_(kinds), receipts.c.refused == "")
        .where((receipts.c.kind != "run") | receipts.c.event.in_(_BOUNDS))
        .order_by(receipts.c.chain, receipts.c.seq)
        .execution_options(yield_per=_AT_ONCE)
    )
    for row in connection.execute(query):
        yield Happened(*row)


def newest_seals(connection: Connection, plan_ids: Collection[str]) -> dict[str, tuple[int, str]]:
    """`(seq, token)` of each plan's last seal, by its id; those without one are left out."""
    last = (
        select(seals.c.chain, func.max(seals.c.seq).label("seq"))
        .where(seals.c.chain.in_(plan_ids))
        .group_by(seals.c.chain)
        .subquery()
    )
    newest = (seals.c.chain == last.c.chain) & (seals.c.seq == last.c.seq)
    query = select(seals.c.chain, seals.c.seq, seals.c.token).join(last, newest)
    return {row.chain: (row.seq, row.token) for row in connection.execute(query)}


def last_results(connection: Connection, plan_ids: Collection[str]) -> dict[str, Any]:
    """What each task's author last came to, by the task's id, as `store.words.last_result` has it of one."""
    finished = runs.c.plan_id.in_(plan_ids) & (runs.c.role == Role.AUTHOR) & (runs.c.state == RunState.FINISHED)
    last = (
        select(runs.c.task_id, func.max(runs.c.number).label("number"))
        .where(finished)
        .group_by(runs.c.task_id)
        .subquery()
    )
    query = (
        select(runs.c.task_id, words.c.body)
        .join(last, (last.c.task_id == runs.c.task_id) & (last.c.number == runs.c.number))
        .join(words, words.c.run_id == runs.c.id)
        .where(finished, words.c.kind == WordKind.RESULT, words.c.refused == "")
        # The last one stands.
        .order_by(runs.c.task_id, words.c.n)
    )
    return {row.task_id: row.body["result"] for row in connection.execute(query)}
