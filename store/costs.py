"""What a plan has cost: of each task and run, what is held, what is spent, on which model, and what is left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select

from domain.ledger import CeilingKind, ceiling_id, day_subject
from domain.metering import Metering, known
from store.caps import day_budget
from store.columns import instant
from store.entries import TOKENS
from store.tables import ceilings, plans, runs, tasks, usage

_NOTHING = (0, 0)


@dataclass(frozen=True)
class Money:
    """What is held and spent of a ceiling, in nano-dollars. `cap` and `left` are None where there is no ceiling.

    `unmetered_runs` is how many runs were at work besides, of which nobody knows what they cost: it is in no amount.
    """

    held: int
    spent: int
    cap: int | None = None
    unmetered_runs: int = 0

    @property
    def known(self) -> int | None:
        """What is known to be spent; None for nothing where something may have been."""
        return known(self.spent, unmetered=self.unmetered_runs > 0)

    @property
    def left(self) -> int | None:
        return None if self.cap is None else max(0, self.cap - self.held - self.spent)


@dataclass(frozen=True)
class Request:
    """A call by the provider's own id, which its invoice and its console know; empty where it told none."""

    id: str
    spent: int


@dataclass(frozen=True)
class ModelCosts:
    """What a run's calls of one model came to. `unmeasured` of them said no usage, and count as all that was held."""

    model: str
    calls: int
    unmeasured: int
    spent: int
    tokens: Mapping[str, int]
    requests: tuple[Request, ...] = ()


@dataclass(frozen=True)
class RunCosts:
    """`metering` is a Metering, empty for a run from before it was told."""

    run: str
    money: Money
    models: tuple[ModelCosts, ...] = ()
    metering: str = ""


@dataclass(frozen=True)
class TaskCosts:
    task: str
    ordinal: int
    title: str
    money: Money
    runs: tuple[RunCosts, ...] = ()


@dataclass(frozen=True)
class PlanCosts:
    """`day` is the owner's today, over all their plans, in `zone`."""

    plan: str
    money: Money
    day: str
    zone: str
    day_money: Money
    tasks: tuple[TaskCosts, ...] = field(default=())


def plan_costs(connection: Connection, plan_id: str, at: datetime) -> PlanCosts | None:
    """The costs of a plan as they stand at `at`; None when it was never published."""
    plan = connection.execute(select(plans.c.owner, plans.c.budget_nano_usd).where(plans.c.id == plan_id)).one_or_none()
    if plan is None:
        return None
    sums = _sums(connection, plan_id)
    found = tuple(_tasks(connection, plan_id, sums))
    unmetered = sum(task.money.unmetered_runs for task in found)
    day, zone, day_money = day_costs(connection, plan.owner, at)
    return PlanCosts(
        plan=plan_id,
        money=Money(*sums.get(ceiling_id(CeilingKind.PLAN, plan_id), _NOTHING), plan.budget_nano_usd, unmetered),
        day=day,
        zone=zone,
        day_money=day_money,
        tasks=found,
    )


def day_costs(connection: Connection, owner: str, at: datetime) -> tuple[str, str, Money]:
    """The owner's day of the moment `at` as a date, its time zone, and its money."""
    cap, zone = day_budget(connection, owner)
    subject = day_subject(owner, at, zone)
    query = select(ceilings.c.held, ceilings.c.settled).where(ceilings.c.id == ceiling_id(CeilingKind.DAY, subject))
    row = connection.execute(query).one_or_none()
    held, spent = row or _NOTHING
    unmetered = sum(day_subject(owner, began, zone) == subject for began in _unmetered_since(connection, owner, at))
    return subject.rpartition(":")[2], zone, Money(held, spent, cap, unmetered)


def _unmetered_since(connection: Connection, owner: str, at: datetime) -> Iterable[datetime]:
    """When the owner's unmetered runs began that may belong to the day of this moment: a day may have 25 hours."""
    query = select(runs.c.started_at).join(tasks, tasks.c.id == runs.c.task_id)
    theirs = (tasks.c.owner == owner) & (runs.c.metering == Metering.UNMETERED)
    began = connection.scalars(query.where(theirs, runs.c.started_at >= instant(at - timedelta(hours=26))))
    return map(datetime.fromisoformat, began)


