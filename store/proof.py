"""The proof of the ledger: every sum is that of its reservations, every cap that of its fact, every cost that of its
usage, and a cost that nobody measured all that was held.

A plan's ceilings are proven with its chain, and an owner's days with the owner's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, or_, select

from domain.ledger import CeilingKind, ReservationState, ceiling_id, day_subject
from domain.metering import Metering
from store.caps import said_or_usual
from store.receipts import receipts_of
from store.tables import ceilings, plans, reservations, runs, tasks, usage

_COLUMNS = {
    CeilingKind.RUN: reservations.c.run_ceiling,
    CeilingKind.TASK: reservations.c.task_ceiling,
    CeilingKind.PLAN: reservations.c.plan_ceiling,
    CeilingKind.DAY: reservations.c.day_ceiling,
}
_HELD = func.sum(case((reservations.c.state == ReservationState.HELD, reservations.c.held), else_=0))
_SETTLED = func.sum(reservations.c.settled)


@dataclass(frozen=True)
class Flaw:
    """One thing in the ledger that does not add up: about which row, and which column of it, where one is meant."""

    message: str
    subject: str
    column: str = ""


def homes(connection: Connection) -> set[str]:
    """The chains that ceilings belong to, whether there is anything on them or not."""
    plans_of = select(ceilings.c.subject).where(ceilings.c.kind == CeilingKind.PLAN)
    named = select(reservations.c.day_ceiling).union(select(ceilings.c.id).where(ceilings.c.kind == CeilingKind.DAY))
    days = {day.split(":")[1] for day in connection.scalars(named) if day.count(":") > 1}
    return {f"owner:{owner}" for owner in days} | set(connection.scalars(plans_of))


Reckon = Callable[[Any], int | None]
"""What a row of usage costs in nano-dollars, by its tokens and its price; None where that price is not known here."""


def flaws(connection: Connection, chain: str, reckon: Reckon | None = None) -> Iterator[Flaw]:
    """What does not add up of the ceilings that belong to a chain, and of what was held of them."""
    if chain.startswith("owner:"):
        owner = chain.removeprefix("owner:")
        days = (ceilings.c.kind == CeilingKind.DAY) & (ceilings.c.owner == owner)
        of_days = reservations.c.day_ceiling.startswith(f"{CeilingKind.DAY}:{owner}:", autoescape=True)
        yield from _sums(connection, days, CeilingKind.DAY, of_days)
        yield from _day_caps(connection, owner, days)
    elif ":" not in chain:
        yield from _plan(connection, chain)
        if reckon is not None:
            yield from _costs(connection, chain, reckon)


def _plan(connection: Connection, plan: str) -> Iterator[Flaw]:
    of_runs = select(runs.c.id).where(runs.c.plan_id == plan)
    mine = reservations.c.run_id.in_(of_runs)
    of_tasks = select(tasks.c.id).where(tasks.c.plan_id == plan)
    for kind, subjects in ((CeilingKind.RUN, of_runs), (CeilingKind.TASK, of_tasks)):
        yield from _sums(connection, (ceilings.c.kind == kind) & ceilings.c.subject.in_(subjects), kind, mine)
    own = (ceilings.c.kind == CeilingKind.PLAN) & (ceilings.c.subject == plan)
    yield from _sums(connection, own, CeilingKind.PLAN, mine)
    yield from _caps(connection, plan)
    yield from _reservations(connection, plan)


def _sums(
    connection: Connection, chosen: ColumnElement[bool], kind: CeilingKind, mine: ColumnElement[bool]
) -> Iterator[Flaw]:
    """Each ceiling's sums beside those of its reservations, also of such as name a ceiling that is not there."""
    column = _COLUMNS[kind]
    there = {row.id: row for row in connection.execute(select(ceilings).where(chosen).order_by(ceilings.c.id))}
    query = select(column, _HELD, _SETTLED).where(mine).group_by(column)
    found = {id: (int(held), int(settled)) for id, held, settled in connection.execute(query)}
    for id, row in there.items():
        held, settled = found.pop(id, (0, 0))
        for name, kept, summed in (("held", row.held, held), ("settled", row.settled, settled)):
            if kept != summed:
                yield Flaw(f"{name} of ceiling {id} is {kept}, but its reservations come to {summed}", id, name)
    for id in sorted(found):
        yield Flaw(f"reservations name the ceiling {id}, which is not there", id)


def _caps(connection: Connection, plan: str) -> Iterator[Flaw]:
    """Caps of runs, tasks and plans are those of their rows, which the receipts prove.

    A run from before its row told its cap has nothing to be proven by.
    """
    same = (ceilings.c.kind == CeilingKind.RUN) & (ceilings.c.subject == runs.c.id)
    query = select(ceilings.c.id, ceilings.c.cap, runs.c.cap_nano_usd).join(runs, same)
    told = (runs.c.plan_id == plan) & runs.c.cap_nano_usd.is_not(None)
    for id, cap, minted in connection.execute(query.where(told).order_by(ceilings.c.id)):
        if cap != (minted or None):
            good = f"good for {minted}" if minted else "without a bound of its own"
            yield Flaw(f"cap of ceiling {id} is {cap}, but the capability of its run was {good}", id, "cap")
    for kind, table, mine in (
        (CeilingKind.TASK, tasks, tasks.c.plan_id == plan),
        (CeilingKind.PLAN, plans, plans.c.id == plan),
    ):
        same = (ceilings.c.kind == kind) & (ceilings.c.subject == table.c.id)
        query = select(ceilings.c.id, ceilings.c.cap, table.c.budget_nano_usd).join(table, same).where(mine)
        for id, cap, budget in connection.execute(query.order_by(ceilings.c.id)):
            if cap != budget:
                yield Flaw(f"cap of ceiling {id} is {cap}, but the budget of its {kind} is {budget}", id, "cap")


