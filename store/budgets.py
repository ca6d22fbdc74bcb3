"""What an owner says of their days, and how much of everybody's money is used."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, select

from domain.budget import format_usd
from domain.decision import Outcome, Reply
from domain.duties import Actor
from domain.ledger import CeilingKind, ceiling_id, day_subject, zone_named
from domain.lifecycle import Move
from domain.owner import OwnerEvent
from domain.raising import SetDay, Used
from store.caps import day_budget
from store.moves import lock_chain, move
from store.receipts import head_of, receipts_of
from store.tables import ceilings, owners, plans, tasks


def set_day(connection: Connection, order: SetDay, at: datetime, incarnation: int) -> Reply:
    """Write down what an owner's runs may cost a day, and in which time zone; today's ceiling follows at once.

    A repeat changes nothing, and answers the receipt that is there.
    """
    chain = f"owner:{order.owner}"
    try:
        zone_named(order.zone or "UTC")
    except ValueError as error:
        return Reply(Outcome.REFUSED, str(error), "refused")
    lock_chain(connection, chain)
    cap, zone = day_budget(connection, order.owner)
    wanted = (cap if order.nano_usd is None else order.nano_usd), order.zone or zone
    said = f"{format_usd(wanted[0])} a day, in {wanted[1]}"
    seq, _ = head_of(connection, chain)
    if wanted == (cap, zone) and _has_said(connection, order.owner):
        last = receipts_of(connection, chain, seq - 1)
        outcome = Outcome.DONE if last and last[0].at == at else Outcome.ALREADY
        return Reply(outcome, said, "open", seq=seq)
    facts = {"day_nano_usd": wanted[0], "zone": wanted[1]}
    cause = f"budget by {order.by or 'a person'}"
    wish = Move("owner", order.owner, OwnerEvent.BUDGET, f"budget:{seq}", chain, cause, at, facts, by=Actor.PERSON)
    (moved,) = move(connection, wish, incarnation=incarnation)
    return Reply(Outcome.DONE, said, moved.state or "", seq=moved.receipt.seq)


def used_by(connection: Connection, owner: str, plan: str, task: str, at: datetime) -> Used:
    """What is held and spent of a task's money, its plan's, and its owner's of the day of `at`."""
    cap, zone = day_budget(connection, owner)
    wanted = [
        ceiling_id(CeilingKind.TASK, task),
        ceiling_id(CeilingKind.PLAN, plan),
        ceiling_id(CeilingKind.DAY, day_subject(owner, at, zone)),
    ]
    used = _used(connection, wanted)
    of_task, of_plan, of_day = (used.get(id, 0) for id in wanted)
    return Used(of_task, of_plan, of_day, cap)


def spent_or_held(connection: Connection, plan: str, tasks_of: Iterable[str]) -> dict[str, int]:
    """What is held and spent of the money of a plan and of these tasks, by their ids, where there is any."""
    subjects = {ceiling_id(CeilingKind.TASK, task): task for task in tasks_of}
    subjects[ceiling_id(CeilingKind.PLAN, plan)] = plan
    return {subjects[id]: used for id, used in _used(connection, subjects).items()}


def left_for(connection: Connection, plan: str, task: str) -> int | None:
    """What a task's budget and its plan's leave, whichever is less; None where neither is bounded.

    What is held is left: most of it comes back, and a run's cap is said once, for good.
    """
    query = (
        select(tasks.c.budget_nano_usd.label("task"), plans.c.budget_nano_usd.label("plan"))
        .join(plans, plans.c.id == tasks.c.plan_id)
        .where(tasks.c.id == task)
    )
    caps = connection.execute(query).one()
    wanted = {ceiling_id(CeilingKind.TASK, task): caps.task, ceiling_id(CeilingKind.PLAN, plan): caps.plan}
    rows = connection.execute(select(ceilings.c.id, ceilings.c.settled).where(ceilings.c.id.in_(wanted)))
    spent = {row.id: row.settled for row in rows}
    left = [cap - spent.get(id, 0) for id, cap in wanted.items() if cap is not None]
    return max(0, min(left)) if left else None


def _used(connection: Connection, wanted: Iterable[str]) -> dict[str, int]:
    """What is held and spent of these ceilings, by id, of those that were ever needed."""
    query = select(ceilings.c.id, ceilings.c.held, ceilings.c.settled).where(ceilings.c.id.in_(list(wanted)))
    return {row.id: row.held + row.settled for row in connection.execute(query)}


def _has_said(connection: Connection, owner: str) -> bool:
    return connection.scalar(select(owners.c.day_nano_usd).where(owners.c.id == owner)) is not None
