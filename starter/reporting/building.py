"""Putting a report together from what the graph says of a plan. Nothing here reads or writes anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType

from domain import metering
from domain.projection import Check, Review
from domain.review import ReviewFacts
from domain.run import LIVE, EvidenceKind, Role
from domain.spending import Share, Spending, dearest_first, grouped, total
from domain.task import ENDED, TaskEvent
from domain.told import ToldUsage
from domain.view import PlanView, TaskView, counts
from starter.discreet import reviews_without_secrets
from starter.hints import Waiting, waiting
from starter.reporting.facts import (
    Cell,
    Costs,
    MorningReport,
    Part,
    Report,
    RunReport,
    TaskReport,
    WaitReport,
    Word,
)
from store.reports import Attempt, Happened, Seen, Work

_NO_TITLES: Mapping[str, str] = MappingProxyType({})


@dataclass
class Told:
    """What a chain's receipts say: persons' words, and when tasks and runs began, moved and ended."""

    words: list[Word] = field(default_factory=list)
    began: dict[str, datetime] = field(default_factory=dict)
    ended: dict[str, datetime] = field(default_factory=dict)
    moved: dict[str, datetime] = field(default_factory=dict)

    def at_work_since(self, run: str, since: datetime) -> bool:
        """Whether a run that has begun had not ended at this moment."""
        ended = self.ended.get(run)
        return ended is None or ended >= since

    @classmethod
    def of(cls, happened: Iterable[Happened]) -> Told:
        told = cls()
        for each in happened:
            told.hear(each)
        return told

    def hear(self, each: Happened) -> None:
        """Take in the next receipt of the chain."""
        if each.of_a_person:
            self.words.append(Word(_moment(each.at), each.cause))
        elif each.kind == "task":
            self.moved[each.subject] = each.at
            if each.event == TaskEvent.BEGIN:
                self.began.setdefault(each.subject, each.at)
            if each.after in ENDED:
                self.ended[each.subject] = each.at
            else:
                self.ended.pop(each.subject, None)
        elif each.kind == "run":
            self.moved[each.subject] = each.at
            if each.before is None:
                self.began[each.subject] = each.at
            if each.after not in LIVE:
                # It may be lost after its end, with what it left.
                self.ended.setdefault(each.subject, each.at)


@dataclass(frozen=True)
class Known:
    """Everything that the graph says of one plan.

    `said` is what agents say of their work, by the ids of tasks; `shares` are what their calls came to in the time
    that the report is about, its unmetered runs among them; `seal` is the receipt that was sealed last, and its token.
    `usage` is what CLIs say that unmetered runs used, by the ids of runs.
    """

    view: PlanView
    asked: str = ""
    told: Told = field(default_factory=Told)
    works: Mapping[str, Work] = field(default_factory=dict)
    attempts: Sequence[Attempt] = ()
    seen: Sequence[Seen] = ()
    shares: Sequence[Share] = ()
    said: Mapping[str, str] = field(default_factory=dict)
    budget_nano_usd: int | None = None
    seal: tuple[int, str] = (0, "")
    reviews: Sequence[ReviewFacts] = ()
    usage: Mapping[str, ToldUsage] = field(default_factory=dict)


def build(known: Known, at: datetime, since: datetime | None = None) -> Report:
    """The report of a plan as it stands at `at`: of all its time, or of what moved since a moment and what waits."""
    view = known.view
    waits = waiting(view)
    every = tuple(_tasks(known, {each.task: each for each in waits}, since))
    tasks = every if since is None else tuple(each for each in every if each.waits_for or each.moved)
    told = {each.ordinal for each in tasks}
    others = Counter(each.state for each in every if each.ordinal not in told)
    return Report(
        plan_id=view.plan_id,
        title=view.title,
        state=view.state,
        paused=view.paused,
        repository=view.repository,
        base=view.base,
        merge=view.merge,
        digest=view.digest,
        confinement=view.confinement,
        asked=known.asked,
        words=tuple(known.told.words),
        tasks=tasks,
        counts=counts(view),
        seq=view.seq,
        head=view.head,
        spent_nano_usd=view.spent_nano_usd,
        sealed_seq=known.seal[0],
        seal=known.seal[1],
        waiting=tuple(_wait(view, each) for each in waits),
        costs=_costs(known),
        since=_moment(since),
        made_at=_moment(at),
        still=None if since is None else dict(others),
        metering=view.metering,
    )


def unmetered(attempts: Iterable[Attempt], told: Told, since: datetime | None) -> Iterable[Share]:
    """The shares of which nothing is known: of each unmetered run that was at work in the time that is told of."""
    for each in attempts:
        if each.unmetered and (since is None or told.at_work_since(each.id, since)):
            yield Share.unmetered(each.plan_id, each.task_id, each.id, each.role, each.model)


def morning(
    owner: str, reports: Sequence[Report], shares: Sequence[Share], at: datetime, since: datetime
) -> MorningReport:
    """Several plans' reports in one; `shares` are all that was spent in that time, also of plans that are not told."""
    slugs = {report.plan_id: _slug(report.plan_id) for report in reports}
    titles = {_slug(report.plan_id): report.title for report in reports}
    costs = split(shares, lambda share: slugs.get(share.plan, _slug(share.plan)), titles)
    waits = tuple(each for report in reports for each in report.waiting)
    return MorningReport(owner, _moment(since), _moment(at), tuple(reports), waits, costs)


