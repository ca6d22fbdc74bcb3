"""The report of a plan: what was asked, what landed with what proof, and what waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from domain import confinement, metering
from domain.agents import AGENTS
from domain.budget import format_usd
from domain.lifecycle import Receipt
from domain.plan import PlanEvent
from domain.policy import UNPROVEN
from domain.run import EvidenceKind, Role, RunEvent
from domain.task import ENDED, TaskEvent, TaskFacts
from domain.view import PlanView, TaskView, counts
from domain.wording import counted
from forge.text import SAID, verbatim
from starter.hints import waiting


@dataclass(frozen=True)
class Check:
    """A check that we ran: what, on which commit, and its exit code (None when it never came to one)."""

    command: str
    commit_sha: str
    exit_code: int | None


@dataclass(frozen=True)
class Word:
    """What a person said about the plan, when, in the receipt's words."""

    at: str
    text: str


@dataclass(frozen=True)
class TaskReport:
    """`proof` is `proven` or `unproven` once merged. `seconds` from its first begin to its end, or None.

    `metering` is what its agents' runs were that have begun, as `domain.metering.of_runs` puts it.
    `said` is what its agent says of the work, in its own words and without secrets.
    """

    ordinal: int
    title: str
    state: str
    proof: str = ""
    pull_url: str = ""
    merged_sha: str = ""
    checks: tuple[Check, ...] = ()
    runs: int = 0
    check_runs: int = 0
    crashes: int = 0
    worker_crashes: int = 0
    began_at: str = ""
    ended_at: str = ""
    seconds: float | None = None
    reason: str = ""
    waits_for: str = ""
    said: str = ""
    metering: str = ""


@dataclass(frozen=True)
class Report:
    """A plan in one page. `head` is the receipt chain's hash at receipt `seq`, `seal` its newest signed head.

    `confinement`, `metering` and `spent_nano_usd` are the view's.
    """

    plan_id: str
    title: str
    state: str
    repository: str
    base: str
    merge: str
    digest: str
    confinement: str
    asked: str
    words: tuple[Word, ...]
    tasks: tuple[TaskReport, ...]
    counts: dict[str, int]
    seq: int
    head: str
    spent_nano_usd: int | None = 0
    sealed_seq: int = 0
    seal: str = ""
    metering: str = ""


@dataclass(frozen=True)
class Seen:
    """A piece of evidence, as far as a report tells of it."""

    task_id: str
    kind: str
    check: Check


def build(
    view: PlanView,
    asked: str,
    tasks: Sequence[TaskFacts],
    evidence: Iterable[Seen],
    receipts: Iterable[Receipt],
    seal: tuple[int, str] = (0, ""),
    said: Mapping[str, str] = MappingProxyType({}),
) -> Report:
    """Put a plan's facts together.

    `receipts` are all of its chain, in order, and are read once; `seal` is the receipt that was sealed
    last, and its token; `said` is what agents say of their work, by the ids of tasks.
    """
    told = _told(receipts)
    facts = {task.ordinal: task for task in tasks}
    seen: dict[str, list[Seen]] = {}
    for each in evidence:
        seen.setdefault(each.task_id, []).append(each)
    waits = {each.task: each.text for each in waiting(view)}
    return Report(
        plan_id=view.plan_id,
        title=view.title,
        state=view.state,
        repository=view.repository,
        base=view.base,
        merge=view.merge,
        digest=view.digest,
        confinement=view.confinement,
        asked=asked,
        words=tuple(told.words),
        tasks=tuple(
            replace(
                _task_report(box, facts.get(box.ordinal), seen.get(box.id, []), told, waits.get(box.ordinal, "")),
                said=said.get(box.id, ""),
            )
            for box in view.tasks
        ),
        counts=counts(view),
        seq=view.seq,
        head=view.head,
        spent_nano_usd=view.spent_nano_usd,
        sealed_seq=seal[0],
        seal=seal[1],
        metering=view.metering,
    )


@dataclass
class _Told:
    """What a chain's receipts say: persons' words, when tasks began and ended, how often and how they were run."""

    words: list[Word] = field(default_factory=list)
    began: dict[str, datetime] = field(default_factory=dict)
    ended: dict[str, datetime] = field(default_factory=dict)
    runs: Counter[tuple[str, str]] = field(default_factory=Counter)
    agents: dict[str, str] = field(default_factory=dict)
    metering: dict[str, set[str]] = field(default_factory=dict)


def _told(receipts: Iterable[Receipt]) -> _Told:
    told = _Told()
    for receipt in receipts:
        match receipt.kind, receipt.event:
            case _ if receipt.refused:
                continue
            case "plan", PlanEvent.PUBLISH | PlanEvent.REPUBLISH | PlanEvent.CONFIRM | PlanEvent.REVISE:
                told.words.append(Word(_moment(receipt.at), receipt.cause))
            case "task", event:
                if event == TaskEvent.BEGIN:
                    told.began.setdefault(receipt.subject, receipt.at)
                if receipt.after in ENDED:
                    told.ended[receipt.subject] = receipt.at
                else:
                    told.ended.pop(receipt.subject, None)
            case "run", RunEvent.START:
                told.runs[str(receipt.facts["task_id"]), str(receipt.facts["role"])] += 1
                if receipt.facts.get("runtime") in AGENTS:
                    told.agents[receipt.subject] = str(receipt.facts["task_id"])
            case "run", RunEvent.SPAWN if receipt.subject in told.agents:
                kinds = told.metering.setdefault(told.agents[receipt.subject], set())
                kinds.add(str(receipt.facts.get("metering", "")))
    return told


