"""Reading the store: the report of a plan, its receipts, and the audit of all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from starter.exits import Exit
from starter.options import Json, Plan


def report(
    plan: Plan,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown also on a terminal.")] = False,
    json: Json = False,
) -> Exit:
    """Print the report of a plan.

    It says what was asked, what landed with what proof, what was merged unproven, and what waits.
    """
    from starter import reading

    return reading.report(plan, markdown=markdown, json=json)


def costs(plan: Plan, json: Json = False) -> Exit:
    """Print what a plan has cost.

    By task, run and model: what is spent, what is held, and what is left. Held is what calls that are under
    way may come to. What no relay answers for any more, and no usage is known of, counts in full. Of runs that
    are unmetered nobody knows what they cost; they are told, and in no sum.
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

    They tell all that was done about it, and all that was refused. With --json each line is one receipt
    as it is kept.
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

    Replays every receipt through the lifecycles, checks the chain of hashes, compares with the rows, and
    holds every ceiling of the ledger beside what was taken from it. Names what does not add up, such as a
    row that was changed by hand; or says that everything agrees. A chain that was rewritten from end to end
    agrees with itself; it does not agree with the seals that stand in its pull requests, and `--seal`
    compares with those.
    """
    from starter import reading

    return reading.audit(plan, seal, json=json)
