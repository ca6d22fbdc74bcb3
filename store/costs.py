"""What a plan has cost: of each task and run, what is held, what is spent, on which model, and what is left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, case, func, literal, select

from domain.ledger import CeilingKind, ReservationState, ceiling_id, day_subject
from domain.metering import Metering, known
from domain.spending import Share, Spending, dearest_first, grouped, total
from domain.told import ToldUsage
from store.caps import day_budget
from store.columns import instant
from store.entries import TOKENS
from store.tables import ceilings, plans, reservations, runs, tasks, usage
from store.told import usage_told


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
    """What calls of one model came to, of a run or of the whole plan.

    `calls` are over and count; `unmeasured` of them said no usage, and count as all that was held. `held` is what
    those under way may come to. Only a run's models name their `requests`. `unmetered_runs` were sent out with this
    model as well, and are in no amount: `spent` is None where there is nothing else.
    """

    model: str
    calls: int
    unmeasured: int
    spent: int | None
    held: int
    tokens: Mapping[str, int]
    requests: tuple[Request, ...] = ()
    unmetered_runs: int = 0


@dataclass(frozen=True)
class RoleCosts:
    """What the calls of all runs in one role came to, as `ModelCosts` counts."""

    role: str
    calls: int
    unmeasured: int
    spent: int | None
    held: int
    tokens: Mapping[str, int]
    unmetered_runs: int = 0


@dataclass(frozen=True)
class RunCosts:
    """`metering` is a Metering, empty for a run from before it was told.

    `told` is what the CLI of an unmetered run says that it used: unverified, and in no amount.
    """

    run: str
    role: str
    money: Money
    models: tuple[ModelCosts, ...] = ()
    metering: str = ""
    told: ToldUsage | None = None


@dataclass(frozen=True)
class TaskCosts:
    task: str
    ordinal: int
    title: str
    money: Money
    runs: tuple[RunCosts, ...] = ()


@dataclass(frozen=True)
class PlanCosts:
    """`day` is the owner's today, over all their plans, in `zone`.

    The tasks add up to the plan, and so do its `roles`, and its `models`: each call is in one of each.
    """

    plan: str
    money: Money
    day: str
    zone: str
    day_money: Money
    tasks: tuple[TaskCosts, ...] = field(default=())
    roles: tuple[RoleCosts, ...] = ()
    models: tuple[ModelCosts, ...] = ()


def plan_costs(connection: Connection, plan_id: str, at: datetime) -> PlanCosts | None:
    """The costs of a plan as they stand at `at`; None when it was never published."""
    plan = connection.execute(select(plans.c.owner, plans.c.budget_nano_usd).where(plans.c.id == plan_id)).one_or_none()
    if plan is None:
        return None
    whole = sums_of(connection, CeilingKind.PLAN, [plan_id]).get(plan_id, Sum())
    day, zone, day_money = day_costs(connection, plan.owner, at)
    begun, whose = _begun(connection, plan_id), shares(connection, [plan_id])
    every = (*whose, *filter(None, (run.unmetered for run in begun)))
    roles, models = (dearest_first(grouped(every, key)) for key in (lambda each: each.role, lambda each: each.model))
    return PlanCosts(
        plan=plan_id,
        money=Money(*whole, plan.budget_nano_usd, total(every).unmetered_runs),
        day=day,
        zone=zone,
        day_money=day_money,
        tasks=tuple(_tasks(connection, plan_id, begun, whose)),
        roles=tuple(RoleCosts(role, **_parts(part)) for role, part in roles.items()),
        models=tuple(ModelCosts(model, **_parts(part)) for model, part in models.items()),
    )


def day_costs(connection: Connection, owner: str, at: datetime) -> tuple[str, str, Money]:
    """The owner's day of the moment `at` as a date, its time zone, and its money."""
    cap, zone = day_budget(connection, owner)
    subject = day_subject(owner, at, zone)
    query = select(ceilings.c.held, ceilings.c.settled).where(ceilings.c.id == ceiling_id(CeilingKind.DAY, subject))
    row = connection.execute(query).one_or_none()
    unmetered = sum(day_subject(owner, began, zone) == subject for began in _unmetered_since(connection, owner, at))
    return subject.rpartition(":")[2], zone, Money(*(Sum(*row) if row else Sum()), cap, unmetered)


def _unmetered_since(connection: Connection, owner: str, at: datetime) -> Iterable[datetime]:
    """When the owner's unmetered runs began that may belong to the day of this moment: a day may have 25 hours."""
    query = select(runs.c.started_at).join(tasks, tasks.c.id == runs.c.task_id)
    theirs = (tasks.c.owner == owner) & (runs.c.metering == Metering.UNMETERED)
    began = connection.scalars(query.where(theirs, runs.c.started_at >= instant(at - timedelta(hours=26))))
    return map(datetime.fromisoformat, began)


def spent_on(connection: Connection, plan_ids: Collection[str]) -> dict[str, int]:
    """What is spent and held of each plan's money, in nano-dollars, by its id; without those that asked for none."""
    return {plan: sum(both) for plan, both in sums_of(connection, CeilingKind.PLAN, plan_ids).items()}


class Sum(NamedTuple):
    """What is held and spent of a ceiling, in nano-dollars."""

    held: int = 0
    spent: int = 0


_SUBJECTS = {
    CeilingKind.PLAN: (plans.c.id, plans.c.id),
    CeilingKind.TASK: (tasks.c.id, tasks.c.plan_id),
    CeilingKind.RUN: (runs.c.id, runs.c.plan_id),
}


