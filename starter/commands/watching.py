"""Watching: where plans stand now, and what happens in one as it happens."""

from __future__ import annotations

from typing import Annotated

import typer

from starter.exits import CommandFailed, Exit
from starter.options import Json
from starter.until import Until


def status(
    plan: Annotated[
        str,
        typer.Argument(metavar="PLAN", help="A plan's file, slug or id; every plan of yours when not given."),
    ] = "",
    wait: Annotated[bool, typer.Option("--wait", help="First wait until it has ended or a person is needed.")] = False,
    json: Json = False,
) -> Exit:
    """Show where a plan stands, or list your plans.

    Shows every box, what waits for a person, and what to type about it; and which step of a task failed
    and is tried again, with why and when. When Temporal or its worker does not answer, the store is read,
    if it can be reached from here.
    """
    if wait and not plan:
        raise CommandFailed(Exit.USAGE, "--wait needs a PLAN to wait for")
    from starter import watching

    return watching.status(plan, wait=wait, json=json) if plan else watching.list_plans(json=json)


def watch(
    plan: Annotated[
        str,
        typer.Argument(metavar="PLAN|TASK", help="A plan's file, slug or id; with --screen a task: PLAN#2, or its id."),
    ],
    since: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="SEQ", help="Tell what came after this receipt; where the last watch stopped when not given."
        ),
    ] = None,
    from_start: Annotated[bool, typer.Option("--from-start", help="Tell everything that is still told.")] = False,
    until: Annotated[
        Until,
        typer.Option(metavar="ended|person", help="When to stop: at its end, or when a person is needed."),
    ] = Until.ENDED,
    screen: Annotated[
        bool, typer.Option("--screen", help="Show one task's run at work, until the run has ended.")
    ] = False,
    json: Json = False,
) -> Exit:
    """Tell what happens in a plan until its end, a line at a time.

    A later watch goes on where the last one stopped. A server that restarts meanwhile is waited for.
    When nothing happens for a while, it tells which step of a task failed and is tried again. With --json
    each line is one object with a `kind`: happening, missing, waiting, retry, trouble or over.

    With --screen it shows what the agent of a TASK says and does, or how its last run ended, wherever it works:
    the worker keeps what is to be seen in the store, every two seconds at most. A later run of the task is shown
    by a later watch. With --json it is one object, of this moment.
    """
    if screen:
        if since is not None or from_start or until is not Until.ENDED:
            raise CommandFailed(Exit.USAGE, "--screen shows a run until its end; it takes no other option than --json")
        from starter.screens import watch_screen

        return watch_screen(plan, json=json)
    from starter import watching

    return watching.watch(plan, 0 if from_start else since, until, json=json)
