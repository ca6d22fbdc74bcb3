"""Putting together what a person sees of a plan, and ending a plan whose last box has ended."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache

from sqlalchemy import BindParameter, Connection, bindparam, func, select

from domain import confinement, metering
from domain.agents import AGENTS
from domain.document import inspect, parse
from domain.duties import Actor
from domain.errors import InvalidPlan
from domain.lifecycle import Move, Receipt
from domain.plan import PLAN, PlanEvent, PlanState, RevisionEvent, TaskSpec
from domain.run import Role
from domain.view import Happening, PlanView, Proposed, TaskView, needs_person
from store.costs import spent_on
from store.moves import lock_chain, move
from store.plans import PlanRow, list_plans, load_plan, load_plans, load_revision, texts_of
from store.receipts import Head, heads_of, receipts_of
from store.tables import plans, questions, receipts, runs, slots, tasks
from store.tasks import load_tasks

STORY = 60
"""How many of a plan's latest receipts its view tells."""

_ANY_MOMENT = datetime(2000, 1, 1, tzinfo=UTC)

# Made once: to put a statement together takes as long as to execute it.
_IDS: BindParameter[str] = bindparam("ids", expanding=True)
_WAYS = (
    select(runs.c.plan_id, runs.c.runtime, runs.c.confinement, runs.c.metering)
    .where(runs.c.plan_id.in_(_IDS))
    .distinct()
)
_AUTHORS = (
    select(runs.c.task_id, func.count().label("count"))
    .where(runs.c.plan_id.in_(_IDS), runs.c.role == Role.AUTHOR)
    .group_by(runs.c.task_id)
    .subquery()
)
_BOXES = (
    select(
        tasks,
        _AUTHORS.c.count.label("runs"),
        questions.c.text.label("question"),
        questions.c.kind.label("question_kind"),
        questions.c.resume_at.label("question_at"),
        slots.c.task_id.is_not(None).label("has_slot"),
    )
    .select_from(
        tasks.outerjoin(_AUTHORS, _AUTHORS.c.task_id == tasks.c.id)
        .outerjoin(questions, (questions.c.id == tasks.c.question_id) & (questions.c.state == "open"))
        .outerjoin(slots, slots.c.task_id == tasks.c.id)
    )
    .where(tasks.c.plan_id.in_(_IDS))
)


def complete(connection: Connection, plan_id: str, at: datetime, incarnation: int) -> None:
    """End a plan all of whose tasks have ended, if that is still so."""
    lock_chain(connection, plan_id)
    view = plan_view(connection, plan_id)
    if view and view.every_box_has_ended:
        key = f"complete:{load_plan(connection, plan_id).seq}"
        cause = "every box has ended"
        move(
            connection,
            Move("plan", plan_id, PlanEvent.COMPLETE, key, plan_id, cause, at, by=Actor.WORKER),
            incarnation=incarnation,
        )


@dataclass(frozen=True)
class PlanInList:
    """One plan of an owner. `published` is when its first text was, aware UTC."""

    plan_id: str
    state: PlanState
    needs_person: bool
    published: datetime


def plans_in_list(connection: Connection, owner: str) -> list[PlanInList]:
    """Every plan of an owner, the newest first."""
    query = select(receipts.c.chain, receipts.c.at).where(
        receipts.c.seq == 1, receipts.c.chain.in_(select(plans.c.id).where(plans.c.owner == owner))
    )
    published = {row.chain: row.at for row in connection.execute(query)}
    theirs = list_plans(connection, owner)
    waits = _waiting(connection, theirs)
    found = [PlanInList(plan.id, plan.state, plan.id in waits, published[plan.id]) for plan in theirs]
    return sorted(found, key=lambda each: each.published, reverse=True)


def _waiting(connection: Connection, theirs: Iterable[PlanRow]) -> set[str]:
    """The ids of those plans that wait for a person. Of what has ended nothing does."""
    open_plans = {plan.id: plan for plan in theirs if plan.state not in PLAN.ended}
    boxes = _confirmed(connection, list(open_plans))
    return {id for id, plan in open_plans.items() if needs_person(plan, boxes.get(id, {}).values())}


