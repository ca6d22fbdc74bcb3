"""Reading what reports tell from the graph: as many statements for a hundred plans as for one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from domain.brief import summary_in
from domain.ledger import zone_named
from starter.discreet import without_secrets
from starter.reporting.building import Known, Told, build, morning, unmetered
from starter.reporting.facts import MorningReport, Report
from store.caps import day_budget
from store.costs import shares
from store.plans import load_plans
from store.reports import (
    attempts_of,
    happened,
    last_results,
    moved_since,
    newest_seals,
    seen_of,
    works_of,
)
from store.reviews import reviews_of
from store.told import usage_told
from store.views import plan_views, waiting_plans

T = TypeVar("T")


def load_plan_report(
    connection: Connection, plan_id: str, at: datetime, since: datetime | None = None
) -> Report | None:
    """The report of one plan; None when it was never published."""
    known = _known(connection, [plan_id], since).get(plan_id)
    return None if known is None else build(known, at, since)


def load_morning_report(connection: Connection, owner: str, at: datetime, since: datetime) -> MorningReport:
    """The report of every plan of the owner that moved since, or waits for a person."""
    chosen = sorted(moved_since(connection, owner, since) | waiting_plans(connection, owner))
    known = _known(connection, chosen, since)
    spent = [share for each in known.values() for share in each.shares]
    reports = sorted((build(each, at, since) for each in known.values()), key=_what_moved_first)
    return morning(owner, reports, spent, at, since)


def zone_of(connection: Connection, owner: str) -> ZoneInfo:
    """The time zone in which the owner's days begin."""
    return zone_named(day_budget(connection, owner)[1])


def _what_moved_first(report: Report) -> tuple[bool, str]:
    return not any(task.moved for task in report.tasks), report.plan_id


def _known(connection: Connection, plan_ids: Collection[str], since: datetime | None) -> dict[str, Known]:
    views = plan_views(connection, plan_ids)
    plans = {plan.id: plan for plan in load_plans(connection, plan_ids)}
    attempts = _by_plan(attempts_of(connection, plan_ids))
    seen = _by_plan(seen_of(connection, plan_ids))
    spent: dict[str, list[Any]] = defaultdict(list)
    for share in shares(connection, plan_ids, since):
        spent[share.plan].append(share)
    stories = groupby(happened(connection, plan_ids), attrgetter("chain"))
    told = {chain: Told.of(story) for chain, story in stories}
    for id, runs in attempts.items():
        spent[id] += unmetered(runs, told.get(id, Told()), since)
    works = works_of(connection, plan_ids)
    said = _said(last_results(connection, plan_ids))
    reviews = reviews_of(connection, plan_ids=plan_ids)
    seals = newest_seals(connection, plan_ids)
    usage = usage_told(connection, plan_ids)
    return {
        id: Known(
            view=replace(view, tasks=tuple(map(without_secrets, view.tasks))),
            asked=plans[id].spec,
            told=told.get(id, Told()),
            works=works,
            attempts=attempts.get(id, ()),
            seen=seen.get(id, ()),
            reviews=reviews,
            shares=spent.get(id, ()),
            said=said,
            budget_nano_usd=plans[id].budget_nano_usd,
            seal=seals.get(id, (0, "")),
            usage=usage,
        )
        for id, view in views.items()
    }


def _by_plan(rows: Iterable[T]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {}
    for row in rows:
        found.setdefault(row.plan_id, []).append(row)  # type: ignore[attr-defined]  # both kinds have one
    return found


def _said(results: Mapping[str, Any]) -> dict[str, str]:
    """What agents say of their work, without secrets and bounded, by the ids of tasks."""
    from activities.redaction import publishable
    from forge.text import MAX_SAID

    return {task: publishable(summary_in(result))[:MAX_SAID] for task, result in results.items()}
