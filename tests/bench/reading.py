"""What it costs to read a large plan: its brief, its status, its report. The plan is made by real moves, in a store."""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from statistics import median

from domain.brief import render
from domain.identity import run_id
from domain.rules import NOTHING_REFUSED
from store.briefing import facts_of
from store.database import Store, migrate, open_store
from store.tasks import load_run, load_task
from tests.bench.figures import Figure
from tests.bench.processes import cpu_of_command
from tests.store.crowd import AT, Crowd

WATCHBILL = str(Path(sys.executable).with_name("watchbill"))

ROUNDS = 5
"""Of each box, with a run of its author and one of a check: ten runs."""

OTHERS = 20
"""Plans of the same owner, which cost nothing."""

MOST_SECONDS = 1.0


def reading(folder: Path, boxes: int, rounds: int) -> list[Figure]:
    """The CPU of each, of the whole process where it is a command."""
    url = f"sqlite:///{folder / 'read.db'}"
    migrate(url)
    store = open_store(url)
    crowd = Crowd(tasks=boxes, rounds=ROUNDS).make(store)
    for number in range(OTHERS):
        Crowd(f"other-{number}", tasks=3, rounds=1).make(store)
    brief = median(_brief(store, crowd) for _ in range(rounds))
    store.close()
    # Nobody answers there, so that the store is asked: a workflow keeps no plan of this size ready.
    told = {"WATCHBILL_STORE_URL": url, "WATCHBILL_OWNER": crowd.owner, "WATCHBILL_TEMPORAL_ADDRESS": "127.0.0.1:9"}
    environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environment |= told | {"WATCHBILL_HOME": str(folder / "reader")}

    def cpu(*arguments: str) -> float:
        command = (WATCHBILL, *arguments)
        return median(cpu_of_command(command, environment, folder) for _ in range(rounds))

    what = f"{boxes} tasks, {boxes * ROUNDS * 2} runs"
    page = str(folder / "page.html")
    return [
        Figure(f"a brief, {what}, CPU", "s", brief, most=MOST_SECONDS),
        Figure(f"watchbill status from the store, {what}, CPU", "s", cpu("status", crowd.slug), most=MOST_SECONDS),
        Figure(f"watchbill report, {what}, CPU", "s", cpu("report", crowd.slug), most=MOST_SECONDS),
        Figure(f"watchbill report --html, {what}, CPU", "s", cpu("report", crowd.slug, "--html", page)),
        Figure(f"watchbill show, {what}, CPU", "s", cpu("show", crowd.slug)),
    ]


def _brief(store: Store, crowd: Crowd) -> float:
    """As it is rendered before a run."""
    began = time.process_time()
    with store.read() as connection:
        task = load_task(connection, crowd.task(1), AT + timedelta(days=1))
        run = load_run(connection, run_id(crowd.task(1), "author", ROUNDS))
        text = render(facts_of(connection, run, task, note="", policy=NOTHING_REFUSED))
    taken = time.process_time() - began
    assert task.title in text, "what was measured is no brief of this task"
    return taken
