"""`make bench`: what Watchbill costs, mostly as ratios to the bare cost in the same run.

Times of a shared machine come and go; ratios and CPU time hold. Everything that is compared is
measured in turns on the same Temporal server, and medians are printed. Missed goals are said so; the
exit code is 0 all the same, unless with `--strict`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench import startup
from tests.bench.against import Bare, bare_worker
from tests.bench.agents import agents
from tests.bench.figures import Figure, Row, show
from tests.bench.gateway import find_litellm
from tests.bench.ledger import ledger
from tests.bench.plans import SLOTS, Installed, Spent, installed
from tests.bench.reading import reading
from tests.bench.relaying import relaying
from tests.bench.supervising import hook, supervision
from tests.bench.two_relays import two_relays


@dataclass(frozen=True)
class Size:
    """How much is measured: rounds of each kind, plans of three tasks at once, model calls, the most boxes."""

    commands: int
    singles: int
    crowds: int
    many: int
    few: int
    most: int
    ledgers: int
    calls: int
    boxes: int


FULL = Size(commands=7, singles=7, crowds=3, many=50, few=10, most=100, ledgers=3, calls=3200, boxes=200)
QUICK = Size(commands=3, singles=3, crowds=1, many=5, few=3, most=9, ledgers=1, calls=640, boxes=20)

BOXES = 3
SECONDS = 3.0
AGENT_ROUNDS = 5
ROOT = Path(__file__).parents[2]
CORES = os.cpu_count() or 1


async def bench(size: Size, folder: Path) -> list[Row]:
    """Every figure, in the order of the table."""
    startup.compile_bytecode()
    litellm = find_litellm(quick=size is QUICK)
    _tell("the ledger")
    spending = await asyncio.to_thread(ledger, folder, size.ledgers, SECONDS)
    _tell("commands and supervision")
    figures: list[Row] = list(startup.commands(folder, size.commands))
    _tell(f"reading a plan of {size.boxes} tasks")
    figures += reading(folder, size.boxes, size.commands)
    supervised = [*supervision(folder, size.commands), hook(folder, 5 * size.commands)]
    _tell("agents")
    sent = list(agents(folder, AGENT_ROUNDS, f"{ROOT / '.agents/node_modules/.bin'}:{os.environ['PATH']}"))
    _tell(f"the relay, {size.calls} calls a round")
    relayed = await relaying(folder, 3, size.calls, litellm=litellm)
    _tell("two relays over one PostgreSQL")
    relayed += await two_relays(folder, 3, size.calls)
    async with installed(folder) as up:
        _tell("status")
        figures.append(await startup.status(up, folder, size.commands))
        async with bare_worker(up) as bare:
            _tell(f"plans of one task, {size.singles} rounds")
            figures += await _singles(up, bare, size.singles)
            _tell(f"{size.many} plans of {BOXES} tasks, {size.crowds} rounds")
            figures += await _many(up, bare, size.many, size.crowds)
        _tell(f"{size.few} plans, then {size.most}")
        figures += await _growth(up, size.few, size.most)
    return figures + supervised + sent + spending + relayed


async def _singles(up: Installed, bare: Bare, rounds: int) -> list[Figure]:
    """One plan of one task at a time. The first round warms everything up and is not counted."""
    await bare.measure((await up.measure(1, 1)).cost)
    ours: list[Spent] = []
    theirs: list[tuple[float, float]] = []
    for _ in range(rounds):
        ours.append(await up.measure(1, 1))
        theirs.append(await bare.measure(ours[-1].cost))
    seconds, cpu = (median(each) for each in zip(*theirs, strict=True))
    mine = median(spent.seconds for spent in ours)
    _tell(f"  as bare work: {ours[-1].cost}")
    return [
        Figure("one task, confirm to merged / bare", "s", mine, seconds, most=4),
        Figure("one task, confirm to merged", "s", mine, most=2),
        Figure("one task, CPU of all processes / bare", "s", median(spent.cpu for spent in ours), cpu),
        Figure("one task, events in Temporal", "", median(spent.cost.events for spent in ours)),
        Figure("one task, git processes of the worker", "", median(spent.gits for spent in ours)),
    ]


async def _many(up: Installed, bare: Bare, plans: int, rounds: int) -> list[Figure]:
    ours: list[Spent] = []
    theirs: list[tuple[float, float]] = []
    for _ in range(rounds):
        ours.append(await up.measure(plans, BOXES))
        theirs.append(await bare.measure(ours[-1].cost))
    tasks = plans * BOXES
    seconds, cpu = (median(each) / tasks for each in zip(*theirs, strict=True))
    what = f"{plans} plans of {BOXES} tasks, a task"
    return [
        Figure(f"{what} / bare", "s", median(spent.seconds for spent in ours) / tasks, seconds, most=3),
        Figure(f"{what}, CPU of all processes / bare", "s", median(spent.cpu for spent in ours) / tasks, cpu),
    ]


async def _growth(up: Installed, few: int, most: int) -> list[Figure]:
    less = await up.measure(few, BOXES)
    more = await up.measure(most, BOXES)
    what = f"{most} plans / {few} plans, a task"
    return [
        Figure(what, "s", more.seconds / more.tasks, less.seconds / less.tasks, most=1.5),
        Figure(f"{what}: CPU", "s", more.cpu / more.tasks, less.cpu / less.tasks),
        Figure(f"{what}: SQL statements", "", more.statements / more.tasks, less.statements / less.tasks, most=1.1),
        Figure(f"{most} plans / {few} plans: the worker's memory", "MB", more.memory, less.memory, most=1.2),
    ]


def _tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _conditions(size: Size, load: float, seconds: float) -> dict[str, Any]:
    return {
        "machine": f"{CORES} cores, {platform.machine()}, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "rounds": {"commands": size.commands, "one task": size.singles, "many": size.crowds},
        "settings": "WATCHBILL_GITHUB_PAUSE=0 (no pacing of writes to the forge), WATCHBILL_CONFINE=off (what a cell "
        f"costs has a row of its own), WATCHBILL_SLOTS={SLOTS}",
        "relay": "`python -m relay`, all four ceilings, a move every 20 ms by another process; keep-alive connections",
        "plans": "an instant shell script and one instant check a task, merged when proven",
        "seconds": round(seconds),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a small run, for a first impression")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a goal was missed")
    given = parser.parse_args()
    size = QUICK if given.quick else FULL
    load, began = os.getloadavg()[0], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="watchbill-bench-", ignore_cleanup_errors=True) as folder:
        figures = asyncio.run(bench(size, Path(folder)))
    conditions = _conditions(size, load, time.monotonic() - began)
    if given.json:
        print(json.dumps({**conditions, "figures": [figure.as_json() for figure in figures]}, indent=2))
    else:
        show(figures)
        if max(conditions["load"]) > CORES:
            print("The machine was busy with other things: seconds say little here, ratios and CPU hold.")
        print()
        for name, value in conditions.items():
            print(f"{name}: {value}")
    return int(given.strict and any(figure.missed for figure in figures))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Temporal's client can abort in a late destructor; there is nothing left to do by then.
    os._exit(code)
