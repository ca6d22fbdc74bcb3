"""Decisions: a person's word on a plan or a task."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from domain.budget import parse_usd
from starter.exits import CommandFailed, Exit
from starter.options import Json, Plan, PlanOrTask, Task

Note = Annotated[str, typer.Option("--note", metavar="TEXT", help="Why; it is recorded, and the next run reads it.")]
Question = Annotated[
    str,
    typer.Option("--question", metavar="ID", help="The question that is meant; the open one when not given."),
]


def pause(name: PlanOrTask, note: Note = "", json: Json = False) -> Exit:
    """Pause a plan, or one task of it.

    Nothing further begins in a paused plan; what runs already runs on. A paused task's run is stopped and
    its work is kept.
    """
    return _decide("pause", name, json, text=note)


def resume(name: PlanOrTask, note: Note = "", question: Question = "", json: Json = False) -> Exit:
    """Go on with a paused plan or task.

    A task that waits for a person goes on where it stood.
    """
    return _decide("resume", name, json, names=question, text=note)


def approve(
    task: Task,
    sha: Annotated[
        str,
        typer.Option(
            metavar="SHA",
            help="The commit that is meant, or the first 7 or more of it; the pull request's head when not given.",
        ),
    ] = "",
    budget: Annotated[
        str, typer.Option(metavar="USD", help="What the task may cost from now on, as 5 or `5 USD`; nothing else.")
    ] = "",
    plan_budget: Annotated[str, typer.Option(metavar="USD", help="What its whole plan may cost from now on.")] = "",
    question: Question = "",
    note: Note = "",
    json: Json = False,
) -> Exit:
    """Approve what a task has come to.

    That is its pull request's commit, to be merged, or what it asks to be let through. An approval is for
    one commit: when somebody pushes another one, it approves nothing.

    With --budget or --plan-budget that much money is approved, and nothing else. A task that waits for money
    goes on, in the session of its agent.
    """
    if (budget or plan_budget) and sha:
        raise CommandFailed(Exit.USAGE, "--sha approves a commit and --budget money; give one of them")
    if sha and question:
        raise CommandFailed(Exit.USAGE, "--sha means a commit and --question a question; give one of them")
    if sha and not re.fullmatch(r"[0-9a-fA-F]{7,40}", sha):
        raise CommandFailed(Exit.USAGE, f"{sha!r} is no commit: at least 7 of 0-9 and a-f are needed")
    return _decide(
        "approve",
        task,
        json,
        names=sha.lower() or question,
        text=note,
        budget=money("--budget", budget),
        plan_budget=money("--plan-budget", plan_budget),
    )


def answer(
    task: Task,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the next run should know.")],
    question: Question = "",
    json: Json = False,
) -> Exit:
    """Answer what a task asks.

    It goes on, and its next run reads the answer.
    """
    return _decide("answer", task, json, names=question, text=text)


def retry(task: Task, note: Note = "", json: Json = False) -> Exit:
    """Let a failed task begin again.

    It gets as many further runs as the plan allows.
    """
    return _decide("retry", task, json, text=note)


def cancel(name: PlanOrTask, note: Note = "", json: Json = False) -> Exit:
    """Cancel a task, or what is left of a plan.

    What was merged stays merged.
    """
    return _decide("cancel", name, json, text=note)


def archive(plan: Plan, json: Json = False) -> Exit:
    """Put a plan away that ended or never began."""
    return _decide("archive", plan, json)


def budget(
    day: Annotated[str, typer.Option("--day", metavar="USD", help="What your runs may cost in a day.")] = "",
    zone: Annotated[
        str, typer.Option("--zone", metavar="ZONE", help="Where a day begins and ends, such as Europe/Berlin.")
    ] = "",
    json: Json = False,
) -> Exit:
    """Show or set what your runs may cost in a day.

    Without an option it shows what they have cost today, and what is left. What is set holds over all your
    plans, from this day on. Where nothing was said it is 25 USD, in UTC.
    """
    from starter import budgets

    if day or zone:
        return budgets.set_day(money("--day", day) or None, zone, json=json)
    return budgets.show(json=json)


def money(option: str, text: str) -> int:
    """An amount that was typed, in nano-dollars; 0 when nothing was."""
    try:
        return parse_usd(text) if text else 0
    except ValueError as error:
        raise CommandFailed(Exit.USAGE, f"{option}: {error}") from error


def _decide(
    kind: str, name: str, json: bool, *, names: str = "", text: str = "", budget: int = 0, plan_budget: int = 0
) -> Exit:
    from starter import deciding

    return deciding.decide(kind, name, json=json, names=names, text=text, budget=budget, plan_budget=plan_budget)