def spent_on(connection: Connection, plan_id: str) -> int:
    """What is spent and held of a plan's money, in nano-dollars."""
    id = ceiling_id(CeilingKind.PLAN, plan_id)
    return connection.scalar(select(ceilings.c.held + ceilings.c.settled).where(ceilings.c.id == id)) or 0


def _sums(connection: Connection, plan_id: str) -> dict[str, tuple[int, int]]:
    subjects = {
        CeilingKind.PLAN: select(plans.c.id).where(plans.c.id == plan_id),
        CeilingKind.TASK: select(tasks.c.id).where(tasks.c.plan_id == plan_id),
        CeilingKind.RUN: select(runs.c.id).where(runs.c.plan_id == plan_id),
    }
    found: dict[str, tuple[int, int]] = {}
    for kind, chosen in subjects.items():
        query = select(ceilings.c.id, ceilings.c.held, ceilings.c.settled)
        rows = connection.execute(query.where(ceilings.c.kind == kind, ceilings.c.subject.in_(chosen)))
        found.update({row.id: (row.held, row.settled) for row in rows})
    return found


def _tasks(connection: Connection, plan_id: str, sums: Mapping[str, tuple[int, int]]) -> Iterable[TaskCosts]:
    models = _models(connection, plan_id)
    by_task: dict[str, list[RunCosts]] = {}
    query = select(runs.c.id, runs.c.task_id, runs.c.metering).where(runs.c.plan_id == plan_id)
    for id, task, metering in connection.execute(query.order_by(runs.c.epoch, runs.c.id)):
        unmetered = int(metering == Metering.UNMETERED)
        money = sums.get(ceiling_id(CeilingKind.RUN, id), _NOTHING if unmetered else None)
        if money is not None:
            each = RunCosts(id, Money(*money, None, unmetered), tuple(models.get(id, ())), metering)
            by_task.setdefault(task, []).append(each)
    boxes = select(tasks.c.id, tasks.c.ordinal, tasks.c.title, tasks.c.budget_nano_usd)
    for row in connection.execute(boxes.where(tasks.c.plan_id == plan_id).order_by(tasks.c.ordinal)):
        money = sums.get(ceiling_id(CeilingKind.TASK, row.id), _NOTHING)
        own = tuple(by_task.get(row.id, ()))
        unmetered = sum(run.money.unmetered_runs for run in own)
        yield TaskCosts(row.id, row.ordinal, row.title, Money(*money, row.budget_nano_usd, unmetered), own)


def _models(connection: Connection, plan_id: str) -> dict[str, list[ModelCosts]]:
    query = (
        select(
            usage.c.run_id,
            usage.c.model,
            func.count(),
            func.sum(usage.c.nano_usd),
            *(func.sum(usage.c[kind]) for kind in TOKENS),
        )
        .join(runs, runs.c.id == usage.c.run_id)
        .where(runs.c.plan_id == plan_id)
        .group_by(usage.c.run_id, usage.c.model)
        .order_by(usage.c.run_id, usage.c.model)
    )
    blind = (
        select(usage.c.run_id, usage.c.model, func.count())
        .join(runs, runs.c.id == usage.c.run_id)
        .where(runs.c.plan_id == plan_id, usage.c.measured.is_(False))
        .group_by(usage.c.run_id, usage.c.model)
    )
    unmeasured = {(run, model): int(count) for run, model, count in connection.execute(blind)}
    single = (
        select(usage.c.run_id, usage.c.model, usage.c.request_id, usage.c.nano_usd)
        .join(runs, runs.c.id == usage.c.run_id)
        .where(runs.c.plan_id == plan_id)
        .order_by(usage.c.asked_at, usage.c.id)
    )
    requests: dict[tuple[str, str], list[Request]] = {}
    for run, model, id, spent in connection.execute(single):
        requests.setdefault((run, model), []).append(Request(id, spent))
    found: dict[str, list[ModelCosts]] = {}
    for run, model, calls, spent, *counts in connection.execute(query):
        tokens = dict(zip(TOKENS, map(int, counts), strict=True))
        each = tuple(requests[run, model])
        costs = ModelCosts(model, int(calls), unmeasured.get((run, model), 0), int(spent), tokens, each)
        found.setdefault(run, []).append(costs)
    return found
