"""What a person sees of a plan, on every surface the same: derived from the graph, kept nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from domain import confinement, metering
from domain.plan import MergePolicy, PlanState
from domain.policy import UNPROVEN
from domain.task import ENDED, TaskState

ROOM_FOR_QUESTIONS = 20_000
"""How many letters of what people are asked a plan's Markdown has room for: an agent's question has at most 8,000.

Where more wait, the first are shown whole, and the task's own view shows each of them.
"""

_SHORT = 400


@dataclass(frozen=True)
class TaskView:
    """One checkbox. `question` and `question_id` are set while it waits for a person's answer, which resumes it at the
    state `question_at`.

    `state` is `done` for a box that was checked when the plan was published, `removed` for one that was struck out
    then; `struck` is set for that, and for one that a revision struck out. `unproven` is set where there is a commit
    that is neither proven nor approved by a person.
    """

    ordinal: int
    title: str
    state: str
    id: str = ""
    question_id: str = ""
    question: str = ""
    question_kind: str = ""
    question_at: str = ""
    runs: int = 0
    pull_url: str = ""
    head_sha: str = ""
    proof: str = ""
    reason: str = ""
    has_slot: bool = False
    after: tuple[int, ...] = ()
    struck: bool = False
    unproven: bool = False


@dataclass(frozen=True)
class Proposed:
    """A revision that waits to be confirmed: `lines` says what it changes, and what stands in its way by now."""

    number: int
    digest: str
    summary: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Happening:
    """One line of a plan's story. `seq` is the receipt's, and serves as a cursor."""

    seq: int
    at: str
    text: str


@dataclass(frozen=True)
class PlanView:
    """A plan as `status`, the Temporal UI and `watch` show it.

    `story` is the tail of what happened; `story_starts_at` is the seq of the first receipt that it may
    tell of, so that a reader whose cursor is older knows that lines are missing. `head` is the receipt chain's hash.
    `confinement` is what the plan's runs were, as `domain.confinement.of_runs` puts it.
    `metering` is what its agents are, as `domain.metering.of_runs` puts it, those to come included; empty without any.
    `spent_nano_usd` is what its calls of models have cost, and what those under way may come to; None where nothing
    was counted and agents were at work who are not counted.
    """

    plan_id: str
    slug: str
    owner: str
    title: str
    state: str
    repository: str
    base: str
    merge: str
    paused: bool
    revision: int
    digest: str
    seq: int
    head: str
    tasks: tuple[TaskView, ...] = ()
    story: tuple[Happening, ...] = ()
    story_starts_at: int = 1
    confinement: str = "unconfined"
    spent_nano_usd: int | None = 0
    metering: str = ""
    proposed: Proposed | None = None

    @property
    def needs_person(self) -> bool:
        return needs_person(self, self.tasks)

    @property
    def ended(self) -> bool:
        return self.state in ("completed", "archived")

    @property
    def every_box_has_ended(self) -> bool:
        """Whether a plan under way has nothing left to wait for, however its tasks ended."""
        return self.state in (PlanState.CONFIRMED, PlanState.IN_PROGRESS) and all(
            task.state in ENDED for task in self.tasks if task.id
        )


def followed(known: PlanView | None, news: PlanView) -> PlanView:
    """The newer view with the whole of its story, where it was asked for from the older one's end on."""
    if known is None:
        return news
    told = (line for line in known.story if news.story_starts_at <= line.seq <= news.seq)
    return replace(news, story=(*told, *(line for line in news.story if line.seq > known.seq)))


class Plan(Protocol):
    """What of a plan says whom it waits for, whoever has read it."""

    @property
    def state(self) -> str: ...

    @property
    def merge(self) -> str: ...

    @property
    def proposed(self) -> object: ...


def needs_person(plan: Plan, tasks: Iterable[TaskView]) -> bool:
    """Whether anything in a plan with these tasks waits for a person."""
    waits = plan.state == "awaiting_confirmation" or bool(plan.proposed)
    return waits or any(waits_for(plan, task) for task in tasks)


def waits_for(plan: Plan, task: TaskView) -> str:
    """What a person has to do for this task now, in words; empty when nothing."""
    if task.question_id:
        return task.question
    if task.state != TaskState.IN_REVIEW:
        return ""
    if plan.merge == MergePolicy.BY_HAND:
        return "waits to be merged by hand"
    if task.unproven:
        return "waits to be merged by hand, because it is not proven"
    return f"it could not be merged yet: {task.reason}" if task.reason else ""


def counts(plan: PlanView) -> dict[str, int]:
    """How many tasks are in each state, with merges that carry no proof counted apart as well."""
    result: dict[str, int] = {}
    for task in plan.tasks:
        result[task.state] = result.get(task.state, 0) + 1
        if task.state == TaskState.MERGED and task.proof == UNPROVEN:
            result[UNPROVEN] = result.get(UNPROVEN, 0) + 1
    return result


def to_markdown(plan: PlanView) -> str:
    """The plan as Markdown, for the Temporal UI: where it stands, what waits for a person, every box."""
    gate = ", paused" if plan.paused else ""
    summary = ", ".join(f"{count} {state}" for state, count in counts(plan).items())
    lines = [
        f"### {unmarked(plan.title)}",
        f"**{plan.state}{gate}** · {plan.repository} · {summary or 'no tasks'}",
        "",
    ]
    if plan.state == "awaiting_confirmation":
        lines += [f"Waits for confirmation: `watchbill confirm {plan.slug}`", ""]
    if plan.proposed:
        confirm = f"`watchbill confirm {plan.slug} --digest {plan.proposed.digest[:12]}`"
        lines += [f"Revision {plan.proposed.number} waits for confirmation: {confirm}", ""]
        # Indented, it is code: nothing in somebody's words is markup there, and each of them is one line.
        lines += [*(f"    {' '.join(line.split())}" for line in plan.proposed.lines), ""]
    room = ROOM_FOR_QUESTIONS
    for task in plan.tasks:
        mark = "x" if task.state in ("done", TaskState.MERGED, TaskState.NO_CHANGES) else " "
        pull = f" · [pull request]({task.pull_url})" if task.pull_url else ""
        proof = f" · {task.proof}" if task.proof else ""
        title = f"~~{unmarked(task.title)}~~" if task.struck else unmarked(task.title)
        lines.append(f"- [{mark}] {task.ordinal}. {title} — **{task.state}**{proof}{pull}")
        waits = waits_for(plan, task)
        if waits:
            name = f" (`{task.question_id}`)" if task.question_id else ""
            lines.append(f"  - waits for a person{name}: {unmarked(waits, max(room, _SHORT))}")
            room -= len(waits)
    told = " ".join(filter(None, (confinement.sentence(plan.confinement), metering.sentence(plan.metering))))
    lines += ["", f"{told} Chain {plan.seq}:`{plan.head[:16]}`."]
    return "\n".join(lines)


def unmarked(text: str, room: int = _SHORT) -> str:
    """Somebody's words on one line, without markup of their own; what has no room is cut off, and that is shown."""
    flat = " ".join(text.split())
    shown = flat if len(flat) <= room else f"{flat[: room - 1]}…"
    return re.sub(r"[\\`*_\[\]<>#|]", r"\\\g<0>", shown)
