"""Whether a run may spend money, read and held still in the transaction in which it would."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from sqlalchemy import Connection, bindparam, func, select

from domain.ledger import CeilingKind, day_subject
from domain.metering import Metering
from domain.run import LIVE
from domain.task import ENDED
from store.caps import said_or_usual
from store.ceilings import Need
from store.tables import owners, runs, tasks

_NEWER = runs.alias("newer")
_STANDINGS = (
    select(
        runs.c.id,
        runs.c.state,
        runs.c.epoch,
        runs.c.model,
        runs.c.plan_id,
        runs.c.task_id,
        tasks.c.owner,
        tasks.c.state,
        select(func.max(_NEWER.c.epoch)).where(_NEWER.c.task_id == runs.c.task_id).scalar_subquery(),
        runs.c.metering,
        owners.c.day_nano_usd,
        owners.c.zone,
    )
    .select_from(runs.join(tasks, tasks.c.id == runs.c.task_id).outerjoin(owners, owners.c.id == tasks.c.owner))
    .where(runs.c.id.in_(bindparam("ids", expanding=True)))
    # As the moves of a plan go through its tasks.
    .order_by(tasks.c.plan_id, tasks.c.ordinal, runs.c.epoch)
    .with_for_update(read=True, of=(runs, tasks))
)


class Claim(Protocol):
    """What somebody who wants money says about the run."""

    @property
    def owner(self) -> str: ...
    @property
    def plan(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def model(self) -> str: ...


@dataclass(frozen=True)
class Standing:
    """A run as the graph has it: it cannot end, nor its task, until the transaction does. `zone` is the owner's."""

    run: str
    state: str
    epoch: int
    model: str
    plan: str
    task: str
    owner: str
    task_state: str
    newest_epoch: int
    metering: str
    zone: str
    _needs: dict[tuple[str, int], tuple[Need, ...]] = field(default_factory=dict, compare=False)

    def why_void(self, claim: Claim) -> str:
        """Why the run gets no money, in one sentence; empty when it may have some."""
        if (claim.owner, claim.plan, claim.task) != (self.owner, self.plan, self.task):
            return f"run {self.run} is not the one that the capability was made for"
        if self.state not in LIVE:
            return f"run {self.run} is {self.state}; it gets no money any more"
        if claim.epoch != self.epoch or self.epoch != self.newest_epoch:
            return f"a newer run of task {self.task} has begun; run {self.run} gets no money any more"
        if self.task_state in ENDED:
            return f"task {self.task} is {self.task_state}; it gets no money any more"
        if self.metering == Metering.UNMETERED:
            return f"run {self.run} is unmetered: it is on a login of its own, and gets no money here"
        if claim.model != self.model:
            return f"run {self.run} uses the model {self.model or 'of no provider'}, and not {claim.model}"
        return ""

    def needs(self, at: datetime, run_cap: int) -> tuple[Need, ...]:
        """The ceilings that money for this run is taken from, in the order of their locks."""
        key = (day_subject(self.owner, at, self.zone), run_cap)
        if key not in self._needs:
            self._needs[key] = (
                Need(CeilingKind.RUN, self.run, self.owner, run_cap or None),
                Need(CeilingKind.TASK, self.task, self.owner),
                Need(CeilingKind.PLAN, self.plan, self.owner),
                Need(CeilingKind.DAY, key[0], self.owner),
            )
        return self._needs[key]


def standings(connection: Connection, ids: Collection[str]) -> dict[str, Standing]:
    """How these runs stand; whoever would end one of them, or its task, waits until the transaction ends."""
    if not ids:
        return {}
    rows = connection.execute(_STANDINGS, {"ids": list(ids)})
    return {row[0]: Standing(*row[:10], said_or_usual(row[10], row[11])[1]) for row in rows}
