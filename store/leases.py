"""Slots and leases: who may work now, and until when. A lease that nobody renews gives itself back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from sqlalchemy import Connection, Executable, RowMapping, bindparam, delete, select, update

from domain.errors import Superseded
from store.database import insert_into, insert_of
from store.moves import lock_chain
from store.tables import leases, slots

SLOT_LEASE = timedelta(minutes=10)
"""How long a task keeps its slot without a sign of life; its runs renew it."""


@dataclass(frozen=True)
class Slot:
    """The right of one task to run processes, out of its owner's slots, until `lease_until`."""

    task_id: str
    plan_id: str
    owner: str
    granted_at: datetime
    lease_until: datetime


@dataclass(frozen=True)
class Lease:
    """Who looks after a run: a worker on a host in one of its boots, fenced by the run's epoch."""

    run_id: str
    task_id: str
    worker: str
    host: str
    boot: str
    epoch: int
    lease_until: datetime


def lock_owner(connection: Connection, owner: str) -> None:
    """Hold everything back that would count or grant this owner's slots, until the transaction ends.

    The lock is the row of the owner's chain. It is taken before any plan's chain is moved.
    """
    lock_chain(connection, f"owner:{owner}")


def grant_slot(connection: Connection, slot: Slot) -> bool:
    """Give the task a slot; False when it holds one whose lease outlives `granted_at` already.

    How many an owner may have is the gate's to count, under `lock_owner`.
    """
    wish = insert_into(connection, slots).values(vars(slot))
    granted = wish.on_conflict_do_update(
        index_elements=["task_id"],
        set_={"granted_at": wish.excluded.granted_at, "lease_until": wish.excluded.lease_until},
        where=slots.c.lease_until <= slot.granted_at,
    ).returning(slots.c.task_id)
    return connection.execute(granted).one_or_none() is not None


def renew_slot(connection: Connection, task_id: str, until: datetime) -> bool:
    """Let the slot's lease run until then; False when the task holds none."""
    query = update(slots).where(slots.c.task_id == task_id).values(lease_until=until)
    return connection.execute(query).rowcount == 1


def release_slot(connection: Connection, task_id: str) -> bool:
    """Give the slot back; False when the task holds none. A move out of the working states does it too."""
    return connection.execute(delete(slots).where(slots.c.task_id == task_id)).rowcount == 1


def expire_slots(connection: Connection, now: datetime) -> tuple[Slot, ...]:
    """Take back every slot whose lease has run out, and answer them."""
    query = delete(slots).where(slots.c.lease_until <= now).returning(*slots.c)
    return tuple(_slot(row) for row in connection.execute(query).mappings())


def slots_of(connection: Connection, owner: str, now: datetime) -> tuple[Slot, ...]:
    """The slots of an owner whose leases outlive `now`, oldest first."""
    query = (
        select(slots)
        .where(slots.c.owner == owner, slots.c.lease_until > now)
        .order_by(slots.c.granted_at, slots.c.task_id)
    )
    return tuple(_slot(row) for row in connection.execute(query).mappings())


def take_lease(connection: Connection, lease: Lease, now: datetime) -> None:
    """Become the one that looks after a run: as the first, as the same worker again, or after a lapse.

    `now` is the moment up to which another's lease must have lapsed: take the allowance for clock
    skew off it first. Raises Superseded while another worker's lease holds, or when a newer epoch has it.
    """
    given = connection.execute(_taking(connection.dialect.name), {**vars(lease), "now": now})
    if given.one_or_none() is None:
        raise Superseded(f"another worker looks after run {lease.run_id}")


@cache
def _taking(dialect: str) -> Executable:
    wish = insert_of(dialect, leases)
    new = wish.excluded
    return wish.on_conflict_do_update(
        index_elements=["run_id"],
        set_={name: new[name] for name in ("worker", "host", "boot", "epoch", "lease_until")},
        where=(leases.c.epoch <= new.epoch)
        & (
            (leases.c.worker == new.worker)
            | (leases.c.lease_until <= bindparam("now", type_=leases.c.lease_until.type))
        ),
    ).returning(leases.c.run_id)


def renew_lease(connection: Connection, run_id: str, worker: str, epoch: int, until: datetime) -> None:
    """Let this worker's lease run until then; Superseded when the lease is no longer its own."""
    query = (
        update(leases)
        .where(leases.c.run_id == run_id, leases.c.worker == worker, leases.c.epoch == epoch)
        .values(lease_until=until)
    )
    if connection.execute(query).rowcount != 1:
        raise Superseded(f"the lease of run {run_id} is no longer held by {worker} in epoch {epoch}")


def release_lease(connection: Connection, run_id: str) -> bool:
    """End a run's lease because the run has ended; False when there is none."""
    return connection.execute(delete(leases).where(leases.c.run_id == run_id)).rowcount == 1


def load_lease(connection: Connection, run_id: str) -> Lease | None:
    """The run's lease, lapsed or not."""
    row = connection.execute(select(leases).where(leases.c.run_id == run_id)).mappings().one_or_none()
    return None if row is None else Lease(**row)


def lapsed_leases(connection: Connection, now: datetime, limit: int = 100) -> tuple[Lease, ...]:
    """Leases that ran out by `now`, longest first: runs that nobody looks after."""
    query = select(leases).where(leases.c.lease_until <= now).order_by(leases.c.lease_until).limit(limit)
    return tuple(Lease(**row) for row in connection.execute(query).mappings())


def take_over_host(connection: Connection, host: str, worker: str, boot: str, until: datetime) -> int:
    """Look after every run of this host from now on: its earlier worker is gone, and there is but one."""
    query = update(leases).where(leases.c.host == host).values(worker=worker, boot=boot, lease_until=until)
    return connection.execute(query).rowcount


def runs_of_worker(connection: Connection, worker: str) -> tuple[str, ...]:
    """The runs whose leases name this worker."""
    query = select(leases.c.run_id).where(leases.c.worker == worker).order_by(leases.c.run_id)
    return tuple(connection.scalars(query))


def _slot(row: RowMapping) -> Slot:
    return Slot(**row)
