"""What short commands cost: the CPU of their process, with bytecode compiled beforehand."""

from __future__ import annotations

import compileall
import os
import sys
from pathlib import Path
from statistics import median

from domain.identity import plan_id, plan_workflow_id
from tests.bench.figures import Figure
from tests.bench.plans import OWNER, Installed, document
from tests.bench.processes import cpu_of_command

ROOT = Path(__file__).parents[2]
WATCHBILL = str(Path(sys.executable).with_name("watchbill"))

MOST_SECONDS = 0.35
MOST_TIMES_BARE = 1.4

_LOOKED_AT = "looked-at"

_BARE_STATUS = """
import asyncio, os, sys
from temporalio.client import Client

async def main():
    client = await Client.connect(sys.argv[1])
    print(await client.get_workflow_handle(sys.argv[2]).query("view"))

asyncio.run(main())
sys.stdout.flush()
os._exit(0)
"""
"""Without a data converter of its own: what it decodes, it prints as it comes."""


def compile_bytecode() -> None:
    """Compile what the commands import, as an installation does; what is compiled already stays."""
    for room in ("starter", "domain", "store", "activities", "forge", "telemetry"):
        compileall.compile_dir(ROOT / room, quiet=1)


def commands(folder: Path, rounds: int) -> list[Figure]:
    """`--version`, `--help` and `check`, which need no server."""
    plan = folder / "plan.md"
    plan.write_text(document("twenty-tasks", 20))
    wanted = {
        "watchbill --version": ("--version",),
        "watchbill --help": ("--help",),
        "watchbill check, 20 tasks": ("check", str(plan)),
    }
    return [
        Figure(f"{what}, CPU", "s", _median((WATCHBILL, *arguments), folder, rounds), most=MOST_SECONDS)
        for what, arguments in wanted.items()
    ]


async def status(up: Installed, folder: Path, rounds: int) -> Figure:
    """`status PLAN` against a bare script that connects and asks the same question."""
    await up.publish(_LOOKED_AT, 3)
    script = folder / "bare_status.py"
    script.write_text(_BARE_STATUS)
    bare = (sys.executable, str(script), up.local.addresses.temporal, plan_workflow_id(plan_id(OWNER, _LOOKED_AT)))
    told = {"WATCHBILL_HOME": str(up.settings.home), "WATCHBILL_OWNER": OWNER}
    ours = (WATCHBILL, "status", _LOOKED_AT)
    # In turns, so that whatever else the machine does falls on both.
    pairs = [
        (cpu_of_command(ours, _environment() | told, folder), cpu_of_command(bare, _environment(), folder))
        for _ in range(rounds)
    ]
    mine, theirs = (median(each) for each in zip(*pairs, strict=True))
    return Figure("watchbill status PLAN / bare query, CPU", "s", mine, theirs, MOST_TIMES_BARE)


def _median(command: tuple[str, ...], folder: Path, rounds: int) -> float:
    return median(cpu_of_command(command, _environment(), folder) for _ in range(rounds))


def _environment() -> dict[str, str]:
    """Nothing of what this process was told; PYTHONDONTWRITEBYTECODE least of all."""
    return {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
