"""Raising budgets: a person lets a task, its plan or an owner's day cost more, and says how much."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from domain.budget import format_usd
from domain.decision import Already, Decision, PlanFacts, Refusal, Ruling, cause_of, decide_task, task_move
from domain.duties import Actor
from domain.lifecycle import Move
from domain.plan import PlanEvent
from domain.task import Question, QuestionKind, QuestionState, TaskEvent, TaskFacts


@dataclass(frozen=True)
class Used:
    """What is held and spent, in nano-dollars, of a task's money, its plan's, and its owner's of this day.

    `day_cap` is what the day's may come to.
    """

    task: int
    plan: int
    day: int
    day_cap: int


@dataclass(frozen=True)
class SetDay:
    """A person's word on an owner's days: what runs may cost in each, and where they begin.

    `nano_usd` None and `zone` empty leave that as it is.
    """

    owner: str
    nano_usd: int | None = None
    zone: str = ""
    by: str = ""


def decide_raise(
    decision: Decision, plan: PlanFacts, task: TaskFacts, question: Question | None, used: Used, at: datetime
) -> Ruling:
    """The moves by which a task and its plan may cost more; a task that waits for money goes on with it.

    Nothing else is approved by it, whatever the task may ask.
    """
    if task.ended:
        return Refusal(f"the task is {task.state}; it gets no money any more")
    refused = _why_not("task", decision.budget_nano_usd, task.budget_nano_usd) or _why_not(
        "plan", decision.plan_budget_nano_usd, plan.budget_nano_usd
    )
    if refused:
        return Refusal(refused)
    budget = decision.budget_nano_usd or task.budget_nano_usd
    plan_budget = decision.plan_budget_nano_usd or plan.budget_nano_usd
    if plan_budget is not None and (budget or 0) > plan_budget:
        return Refusal(
            f"{format_usd(budget or 0)} is more than the plan's {format_usd(plan_budget)}; raise that as well, "
            "with --plan-budget"
        )
    if (budget, plan_budget) == (task.budget_nano_usd, plan.budget_nano_usd):
        return Already(_as_it_is(task, plan))
    waits = task.question if question is None or question.state is not QuestionState.OPEN else question
    if waits is None or waits.kind is not QuestionKind.OUT_OF_BUDGET:
        return (*_raise_task(decision, task, budget, at), *_raise_plan(decision, plan, plan_budget, at))
    short = _what_is_short(budget, plan_budget, used)
    if short:
        return Refusal(short)
    goes_on = decide_task(decision, plan, task, waits, at)
    if not isinstance(goes_on, tuple):
        return goes_on
    resume, *answer = goes_on
    if budget != task.budget_nano_usd:
        resume = _with(resume, budget)
    return (resume, *answer, *_raise_plan(decision, plan, plan_budget, at))


def _why_not(what: str, wanted: int, now: int | None) -> str:
    """Why a budget cannot become what is wanted, which is nothing new where that is 0; empty when it can."""
    if wanted and now is None:
        return f"the {what} has no budget that could be raised"
    if wanted and now is not None and wanted < now:
        return f"the {what}'s budget is {format_usd(now)}; it can be raised, to more than that"
    return ""


def _what_is_short(budget: int | None, plan_budget: int | None, used: Used) -> str:
    """What the task would run out of again at once, in one sentence; empty when it could go on."""
    if budget is not None and used.task >= budget:
        return f"{_is_short('task', budget, used.task)}; raise it to more, with --budget"
    if plan_budget is not None and used.plan >= plan_budget:
        return f"{_is_short('plan', plan_budget, used.plan)}; raise it as well, with --plan-budget"
    if used.day >= used.day_cap:
        return f"{_is_short('day', used.day_cap, used.day)}; raise it with `watchbill budget --day`, or wait"
    return ""


def _is_short(what: str, cap: int, used: int) -> str:
    return f"what is short is the {what}'s budget: {format_usd(used)} of {format_usd(cap)} is spent or held"


def _raise_task(decision: Decision, task: TaskFacts, budget: int | None, at: datetime) -> tuple[Move, ...]:
    if budget == task.budget_nano_usd:
        return ()
    facts = {"budget_nano_usd": budget}
    key, cause = f"raised:{task.seq}", cause_of(decision)
    return (task_move(task, TaskEvent.RAISED, key, cause, at, facts, by=Actor.PERSON),)


def _raise_plan(decision: Decision, plan: PlanFacts, budget: int | None, at: datetime) -> tuple[Move, ...]:
    # Behind the task's, as everywhere: who holds money of a task locks it before its plan.
    if budget == plan.budget_nano_usd:
        return ()
    facts = {"budget_nano_usd": budget}
    key, cause = f"raised:{plan.seq}", cause_of(decision)
    return (Move("plan", plan.id, PlanEvent.RAISED, key, plan.id, cause, at, facts, by=Actor.PERSON),)


def _with(resume: Move, budget: int | None) -> Move:
    facts = {**resume.facts, "budget_nano_usd": budget}
    return Move(**{**vars(resume), "facts": facts})


def _as_it_is(task: TaskFacts, plan: PlanFacts) -> str:
    said = [
        f"the {what}'s budget is {format_usd(budget)}"
        for what, budget in (("task", task.budget_nano_usd), ("plan", plan.budget_nano_usd))
        if budget is not None
    ]
    return " and ".join(said) or "neither the task nor its plan has a budget"
