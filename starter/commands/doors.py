"""The doors: everything on one machine, or one process of it; and rehearsals, which need nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from starter.exits import CommandFailed, Exit
from starter.options import Document


def up(
    stand_in: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=PATH", help="Use a stand-in GitHub with a copy of PATH as NAME; may be repeated."),
    ] = None,
) -> Exit:
    """Run everything on this machine, until Ctrl-C.

    That is Temporal with its UI, a worker, the webhooks door and the relay. Processes that die are started again.
    GitHub's credentials come from WATCHBILL_GITHUB_* variables; with --stand-in no account is needed and
    nothing leaves this machine. A home that was begun with --stand-in keeps to it: without the option the
    same stand-in starts again.
    """
    sources = dict(map(_repository, stand_in or ()))
    from starter import doors

    return doors.up(sources)


def worker() -> Exit:
    """Run one worker here.

    It works on plans, in workspaces on this machine.
    """
    from starter import doors

    doors.become("worker")


def webhooks() -> Exit:
    """Run the door that GitHub's webhooks come to."""
    from starter import doors

    doors.become("webhooks")


def relay() -> Exit:
    """Run the relay: the one door that agents reach.

    Through it they call their model, read their brief, ask a person and give their result. Runs of the
    `shell` runtime need none.
    """
    from starter import doors

    doors.become("relay")


def rehearse(
    file: Document,
    repository: Annotated[
        Path,
        typer.Option(metavar="PATH", help="The git repository, or plain directory, to rehearse on a copy of."),
    ],
    owner: Annotated[str, typer.Option(metavar="OWNER", help="Whose plan it is.")] = "rehearsal",
    keep: Annotated[bool, typer.Option("--keep", help="Stay up after the plan's end, until Ctrl-C.")] = False,
    runtime: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Who works: claude, codex, opencode or shell; as the plan says when not given."
        ),
    ] = "",
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the report as a page into this file too; it stays."),
    ] = None,
) -> Exit:
    """Rehearse a plan on a copy of a repository.

    It is taken through stand-ins to merged pull requests. Nothing leaves this machine, and no account is
    needed: the plan is published, confirmed and watched to its end, and its report is printed. What would
    be merged by hand is merged by the rehearsal. A question ends it, unless --keep leaves time to answer.

    An agent's model is a stand-in as well: it has the agent run the script in a task's text with its own
    tools, and a reviewer the `review` block. The agent itself is the one that is installed here. In a rehearsal
    every agent is metered: a plan's `metering: off` is left out.
    """
    from domain.metering import Meter
    from starter.names import read_document, read_text

    text, spec = read_document(file)
    if runtime or spec.metering is Meter.OFF:
        from starter.casting import cast, metered

        text, spec = read_text(cast(metered(text), runtime) if runtime else metered(text), file)
    from starter import rehearsing

    return rehearsing.rehearse(file, text, spec, repository, owner, keep=keep, page=html)


def migrate() -> Exit:
    """Bring the store to this version's tables.

    Doors do so when they start; on more than one machine do it once, before the first start of a new
    version. A store that is up to date stays as it is.
    """
    from starter import doors

    return doors.migrate()


def rebuild() -> Exit:
    """Give the work graph to the Temporal at hand.

    For when Temporal's database is lost: plans are then started again from the graph's facts. Moves
    of the earlier Temporal are refused from then on. Start the worker afterwards.
    """
    from starter import doors

    return doors.rebuild()


def _repository(given: str) -> tuple[str, Path]:
    name, separator, path = given.partition("=")
    if not separator or not path or name.count("/") != 1:
        raise CommandFailed(Exit.USAGE, f"{given!r} is not of the form acme/shop=PATH")
    return name, Path(path)
