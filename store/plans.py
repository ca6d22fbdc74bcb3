"""Reading plans and their revisions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, func, select

from domain.decision import PlanFacts
from domain.errors import NotFound
from domain.plan import PlanState, RevisionState
from store.tables import plans, revisions

_WAITING = revisions.alias("waiting")
_CURRENT = (revisions.c.plan_id == plans.c.id) & (revisions.c.number == plans.c.revision)
_NEWEST_WAITING = (
    select(func.max(_WAITING.c.number))
    .where(
        _WAITING.c.plan_id == plans.c.id,
        _WAITING.c.number > plans.c.revision,
        _WAITING.c.state == RevisionState.PROPOSED,
    )
    .scalar_subquery()
)
_PLANS = select(plans, revisions.c.digest, func.coalesce(_NEWEST_WAITING, 0).label("proposed")).select_from(
    plans.outerjoin(revisions, _CURRENT)
)
# Made once: to put a statement together takes as long as to execute it.
_BY_ID = _PLANS.where(plans.c.id.in_(bindparam("ids", expanding=True))).order_by(plans.c.slug, plans.c.id)
_TEXTS = (
    select(plans.c.id, revisions.c.text)
    .join(revisions, _CURRENT)
    .where(plans.c.id.in_(bindparam("ids", expanding=True)))
)


@dataclass(frozen=True, kw_only=True)
class PlanRow(PlanFacts):
    """Everything the graph keeps of a plan. `digest` is its current revision's, `hash` its last receipt's."""

    reviewers: tuple[str, ...]
    spec: str
    reason: str
    hash: str


@dataclass(frozen=True)
class RevisionRow:
    """One text of a plan: `text` is the document exactly as it was published, `digest` names it."""

    id: str
    plan_id: str
    number: int
    digest: str
    text: str
    state: RevisionState
    seq: int


def load_plan(connection: Connection, plan_id: str) -> PlanRow:
    """The plan with this id; NotFound when there is none."""
    found = load_plans(connection, [plan_id])
    if not found:
        raise NotFound(f"there is no plan {plan_id}")
    return found[0]


def load_plans(connection: Connection, plan_ids: Collection[str]) -> tuple[PlanRow, ...]:
    """The plans with these ids, by slug; those that there are none of are left out."""
    return tuple(map(_plan, connection.execute(_BY_ID, {"ids": list(plan_ids)}).mappings()))


def list_plans(connection: Connection, owner: str | None = None) -> tuple[PlanRow, ...]:
    """Every plan, or every plan of one owner, by slug."""
    query = _PLANS.order_by(plans.c.slug, plans.c.id)
    if owner is not None:
        query = query.where(plans.c.owner == owner)
    return tuple(map(_plan, connection.execute(query).mappings()))


def plan_of_slug(connection: Connection, name: str) -> PlanRow:
    """The plan that a person means by an id or a slug.

    NotFound when there is none, and when several owners have a plan with this slug.
    """
    query = _PLANS.where((plans.c.id == name) | (plans.c.slug == name)).order_by(plans.c.id)
    found = list(map(_plan, connection.execute(query).mappings()))
    named = [plan for plan in found if plan.id == name] or found
    if not named:
        raise NotFound(f"there is no plan called {name}")
    if len(named) > 1:
        ids = ", ".join(plan.id for plan in named)
        raise NotFound(f"{name} could be any of {ids}; name one of them")
    return named[0]


def load_revision(connection: Connection, plan_id: str, number: int) -> RevisionRow:
    """One revision of a plan; NotFound when there is none of this number."""
    query = select(revisions).where(revisions.c.plan_id == plan_id, revisions.c.number == number)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound(f"plan {plan_id} has no revision {number}")
    state = RevisionState(row.state)
    return RevisionRow(row.id, row.plan_id, row.number, row.digest, row.text, state, row.receipt_seq)


def last_revision(connection: Connection, plan_id: str) -> int:
    """The number of the plan's newest text, whatever became of it; 0 when it has none."""
    return connection.scalar(select(func.max(revisions.c.number)).where(revisions.c.plan_id == plan_id)) or 0


def texts_of(connection: Connection, plan_ids: Collection[str]) -> dict[str, str]:
    """The text of each plan's current revision, by the plan's id."""
    return {row.id: row.text for row in connection.execute(_TEXTS, {"ids": list(plan_ids)})}


def _plan(row: RowMapping) -> PlanRow:
    values: Mapping[str, Any] = {
        **row,
        "state": PlanState(row["state"]),
        "digest": row["digest"] or "",
        "seq": row["receipt_seq"],
        "hash": row["receipt_hash"],
        "checks": tuple(row["checks"]),
        "paths": tuple(row["paths"]),
        "reviewers": tuple(row["reviewers"]),
    }
    return PlanRow(**{name: values[name] for name in PlanRow.__dataclass_fields__})