def split(
    shares: Sequence[Share],
    name: Callable[[Share], str],
    titles: Mapping[str, str] = _NO_TITLES,
    order: Sequence[str] = (),
) -> Costs:
    """What was spent, by `name`, by role and by model: first in the order given, and then what cost most first."""
    parts = grouped(shares, name)
    names = dict.fromkeys((*(each for each in order if each in parts), *dearest_first(parts)))
    return Costs(
        whole=total(shares),
        tasks=tuple(Part(each, parts[each], titles.get(each, "")) for each in names),
        roles=_parts(shares, lambda share: share.role),
        models=_parts(shares, lambda share: share.model),
        cells=tuple(_cells(shares, name)),
    )


def _parts(shares: Sequence[Share], key: Callable[[Share], str]) -> tuple[Part, ...]:
    return tuple(Part(name, part) for name, part in dearest_first(grouped(shares, key)).items())


def _cells(shares: Sequence[Share], name: Callable[[Share], str]) -> Iterable[Cell]:
    found = grouped(shares, lambda share: (name(share), share.role, share.model))
    return (Cell(*key, spending) for key, spending in found.items())


def _costs(known: Known) -> Costs:
    ordinals = {task.id: str(task.ordinal) for task in known.view.tasks if task.id}
    titles = {str(task.ordinal): task.title for task in known.view.tasks}
    costs = split(known.shares, lambda share: ordinals.get(share.task, share.task), titles, list(titles))
    return Costs(costs.whole, costs.tasks, costs.roles, costs.models, costs.cells, known.budget_nano_usd)


def _tasks(known: Known, waits: Mapping[int | None, Waiting], since: datetime | None) -> Iterable[TaskReport]:
    attempts: dict[str, list[Attempt]] = {}
    for attempt in known.attempts:
        attempts.setdefault(attempt.task_id, []).append(attempt)
    seen: dict[str, list[Seen]] = {}
    for each in known.seen:
        seen.setdefault(each.task_id, []).append(each)
    reviews: dict[str, list[Review]] = {}
    for given in known.reviews:
        reviews.setdefault(given.task_id, []).append(Review.of(given))
    spent = grouped(known.shares, lambda share: share.run)
    for box in known.view.tasks:
        task = _task(known, box, attempts.get(box.id, ()), seen.get(box.id, ()), waits.get(box.ordinal), spent)
        task = _reviewed(task, reviews_without_secrets(reviews.get(box.id, ())), known.works.get(box.id))
        last = _last_move(known.told, (box.id, *(run.run for run in task.attempts)))
        moved = since is None or (last is not None and last >= since)
        yield replace(task, moved_at=_exactly(last), moved=moved)


