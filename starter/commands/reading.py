"""Reading the store: plans as Markdown, reports, costs, receipts, and the audit of all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from starter.exits import Exit
from starter.options import Json, Plan


def show(
    plan: Plan,
    write: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write it into this folder as SLUG.md instead; it may be committed."),
    ] = None,
    json: Json = False,
) -> Exit:
    """Print a plan as Markdown, made from the work graph alone.

    It is the text as it was published, with the state of each box: its pull request, its proof, its checks,
    what reviewers said of it, what it cost, and what it asks. The same graph makes the same bytes. With
    --write, a file that was edited since it was made is said, kept as SLUG.md.edited, and made anew: nothing
    reads it back. What is no projection of this plan is not written over.
    """
    from starter import showing

    return showing.show(plan, write, json=json)


def report(
    plan: Annotated[
        str,
        typer.Argument(metavar="PLAN", help="A plan's file, slug or id; all of yours that moved when not given."),
    ] = "",
    since: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            help="From when on: 12h, 2d, 2026-03-01, or 2026-03-01T18:30 in your days' time zone. All of a PLAN's "
            "time when not given, and 24h without one.",
        ),
    ] = "",
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it as a page into this file: one, that needs no other.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown also on a terminal.")] = False,
    json: Json = False,
) -> Exit:
    """Print the report of a plan, or of every plan that moved.

    It says what was asked, what landed with what proof, what was merged unproven, what failed, what waits for
    a person and what answers it, and what it cost: by task, role and model. Without a PLAN it tells of the last
    24 hours, and of everything that waits. The page has a timeline of all runs and a chart of the costs as well.
    """
    from starter.reporting import giving

    return giving.report(plan, since, html, markdown=markdown, json=json)


def costs(plan: Plan, json: Json = False) -> Exit:
    """Print what a plan has cost.

    By role and by model, and by task, run and model: what is spent, what is held, and what is left. Each of
    these adds up to the plan. Held is what calls that are under way may come to. What no relay answers for any
    more, and no usage is known of, counts in full. Of runs that are unmetered nobody knows what they cost; they
    are told, and in no sum. What their CLIs say of themselves is told as unverified, and is in none either.
    """
    from starter import costs as costs_

    return costs_.costs(plan, json=json)


def receipts(
    plan: Plan,
    after: Annotated[int, typer.Option(min=0, max=2**62, metavar="SEQ", help="Only those after this one.")] = 0,
    verify: Annotated[bool, typer.Option("--verify", help="Also compute every hash and link anew.")] = False,
    json: Json = False,
) -> Exit:
    """Print the receipts of a plan, one a line.

    They tell all that was done about it and by whom, and all that was refused. With --json each line is
    one receipt as it is kept; its `actor` is empty where it was made before receipts named one.
    """
    from starter import reading

    return reading.receipts(plan, after, verify=verify, json=json)


def audit(
    plan: Annotated[
        str,
        typer.Argument(metavar="PLAN", help="A plan's file, slug or id; the whole store when not given."),
    ] = "",
    seal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Check the seals in this text too: a pull request's body or a report from elsewhere; `-` reads stdin.",
        ),
    ] = None,
    json: Json = False,
) -> Exit:
    """Check the store against its receipts.

    Replays every receipt through the tables of lifecycles and duties, checks the chain of hashes, compares with
    the rows and with the content of all evidence, checks the seals, and holds every ceiling of the ledger beside
    what was taken from it. Names what does not add up, such as a row that was changed by hand; or says that
    everything agrees. A chain that was rewritten from end to end agrees with itself; it does not agree with the
    seals that stand in its pull requests, and `--seal` compares with those.
    """
    from starter import reading

    return reading.audit(plan, seal, json=json)
