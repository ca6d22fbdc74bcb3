"""Handing a person's decision over, with what it answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from domain.decision import Decision, DecisionKind
from domain.errors import NotFound
from domain.task import TaskState
from domain.view import PlanView
from starter import settings as settings_
from starter.client import Temporal
from starter.exits import Exit
from starter.looking import Lookout, Unseen
from starter.names import plan_named, plan_or_task_named, task_named
from starter.replies import tell, who
from starter.settings import Settings

_OF_TASKS = (DecisionKind.APPROVE, DecisionKind.ANSWER, DecisionKind.RETRY)
_OF_PLANS = (DecisionKind.ARCHIVE, DecisionKind.WITHDRAW)
_ANSWERING = (DecisionKind.RESUME, DecisionKind.ANSWER, DecisionKind.APPROVE)


def decide(
    kind: str, name: str, *, json: bool, names: str = "", text: str = "", budget: int = 0, plan_budget: int = 0
) -> Exit:
    """Hand a decision on the plan or task of this name over, and tell what it came to.

    `names` is what it answers; when empty it is what the plan's view says: the open question, or the head
    commit. Budgets are in nano-dollars, 0 where they stay as they are.
    """
    settings, wanted = settings_.load(), DecisionKind(kind)
    plan, ordinal = _subject(wanted, name, settings.owner)
    return asyncio.run(
        _decide(settings, Decision(wanted, plan, ordinal, names, text, who(), budget, plan_budget), name, json)
    )


def _subject(kind: DecisionKind, name: str, owner: str) -> tuple[str, int | None]:
    if kind in _OF_TASKS:
        return task_named(name, owner)
    if kind in _OF_PLANS:
        return plan_named(name, owner), None
    return plan_or_task_named(name, owner)


async def _decide(settings: Settings, decision: Decision, name: str, json: bool) -> Exit:
    temporal = await Temporal.connect(settings)
    # A word to a plan that nobody knows would start a workflow only to be refused by it.
    try:
        view = await Lookout(settings, decision.plan_id, temporal).look()
    except Unseen:
        view = None
    if view is not None:
        decision = replace(decision, names=what_it_answers(decision, view))
        if decision.kind is DecisionKind.WITHDRAW and view.proposed:
            decision = replace(decision, names=view.proposed.digest, revision=view.proposed.number)
    return tell(name, await temporal.decide(decision, settings.owner), json)


def what_it_answers(decision: Decision, view: PlanView) -> str:
    """What a decision on a task names: what the person said, with a commit in full, else what stands open.

    NotFound when the plan has no such task.
    """
    if decision.ordinal is None:
        return decision.names
    task = next((each for each in view.tasks if each.ordinal == decision.ordinal), None)
    if task is None:
        raise NotFound(f"{view.slug} has no task {decision.ordinal}; it has {len(view.tasks)}")
    if decision.kind is DecisionKind.APPROVE and task.state == TaskState.IN_REVIEW and not decision.raises:
        return task.head_sha if task.head_sha.startswith(decision.names) else decision.names
    return decision.names or (task.question_id if decision.kind in _ANSWERING else "")
