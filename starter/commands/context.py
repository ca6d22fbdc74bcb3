"""What is known of a plan or a repository: shown, and edited."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from starter.exits import CommandFailed, Exit
from starter.options import Json


def context(
    first: Annotated[str, typer.Argument(metavar="edit", help="To edit it; without this word it is shown.")] = "",
    second: Annotated[str, typer.Argument(metavar="PLAN", help="A plan's file, slug or id.")] = "",
    repository: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="What you know of this repository, such as acme/shop, in the place of a plan."
        ),
    ] = "",
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With edit: the edited document; `-` reads stdin. Else $EDITOR is started."),
    ] = None,
    json: Json = False,
) -> Exit:
    """Show or edit what agents are told of a plan beside its tasks.

    That is its prose, what was decided, and operating knowledge: how to work here, and what to mind. Agents
    record decisions; you edit all of it, as one Markdown document, in which a line `### Title` begins a note
    below `## Decisions` or `## Operating knowledge`. What you take out of it is removed. Each version of a note
    is kept, with its receipt, and what somebody has changed since you read it is refused. Runs that begin
    afterwards are told of it, and those at work when they are reminded of their brief.

    What is known of a repository holds in all of your plans for it. The prose is changed by publishing.
    """
    edit = first == "edit" and bool(second or repository)
    plan = second if edit else first
    if second and not edit:
        raise CommandFailed(Exit.USAGE, f"{first!r} is nothing that can be done with it; `edit` is")
    if bool(plan) == bool(repository):
        raise CommandFailed(Exit.USAGE, "name a PLAN, or a repository with --repository; one of them")
    if file is not None and not edit:
        raise CommandFailed(Exit.USAGE, "--file brings an edited document; write `context edit`")
    from starter import contexts

    if edit:
        return contexts.edit(plan, repository, file, json=json)
    return contexts.show(plan, repository, json=json)