def sums_of(connection: Connection, kind: CeilingKind, plan_ids: Collection[str]) -> dict[str, Sum]:
    """What is held and spent of the ceilings over these plans, or over their tasks or runs, by the subject's id.

    Those that never asked for money are left out. By the ceilings' ids, so that no other plan's are looked at.
    """
    subject, plan = _SUBJECTS[kind]
    chosen = select(literal(f"{kind}:") + subject).where(plan.in_(plan_ids))
    query = select(ceilings.c.subject, ceilings.c.held, ceilings.c.settled).where(ceilings.c.id.in_(chosen))
    return {name: Sum(held, spent) for name, held, spent in connection.execute(query)}


class _Run(NamedTuple):
    """A run, as far as its costs need it."""

    plan: str
    task: str
    id: str
    role: str
    model: str
    metering: str

    @property
    def unmetered(self) -> Share | None:
        """The share of which nothing is known, where it was unmetered."""
        return Share.unmetered(*self[:5]) if self.metering == Metering.UNMETERED else None


def _begun(connection: Connection, plan_id: str) -> list[_Run]:
    columns = (runs.c.plan_id, runs.c.task_id, runs.c.id, runs.c.role, runs.c.model, runs.c.metering)
    query = select(*columns).where(runs.c.plan_id == plan_id).order_by(runs.c.epoch, runs.c.id)
    return [_Run(*row) for row in connection.execute(query)]


def _tasks(connection: Connection, plan_id: str, begun: Iterable[_Run], whose: Iterable[Share]) -> Iterable[TaskCosts]:
    of_tasks, of_runs = (sums_of(connection, kind, [plan_id]) for kind in (CeilingKind.TASK, CeilingKind.RUN))
    requests, told = _requests(connection, plan_id), usage_told(connection, [plan_id])
    models: dict[str, list[ModelCosts]] = {}
    for share in whose:
        own = tuple(requests.get((share.run, share.model), ()))
        models.setdefault(share.run, []).append(ModelCosts(share.model, **_parts(share.spending), requests=own))
    by_task: dict[str, list[RunCosts]] = {}
    for run in begun:
        unmetered = int(run.unmetered is not None)
        if run.id in of_runs or unmetered:
            money = Money(*of_runs.get(run.id, Sum()), None, unmetered)
            each = RunCosts(run.id, run.role, money, tuple(models.get(run.id, ())), run.metering, told.get(run.id))
            by_task.setdefault(run.task, []).append(each)
    boxes = select(tasks.c.id, tasks.c.ordinal, tasks.c.title, tasks.c.budget_nano_usd)
    for row in connection.execute(boxes.where(tasks.c.plan_id == plan_id).order_by(tasks.c.ordinal)):
        own_runs = tuple(by_task.get(row.id, ()))
        unmetered = sum(run.money.unmetered_runs for run in own_runs)
        money = Money(*of_tasks.get(row.id, Sum()), row.budget_nano_usd, unmetered)
        yield TaskCosts(row.id, row.ordinal, row.title, money, own_runs)


def _parts(spending: Spending) -> Mapping[str, Any]:
    return {
        "calls": spending.calls,
        "unmeasured": spending.unmeasured,
        "spent": spending.spent_nano_usd,
        "held": spending.held_nano_usd,
        "tokens": spending.tokens,
        "unmetered_runs": spending.unmetered_runs,
    }


def shares(connection: Connection, plan_ids: Collection[str], since: datetime | None = None) -> tuple[Share, ...]:
    """What the calls of these plans' runs came to, by run and model, in one statement; those asked from `since` on.

    They are read from the reservations, of which the ceilings are the sums: what was asked and never told its usage
    is in them as well.
    """
    over = reservations.c.state.in_((ReservationState.SETTLED, ReservationState.EXPIRED))
    held = case((reservations.c.state == ReservationState.HELD, reservations.c.held), else_=0)
    whose = (runs.c.plan_id, runs.c.task_id, runs.c.id, runs.c.role, reservations.c.model)
    query = (
        select(
            *whose,
            func.sum(held),
            func.sum(reservations.c.settled),
            func.sum(case((over, 1), else_=0)),
            func.sum(case((over & usage.c.measured.is_not(True), 1), else_=0)),
            *(func.coalesce(func.sum(usage.c[kind]), 0) for kind in TOKENS),
        )
        .select_from(
            reservations.join(runs, runs.c.id == reservations.c.run_id).outerjoin(
                usage, usage.c.id == reservations.c.id
            )
        )
        .where(
            reservations.c.plan_ceiling.in_([ceiling_id(CeilingKind.PLAN, plan) for plan in plan_ids]),
            # Nothing of it reached a provider, so nothing was bought.
            reservations.c.state != ReservationState.RELEASED,
        )
        .group_by(*whose, runs.c.epoch)
        .order_by(runs.c.plan_id, runs.c.epoch, runs.c.id, reservations.c.model)
    )
    if since is not None:
        query = query.where(reservations.c.asked_at >= since)
    return tuple(_share(*row) for row in connection.execute(query))


def _share(plan: str, task: str, run: str, role: str, model: str, *sums: int) -> Share:
    held, spent, calls, unmeasured, *counts = map(int, sums)
    tokens = dict(zip(TOKENS, counts, strict=True))
    return Share(plan, task, run, role, model, Spending(held, spent, calls, unmeasured, tokens))


def _requests(connection: Connection, plan_id: str) -> dict[tuple[str, str], list[Request]]:
    query = (
        select(usage.c.run_id, usage.c.model, usage.c.request_id, usage.c.nano_usd)
        .join(runs, runs.c.id == usage.c.run_id)
        .where(runs.c.plan_id == plan_id)
        .order_by(usage.c.asked_at, usage.c.id)
    )
    found: dict[tuple[str, str], list[Request]] = {}
    for run, model, id, spent in connection.execute(query):
        found.setdefault((run, model), []).append(Request(id, spent))
    return found