def waiting_plans(connection: Connection, owner: str) -> set[str]:
    """The ids of an owner's plans that wait for a person."""
    return _waiting(connection, list_plans(connection, owner))


def plan_view(connection: Connection, plan_id: str, seen: int = 0) -> PlanView | None:
    """The plan as every surface shows it; None when it was never published.

    Of its story only what follows the receipt `seen`: whoever looks often need not be told it again.
    """
    view = plan_views(connection, [plan_id]).get(plan_id)
    if view is None:
        return None
    latest = receipts_of(connection, plan_id, after=max(seen, view.seq - STORY), limit=STORY)
    return replace(
        view,
        story=tuple(line for receipt in latest if (line := tell(receipt)) is not None),
        story_starts_at=max(0, view.seq - STORY) + 1,
    )


def plan_views(connection: Connection, plan_ids: Collection[str]) -> dict[str, PlanView]:
    """These plans by their ids, without their stories, in as many statements as one takes.

    Those that were never published are left out.
    """
    boxes = _confirmed(connection, plan_ids)
    texts = texts_of(connection, plan_ids)
    heads = heads_of(connection, plan_ids)
    ways = _ways(connection, plan_ids)
    money = spent_on(connection, plan_ids)
    return {
        plan.id: replace(
            _view(plan, texts.get(plan.id, ""), heads[plan.id], boxes, ways, money),
            proposed=_proposed(connection, plan),
        )
        for plan in load_plans(connection, plan_ids)
    }


@dataclass(frozen=True)
class _Ways:
    """What the runs of a plan were that have begun: how they were confined, and what its agents' metering was."""

    confined: list[str] = field(default_factory=list)
    metered: list[str] = field(default_factory=list)


def _ways(connection: Connection, plan_ids: Collection[str]) -> dict[str, _Ways]:
    found: dict[str, _Ways] = {}
    for plan, runtime, confined, metered in connection.execute(_WAYS, {"ids": list(plan_ids)}):
        ways = found.setdefault(plan, _Ways())
        ways.confined.append(confined)
        if runtime in AGENTS and confined:
            ways.metered.append(metered)
    return found


def _view(
    plan: PlanRow,
    text: str,
    head: Head,
    boxes: Mapping[str, Mapping[int, TaskView]],
    ways: Mapping[str, _Ways],
    money: Mapping[str, int],
) -> PlanView:
    way = ways.get(plan.id, _Ways())
    begun = metering.of_runs(way.metered)
    said = _said(text, plan.slug)
    return PlanView(
        plan_id=plan.id,
        slug=plan.slug,
        owner=plan.owner,
        title=plan.title,
        state=plan.state,
        repository=plan.repository,
        base=plan.base,
        merge=plan.merge,
        paused=plan.paused,
        revision=plan.revision,
        digest=plan.digest,
        seq=head.seq,
        head=head.hash,
        tasks=_tasks(said, boxes.get(plan.id, {})),
        confinement=confinement.of_runs(way.confined),
        spent_nano_usd=metering.known(money.get(plan.id, 0), unmetered=metering.has_unmetered(begun)),
        metering=metering.of_runs(filter(None, (begun, said.metering))),
    )


def confinement_of(connection: Connection, *, plan_id: str, task_id: str = "") -> str:
    """What the runs of a plan, or of one of its tasks, were that have begun."""
    kinds = select(runs.c.confinement).where(runs.c.plan_id == plan_id).distinct()
    return confinement.of_runs(connection.scalars(kinds.where(runs.c.task_id == task_id) if task_id else kinds))


def metering_of(connection: Connection, *, plan_id: str, task_id: str = "") -> str:
    """What the agents' runs of a plan, or of one of its tasks, were that have begun."""
    begun = (runs.c.plan_id == plan_id) & runs.c.runtime.in_(AGENTS) & (runs.c.confinement != "")
    kinds = select(runs.c.metering).where(begun).distinct()
    return metering.of_runs(connection.scalars(kinds.where(runs.c.task_id == task_id) if task_id else kinds))