def _task_report(
    box: TaskView, task: TaskFacts | None, seen: Sequence[Seen], told: _Told, waits_for: str
) -> TaskReport:
    began, ended = told.began.get(box.id), told.ended.get(box.id)
    return TaskReport(
        ordinal=box.ordinal,
        title=box.title,
        state=box.state,
        proof=box.proof,
        pull_url=box.pull_url,
        merged_sha=task.merged_sha if task else "",
        checks=tuple(_checks(task, seen)) if task else (),
        runs=told.runs[box.id, Role.AUTHOR],
        check_runs=told.runs[box.id, Role.CHECK],
        crashes=sum(each.kind == EvidenceKind.AGENT_CRASH for each in seen),
        worker_crashes=sum(each.kind == EvidenceKind.WORKER_CRASH for each in seen),
        began_at=_moment(began),
        ended_at=_moment(ended),
        seconds=(ended - began).total_seconds() if began and ended else None,
        reason=box.reason,
        waits_for=waits_for,
        metering=metering.of_runs(told.metering.get(box.id, ())),
    )


def _checks(task: TaskFacts, seen: Iterable[Seen]) -> Iterable[Check]:
    """The checks of the commit that counts: the proven one, else the last."""
    commit = task.proven_sha or task.head_sha
    return (each.check for each in seen if each.kind == EvidenceKind.CHECK and each.check.commit_sha == commit)


def to_markdown(report: Report) -> str:
    """The report as a reader gets it, on a terminal and on paper."""
    lines = [
        f"# {_flat(report.title)}",
        "",
        f"**{report.state}**: " + (", ".join(f"{n} {state}" for state, n in report.counts.items()) or "no boxes"),
        f"in `{report.repository}` on `{report.base}`, merge {report.merge}. "
        f"{confinement.sentence(report.confinement)} {metering.sentence(report.metering)}".rstrip(),
        "",
        "## What was asked",
        "",
        *(f"- {word.at} {_flat(word.text)}" for word in report.words),
        "",
        *([report.asked.strip(), ""] if report.asked.strip() else []),
        "## What became of it",
        "",
        *(line for task in report.tasks for line in _task_lines(task)),
    ]
    waits = [task for task in report.tasks if task.waits_for]
    if waits:
        lines += ["", "## What waits for a person", ""]
        lines += [f"- {task.ordinal}. {_flat(task.title)}: {_flat(task.waits_for)}" for task in waits]
    if report.spent_nano_usd:
        what = "What was counted of calls of models" if metering.has_unmetered(report.metering) else "Calls of models"
        lines += ["", f"{what} cost {format_usd(report.spent_nano_usd)}, with what is still held for some."]
    lines += [
        "",
        f"{counted(report.seq, 'receipt')}; the chain's head is `{report.head}`. Text `{report.digest[:12]}`.",
        *(["", f"Receipt {report.sealed_seq} is sealed: `{report.seal}`"] if report.seal else []),
        "",
    ]
    return "\n".join(lines)


def _task_lines(task: TaskReport) -> list[str]:
    proof = f", **{task.proof}**" if task.proof == UNPROVEN else f", {task.proof}" if task.proof else ""
    spent = f" in {task.seconds:.1f} s" if task.seconds is not None else ""
    lines = [f"- {task.ordinal}. {_flat(task.title)}: **{task.state}**{proof}{spent}"]
    if task.pull_url:
        merged = f", merged as `{task.merged_sha[:12]}`" if task.merged_sha else ""
        lines.append(f"    - {task.pull_url}{merged}")
    if task.runs:
        crashes = f", {task.crashes} crashed" if task.crashes else ""
        crashes += f", and {counted(task.worker_crashes, 'worker')} died beside them" if task.worker_crashes else ""
        around = f" ({task.metering})" if metering.has_unmetered(task.metering) else ""
        lines.append(f"    - {counted(task.runs, 'run')}{around}, {counted(task.check_runs, 'check')}{crashes}")
    for check in task.checks:
        code = "no exit code" if check.exit_code is None else f"exit {check.exit_code}"
        lines.append(f"    - `{_flat(check.command)}` on `{check.commit_sha[:12]}`: {code}")
    if task.reason:
        lines.append(f"    - {_flat(task.reason)}")
    if task.said:
        lines += [f"    - What the agent says of its work. {SAID}", "", *_beneath(verbatim(task.said)), ""]
    return lines


def _beneath(block: str) -> list[str]:
    """Lines that belong to an item of a list within a list."""
    return [f"      {line}".rstrip() for line in block.splitlines()]


def _moment(at: datetime | None) -> str:
    return at.isoformat(timespec="seconds") if at else ""


def _flat(text: str) -> str:
    """Somebody's words on one line of the report."""
    return " ".join(text.split())
