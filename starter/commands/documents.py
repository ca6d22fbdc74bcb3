"""Documents: look at one without any server, publish it, confirm it."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from starter.exits import CommandFailed, Exit
from starter.options import Document, Json, Plan


def check(file: Document, json: Json = False) -> Exit:
    """Look for faults in a plan's document.

    Needs no server. Prints every fault with its line, or how many tasks there are, and whether its agents are
    unmetered. With --json it prints one object: tasks (ordinal, title, line, done, struck, after), metering
    (metered, unmetered, or empty without agents) and faults (line, message).
    """
    from starter import checking

    return checking.check(file, json=json)


def submit(
    file: Document,
    confirm: Annotated[bool, typer.Option("--confirm", help="Confirm it at once; work begins.")] = False,
    json: Json = False,
) -> Exit:
    """Publish a plan's document.

    Nothing is done about it until somebody confirms it. The same text again changes nothing. Another text
    replaces the one that was published, as long as that has not been confirmed; afterwards `watchbill revise`
    does that.
    """
    from starter.names import read_document

    # Faults are found before anything that is slow to import or far away.
    text, spec = read_document(file)
    from starter import publishing

    return publishing.submit(file, text, spec, confirm_too=confirm, json=json)


def confirm(
    plan: Plan,
    digest: Annotated[
        str,
        typer.Option(metavar="DIGEST", help="Confirm only this text: its digest, or the first 8 or more of it."),
    ] = "",
    json: Json = False,
) -> Exit:
    """Confirm a published plan; work begins.

    Its open boxes become tasks. Named by its file, exactly the text in that file is confirmed. Named by
    slug or id, the text that is published is shown and confirmed; with --digest only if it is that one.
    The same confirms a revision that waits.
    """
    if digest and not re.fullmatch(r"[0-9a-fA-F]{8,64}", digest):
        raise CommandFailed(Exit.USAGE, f"{digest!r} is no digest: at least 8 of 0-9 and a-f are needed")
    from starter import publishing

    return publishing.confirm(plan, digest.lower(), json=json)


def revise(
    plan: Annotated[
        str, typer.Argument(metavar="FILE", help="The plan's Markdown file; with --withdraw its slug or id too.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Confirm it at once, without being asked.")] = False,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take the revision back that waits.")] = False,
    json: Json = False,
) -> Exit:
    """Publish another text of a plan that is confirmed.

    Shows what it changes, and asks whether that shall be so; where nobody can be asked, it waits to be confirmed.
    Until then everything goes on by the text that holds. Tasks that have not begun or are paused may change or be
    struck out, and new boxes come at the end; what is at work or has ended stays as it is, and a text that touches
    it is refused, with the line. A later revision takes the place of one that waits.
    """
    if withdraw and yes:
        raise CommandFailed(Exit.USAGE, "--withdraw takes a revision back, and --yes confirms one; choose")
    if withdraw:
        from starter import deciding

        return deciding.decide("withdraw", plan, json=json)
    from pathlib import Path

    from starter.names import is_document, read_document

    if not is_document(plan):
        raise CommandFailed(Exit.USAGE, f"{plan!r} is no file; name the plan's Markdown file")
    file = Path(plan)
    text, spec = read_document(file)
    from starter import revising

    return revising.revise(file, text, spec, yes=yes, json=json)
