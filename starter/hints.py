"""What waits for a person, and exactly what to type about it."""

from __future__ import annotations

from dataclasses import dataclass

from domain.decision import TAKEN_AT
from domain.metering import Metering
from domain.plan import PlanState
from domain.task import QuestionKind, TaskState
from domain.view import PlanView, TaskView, waits_for


@dataclass(frozen=True)
class Waiting:
    """`task` is the box's ordinal, None for the plan itself; `commands` are the choices.

    `question_id` is set where it is a question that waits, so that an answer can name it.
    """

    task: int | None
    text: str
    commands: tuple[str, ...]
    question_id: str = ""


def waiting(view: PlanView) -> tuple[Waiting, ...]:
    """Everything that goes on only when a person says something."""
    found: list[Waiting] = []
    if view.state == PlanState.AWAITING_CONFIRMATION:
        found.append(Waiting(None, "the plan waits to be confirmed", (f"watchbill confirm {view.slug}",)))
    if view.proposed:
        text = f"revision {view.proposed.number} waits to be confirmed: {view.proposed.summary}"
        found.append(Waiting(None, text, confirming(view.slug, view.proposed.digest)))
    if view.paused and not view.ended:
        found.append(Waiting(None, "the plan is paused", (f"watchbill resume {view.slug}",)))
    for task in view.tasks:
        text = waits_for(view, task)
        if text:
            found.append(Waiting(task.ordinal, text, _choices(view, task), task.question_id))
    return tuple(found)


def confirming(slug: str, digest: str) -> tuple[str, ...]:
    """What to type about a revision that waits."""
    return f"watchbill confirm {slug} --digest {digest[:12]}", f"watchbill revise {slug} --withdraw"


def _choices(view: PlanView, task: TaskView) -> tuple[str, ...]:
    name = f"{view.slug}#{task.ordinal}"
    if task.state == TaskState.IN_REVIEW and not task.question_id:
        return (f"watchbill approve {name}",)
    approve: tuple[str, ...]
    # Only some work can be approved as it is; elsewhere `approve` would be another `resume`.
    approve = (f"watchbill approve {name}",) if task.question_kind in TAKEN_AT else ()
    # Who is unmetered has no budget that could be raised: what is spent is its provider's.
    if task.question_kind == QuestionKind.OUT_OF_BUDGET and view.metering != Metering.UNMETERED:
        approve = (f'watchbill approve {name} --budget "what it may cost in USD"', f"watchbill costs {view.slug}")
        if task.question_at == TaskState.REVIEWING:
            # A review may have a budget of its own, which is the plan's word alone.
            approve += ('watchbill revise "the plan with another review_budget"',)
    return (
        *approve,
        f"watchbill resume {name}",
        f'watchbill answer {name} "what the next run should know"',
        f"watchbill cancel {name}",
    )


def all_merged(view: PlanView) -> bool:
    """Whether every box is done: merged, without changes, checked from the beginning, or struck out."""
    return all(task.struck or task.state in ("done", TaskState.MERGED, TaskState.NO_CHANGES) for task in view.tasks)
