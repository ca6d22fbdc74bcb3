"""Arguments and options that several commands share.

Modules of commands import nothing heavy: `--help` reads all of them. What a command does is imported
when it is run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Document = Annotated[Path, typer.Argument(metavar="FILE", help="The plan's Markdown file.")]
Plan = Annotated[str, typer.Argument(metavar="PLAN", help="A plan's file, slug or id.")]
Task = Annotated[str, typer.Argument(metavar="TASK", help="A task: PLAN#2, or its id.")]
PlanOrTask = Annotated[
    str,
    typer.Argument(metavar="PLAN|TASK", help="A plan's file, slug or id; or a task, as PLAN#2 or its id."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