def _reservations(connection: Connection, plan: str) -> Iterator[Flaw]:
    """Each reservation is of its own run's ceilings, and cost what its state and its usage say."""
    query = (
        select(
            reservations,
            runs.c.task_id,
            runs.c.plan_id,
            runs.c.metering,
            tasks.c.owner,
            usage.c.nano_usd,
            usage.c.measured,
            usage.c.run_id.label("used_by"),
        )
        .select_from(
            reservations.join(runs, runs.c.id == reservations.c.run_id)
            .join(tasks, tasks.c.id == runs.c.task_id)
            .outerjoin(usage, usage.c.id == reservations.c.id)
        )
        .where(or_(runs.c.plan_id == plan, reservations.c.plan_ceiling == ceiling_id(CeilingKind.PLAN, plan)))
        .order_by(reservations.c.id)
        .execution_options(yield_per=500)
    )
    for row in connection.execute(query):
        id = row.id
        own = {
            "run_ceiling": ceiling_id(CeilingKind.RUN, row.run_id),
            "task_ceiling": ceiling_id(CeilingKind.TASK, row.task_id),
            "plan_ceiling": ceiling_id(CeilingKind.PLAN, row.plan_id),
        }
        for name, ceiling in own.items():
            if getattr(row, name) != ceiling:
                yield Flaw(f"reservation {id} is taken from {getattr(row, name)}, and not from {ceiling}", id, name)
        if not row.day_ceiling.startswith(f"{CeilingKind.DAY}:{row.owner}:"):
            yield Flaw(
                f"reservation {id} is taken from {row.day_ceiling}, which is not {row.owner}'s", id, "day_ceiling"
            )
        if row.metering == Metering.UNMETERED:
            yield Flaw(f"reservation {id} is of run {row.run_id}, which is unmetered", id, "run_id")
        if row.used_by not in (None, row.run_id):
            yield Flaw(f"usage {id} is of run {row.used_by}, but its reservation is of {row.run_id}", id, "run_id")
        if row.measured is not None and not row.measured and row.nano_usd != row.held:
            said = f"usage {id} was not measured, so it costs all that was held, {row.held}, and not {row.nano_usd}"
            yield Flaw(said, id, "nano_usd")
        due = {
            ReservationState.HELD: 0,
            ReservationState.RELEASED: 0,
            ReservationState.EXPIRED: row.held,
            ReservationState.SETTLED: row.nano_usd,
        }.get(row.state)
        if row.settled != due:
            said = f"it is {row.state}" if row.state != ReservationState.SETTLED else "its usage says"
            yield Flaw(f"settled of reservation {id} is {row.settled}, but {said}: {due}", id, "settled")
        elif row.nano_usd is not None and row.state != ReservationState.SETTLED:
            yield Flaw(f"reservation {id} is {row.state}, but has usage", id, "state")


def _costs(connection: Connection, plan: str, reckon: Reckon) -> Iterator[Flaw]:
    """What was measured cost what its tokens cost at its price."""
    query = select(usage).join(runs, runs.c.id == usage.c.run_id).where(runs.c.plan_id == plan, usage.c.measured)
    for row in connection.execute(query.order_by(usage.c.id).execution_options(yield_per=500)):
        cost = reckon(row)
        if cost not in (None, row.nano_usd):
            said = f"usage {row.id} says that it cost {row.nano_usd}, but its tokens cost {cost} at {row.price!r}"
            yield Flaw(said, row.id, "nano_usd")


def _day_caps(connection: Connection, owner: str, days: ColumnElement[bool]) -> Iterator[Flaw]:
    """A day's cap is one that the owner had said by the end of it, or what holds where nothing was said."""
    said = _said(connection, owner)
    for row in connection.execute(select(ceilings).where(days).order_by(ceilings.c.id)):
        before = [cap for day, cap in said if day <= row.id]
        # Clocks may be apart: what was said in the first moments of the next day may be in the last row of this one.
        after = [cap for day, cap in said if day > row.id][:1]
        if row.cap not in (before[-1], *after):
            yield Flaw(
                f"cap of ceiling {row.id} is {row.cap}, but its owner's receipts say {before[-1]}", row.id, "cap"
            )


def _said(connection: Connection, owner: str) -> Collection[tuple[str, int]]:
    """From which day's ceiling on an owner's days had which cap, in the order in which it was said."""
    day_nano_usd, zone = None, None
    found = [("", said_or_usual(None, None)[0])]
    after = 0
    while page := receipts_of(connection, f"owner:{owner}", after):
        for receipt in page:
            if receipt.kind == "owner" and not receipt.refused:
                day_nano_usd = receipt.facts.get("day_nano_usd", day_nano_usd)
                zone = receipt.facts.get("zone", zone)
                cap, where = said_or_usual(day_nano_usd, zone)
                found.append((ceiling_id(CeilingKind.DAY, day_subject(owner, receipt.at, where)), cap))
        after = page[-1].seq
    return found