def _task(
    known: Known,
    box: TaskView,
    attempts: Sequence[Attempt],
    seen: Sequence[Seen],
    waits: Waiting | None,
    spent: Mapping[str, Spending],
) -> TaskReport:
    told, work = known.told, known.works.get(box.id)
    began, ended = told.began.get(box.id), told.ended.get(box.id)
    roles = Counter(each.role for each in attempts)
    kinds = Counter(each.kind for each in seen)
    return TaskReport(
        ordinal=box.ordinal,
        title=box.title,
        state=box.state,
        proof=box.proof,
        pull_url=box.pull_url,
        merged_sha=work.merged_sha if work else "",
        checks=tuple(_checks(work, seen)) if work else (),
        runs=roles[Role.AUTHOR],
        check_runs=roles[Role.CHECK],
        review_runs=roles[Role.REVIEWER],
        crashes=kinds[EvidenceKind.AGENT_CRASH],
        worker_crashes=kinds[EvidenceKind.WORKER_CRASH],
        began_at=_moment(began),
        ended_at=_moment(ended),
        seconds=(ended - began).total_seconds() if began and ended else None,
        reason=box.reason,
        waits_for=waits.text if waits else "",
        commands=waits.commands if waits else (),
        said=known.said.get(box.id, ""),
        attempts=tuple(_run(each, known, spent.get(each.id, Spending())) for each in attempts),
        metering=metering.of_runs(each.metering for each in attempts if each.begun_by_an_agent),
    )


def _reviewed(task: TaskReport, given: Sequence[Review], work: Work | None) -> TaskReport:
    """The task with its reviews: those of the commit that it stands at, and the rounds before."""
    head = work.head_sha if work else ""
    stand = tuple(each for each in given if each.commit_sha == head)
    return replace(task, reviews=stand, earlier_reviews=tuple(each for each in given if each.commit_sha != head))


def _run(attempt: Attempt, known: Known, spent: Spending) -> RunReport:
    told = known.told
    began, ended = told.began.get(attempt.id), told.ended.get(attempt.id)
    return RunReport(
        run=attempt.id,
        role=attempt.role,
        number=attempt.number,
        state=attempt.state,
        outcome=attempt.outcome,
        runtime=attempt.runtime,
        model=attempt.model,
        began_at=_exactly(began),
        ended_at=_exactly(ended),
        seconds=(ended - began).total_seconds() if began and ended else None,
        spent_nano_usd=metering.known(spent.spent_nano_usd or 0, unmetered=attempt.unmetered),
        metering=attempt.metering,
        told=known.usage.get(attempt.id),
    )


def _checks(work: Work, seen: Iterable[Seen]) -> Iterable[Check]:
    """The checks of the commit that counts."""
    return (
        Check(each.command, each.commit_sha, each.exit_code)
        for each in seen
        if each.kind == EvidenceKind.CHECK and each.commit_sha == work.counts
    )


def _wait(view: PlanView, waits: Waiting) -> WaitReport:
    title = next((task.title for task in view.tasks if task.ordinal == waits.task), view.title)
    return WaitReport(view.slug, waits.task, title, waits.text, waits.commands, waits.question_id)


def _last_move(told: Told, ids: Iterable[str]) -> datetime | None:
    return max((told.moved[id] for id in ids if id in told.moved), default=None)


def _slug(plan_id: str) -> str:
    return plan_id.rpartition("-")[0]


def _moment(at: datetime | None) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds") if at else ""


def _exactly(at: datetime | None) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds") if at else ""