def tell(receipt: Receipt) -> Happening | None:
    """A receipt as a line of the story; None for those that only machines care about."""
    told_by_the_plan = receipt.kind == "revision" and not _is_about_a_proposal(receipt)
    if (receipt.kind in ("question", "evidence") or told_by_the_plan) and not receipt.refused:
        return None
    name = receipt.subject.removeprefix(f"{receipt.chain}-") if receipt.kind != "plan" else "plan"
    name = f"revision {name[1:]}" if receipt.kind == "revision" else name
    name = f"{receipt.kind} {name}" if receipt.kind in ("task", "run", "note") else name
    cause = receipt.cause.splitlines()[0] if receipt.cause else ""
    text = (
        f"{name}: {receipt.event} refused: {receipt.refused}"
        if receipt.refused
        else f"{name}: {receipt.after} ({cause})"
        if receipt.before != receipt.after
        else f"{name}: {receipt.event} ({cause})"
    )
    return Happening(receipt.seq, receipt.at.isoformat(timespec="seconds"), text)


def _is_about_a_proposal(receipt: Receipt) -> bool:
    """Whether a text was proposed or withdrawn beside another: of the first text, and of what holds, the plan tells."""
    is_first = receipt.subject == f"{receipt.chain}-r1"
    return receipt.event in (RevisionEvent.PROPOSE, RevisionEvent.WITHDRAW) and not is_first


def _proposed(connection: Connection, plan: PlanRow) -> Proposed | None:
    if not plan.proposed:
        return None
    # Few plans have one, and to compare two texts takes a good deal of code.
    from store.revision import proposal_of

    # What a revision changes is the same at any moment; only slots are read by the clock.
    try:
        found = proposal_of(connection, plan, load_tasks(connection, plan.id, _ANY_MOMENT))
    except InvalidPlan as error:
        waiting = load_revision(connection, plan.id, plan.proposed)
        return Proposed(waiting.number, waiting.digest, f"it cannot be read any more: {error}")
    if found is None:
        return None
    summary = found.compared.difference.summary
    return Proposed(found.revision.number, found.revision.digest, summary, found.lines)


def _tasks(said: _Said, begun: Mapping[int, TaskView]) -> tuple[TaskView, ...]:
    seen = {box.ordinal for box in said.boxes}
    return tuple(_box(box, begun.get(box.ordinal)) for box in said.boxes) + tuple(
        task for ordinal, task in sorted(begun.items()) if ordinal not in seen
    )


def _box(box: TaskSpec, task: TaskView | None) -> TaskView:
    if task is not None:
        return replace(task, struck=True) if box.struck else task
    state = "removed" if box.struck else "done" if box.done else "unconfirmed"
    return TaskView(box.ordinal, box.title, state, after=box.after, struck=box.struck)


@dataclass(frozen=True)
class _Said:
    """What a document says of its boxes, and of its agents."""

    boxes: tuple[TaskSpec, ...]
    metering: str = ""


@lru_cache(maxsize=256)
def _said(text: str, slug: str) -> _Said:
    """What a document says that was accepted once.

    Of one that a later version cannot read any more, the boxes that it can, and nothing of the agents. To read a
    document is most of what a view of its plan costs, so it is read a second time only then.
    """
    try:
        plan = parse(text, file_name=f"{slug}.md")
    except InvalidPlan:
        boxes, _ = inspect(text, file_name=f"{slug}.md")
        return _Said(boxes)
    return _Said(plan.tasks, plan.expected_metering)


def _confirmed(connection: Connection, plan_ids: Collection[str]) -> dict[str, dict[int, TaskView]]:
    """The boxes of these plans that became tasks, by plan and ordinal."""
    found: dict[str, dict[int, TaskView]] = {}
    for row in connection.execute(_BOXES, {"ids": list(plan_ids)}):
        found.setdefault(row.plan_id, {})[row.ordinal] = TaskView(
            ordinal=row.ordinal,
            title=row.title,
            state=row.state,
            id=row.id,
            question_id=row.question_id if row.question else "",
            question=row.question or "",
            question_kind=row.question_kind or "",
            question_at=row.question_at or "",
            runs=row.runs or 0,
            pull_url=row.pull_url,
            head_sha=row.head_sha,
            proof=row.proof,
            reason=row.reason,
            has_slot=row.has_slot,
            after=tuple(row.after),
            unproven=bool(row.head_sha) and row.head_sha not in (row.proven_sha, row.approved_sha),
        )
    return found
