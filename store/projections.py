"""What a plan's projection is made of, read from the graph in a fixed number of statements."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from sqlalchemy import Connection, select

from domain.ledger import CeilingKind
from domain.projection import Box, Check, Projection, Review
from domain.run import EvidenceKind
from domain.view import TaskView
from store.costs import Sum, sums_of
from store.plans import texts_of
from store.reports import Work, attempts_of, happened, newest_seals, seen_of, works_of
from store.reviews import reviews_of
from store.tables import plans
from store.told import usage_told
from store.views import plan_views


def projection_of(connection: Connection, plan_id: str) -> Projection | None:
    """The plan's projection; None when it was never published."""
    chosen = [plan_id]
    view = plan_views(connection, chosen).get(plan_id)
    if view is None:
        return None
    works = works_of(connection, chosen)
    money = sums_of(connection, CeilingKind.TASK, chosen)
    held, spent = sums_of(connection, CeilingKind.PLAN, chosen).get(plan_id, Sum())
    attempts = attempts_of(connection, chosen)
    unmetered = Counter(each.task_id for each in attempts if each.unmetered)
    usage = usage_told(connection, chosen)
    told: dict[str, list[str]] = {}
    for run in attempts:
        if run.id in usage:
            told.setdefault(run.task_id, []).append(f"{run.role} {run.number} is {usage[run.id].sentence}")
    checks: dict[str, list[Check]] = {}
    for seen in seen_of(connection, chosen):
        work = works.get(seen.task_id)
        if work and seen.kind == EvidenceKind.CHECK and seen.commit_sha == work.counts:
            checks.setdefault(seen.task_id, []).append(Check(seen.command, seen.commit_sha, seen.exit_code))
    reviews: dict[str, list[Review]] = {}
    for given in reviews_of(connection, plan_ids=chosen):
        if given.task_id in works and given.commit_sha == works[given.task_id].head_sha:
            reviews.setdefault(given.task_id, []).append(Review.of(given))
    return Projection(
        view=view,
        text=texts_of(connection, chosen).get(plan_id, ""),
        boxes=tuple(
            replace(
                _box(box, works.get(box.id), money.get(box.id, Sum())),
                checks=tuple(checks.get(box.id, ())),
                reviews=tuple(reviews.get(box.id, ())),
                unmetered_runs=unmetered[box.id],
                told=tuple(told.get(box.id, ())),
            )
            for box in view.tasks
        ),
        words=tuple(
            f"{each.at.isoformat(timespec='seconds')}: {each.cause}"
            for each in happened(connection, chosen, kinds=("plan",))
            if each.of_a_person
        ),
        held=held,
        spent=spent,
        budget=connection.scalar(select(plans.c.budget_nano_usd).where(plans.c.id == plan_id)),
        unmetered_runs=unmetered.total(),
        seal=newest_seals(connection, chosen).get(plan_id, (0, "")),
    )


def _box(view: TaskView, work: Work | None, money: Sum) -> Box:
    if work is None:
        return Box(view)
    return Box(
        view=view,
        body=work.body,
        runtime=work.runtime,
        model=work.model,
        budget=work.budget_nano_usd,
        held=money.held,
        spent=money.spent,
        merged_sha=work.merged_sha,
    )
