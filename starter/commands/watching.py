"""Watching: where plans stand now, and what happens in one as it happens."""

from __future__ import annotations

from typing import Annotated

import typer

from starter.exits import CommandFailed, Exit
from starter.options import Json, Plan
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
    plan: Plan,
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
    json: Json = False,
) -> Exit:
    """Tell what happens in a plan until its end, a line at a time.

    A later watch goes on where the last one stopped. A server that restarts meanwhile is waited for.
    When nothing happens for a while, it tells which step of a task failed and is tried again. With --json
    each line is one object with a `kind`: happening, missing, waiting, retry, trouble or over.
    """
    from starter import watching

    return watching.watch(plan, 0 if from_start else since, until, json=json)
