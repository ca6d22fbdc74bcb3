"""The report of a plan: what was asked, what landed with what proof, and what waits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from domain.lifecycle import Receipt
from domain.plan import PlanEvent
from domain.policy import UNPROVEN
from domain.run import EvidenceKind, Role
from domain.task import ENDED, TaskEvent, TaskFacts
from domain.view import PlanView, counts
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
    """`proof` is `proven` or `unproven` once merged. `seconds` from its first begin to its end, or None."""

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
    began_at: str = ""
    ended_at: str = ""
    seconds: float | None = None
    reason: str = ""
    waits_for: str = ""


@dataclass(frozen=True)
class Report:
    """A plan in one page. `head` is the receipt chain's hash at receipt `seq`."""

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
) -> Report:
    """Put a plan's facts together. `receipts` are all of its chain, in order, and are read once."""
    words, times, runs = _from_receipts(receipts)
    seen: dict[str, list[Seen]] = {}
    for each in evidence:
        seen.setdefault(each.task_id, []).append(each)
    facts = {task.ordinal: task for task in tasks}
    waits = {each.task: each.text for each in waiting(view)}
    reports = []
    for box in view.tasks:
        task = facts.get(box.ordinal)
        if task is None:
            reports.append(TaskReport(box.ordinal, box.title, box.state, waits_for=waits.get(box.ordinal, "")))
            continue
        began, ended = times.get(task.id, (None, None))
        reports.append(
            TaskReport(
                box.ordinal,
                box.title,
                box.state,
                box.proof,
                box.pull_url,
                task.merged_sha,
                tuple(_checks(task, seen.get(task.id, []))),
                runs.get((task.id, Role.AUTHOR), 0),
                runs.get((task.id, Role.CHECK), 0),
                sum(each.kind == EvidenceKind.AGENT_CRASH for each in seen.get(task.id, [])),
                _moment(began),
                _moment(ended),
                (ended - began).total_seconds() if began and ended else None,
                box.reason,
                waits.get(box.ordinal, ""),
            )
        )
    return Report(
        view.plan_id, view.title, view.state, view.repository, view.base, view.merge, view.digest,
        view.confinement, asked, tuple(words), tuple(reports), counts(view), view.seq, view.head,
    )  # fmt: skip


def to_markdown(report: Report) -> str:
    """The report as a reader gets it, on a terminal and on paper."""
    lines = [
        f"# {_flat(report.title)}",
        "",
        f"**{report.state}**: " + (", ".join(f"{n} {state}" for state, n in report.counts.items()) or "no boxes"),
        f"in `{report.repository}` on `{report.base}`, merge {report.merge}. Runs are {report.confinement}.",
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
    lines += [
        "",
        f"{report.seq} receipts; the chain's head is `{report.head}`. Text `{report.digest[:12]}`.",
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
        lines.append(f"    - {task.runs} runs, {task.check_runs} checks{crashes}")
    for check in task.checks:
        code = "no exit code" if check.exit_code is None else f"exit {check.exit_code}"
        lines.append(f"    - `{_flat(check.command)}` on `{check.commit_sha[:12]}`: {code}")
    if task.reason:
        lines.append(f"    - {_flat(task.reason)}")
    return lines


def _checks(task: TaskFacts, seen: Iterable[Seen]) -> Iterable[Check]:
    """The checks of the commit that counts: the proven one, else the last."""
    commit = task.proven_sha or task.head_sha
    return (each.check for each in seen if each.kind == EvidenceKind.CHECK and each.check.commit_sha == commit)


_Times = dict[str, tuple[datetime | None, datetime | None]]


def _from_receipts(receipts: Iterable[Receipt]) -> tuple[list[Word], _Times, dict[tuple[str, str], int]]:
    words: list[Word] = []
    times: _Times = {}
    runs: dict[tuple[str, str], int] = {}
    for receipt in receipts:
        if receipt.refused:
            continue
        if receipt.kind == "plan" and receipt.event in (
            PlanEvent.PUBLISH,
            PlanEvent.REPUBLISH,
            PlanEvent.CONFIRM,
        ):
            words.append(Word(_moment(receipt.at), receipt.cause))
        elif receipt.kind == "task":
            began, _ = times.get(receipt.subject, (None, None))
            if receipt.event == TaskEvent.BEGIN:
                began = began or receipt.at
            times[receipt.subject] = began, receipt.at if receipt.after in ENDED else None
        elif receipt.kind == "run" and receipt.before is None:
            key = str(receipt.facts.get("task_id")), str(receipt.facts.get("role"))
            runs[key] = runs.get(key, 0) + 1
    return words, times, runs


def _moment(at: datetime | None) -> str:
    return at.isoformat(timespec="seconds") if at else ""


def _flat(text: str) -> str:
    """Somebody's words on one line of the report."""
    return " ".join(text.split())[:400]
