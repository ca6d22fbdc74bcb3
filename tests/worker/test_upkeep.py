"""What a worker does first: the dead are accounted for at each run they looked after, once."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.run import RunState
from runtimes.crashes import dead_workers
from store.database import Store
from store.evidence import content, evidence_of
from store.leases import load_lease
from store.runs import Keeper
from tests.activities.conftest import KEEPER, Graph
from worker import upkeep

ROOT = Path(__file__).parents[2]


@pytest.fixture
def graph(sqlite_store: Store) -> Graph:
    graph = Graph(sqlite_store)
    graph.confirm()
    return graph


def died(home: Path, last_words: str, *, settled: bool = False) -> None:
    """A worker of KEEPER's name that was killed as it said this, or ended in good order."""
    program = f"""
        import os, sys
        from pathlib import Path
        from runtimes.crashes import WorkerLog
        log = WorkerLog(Path({str(home)!r}), {KEEPER.worker!r})
        log.redirect()
        print({last_words!r}, file=sys.stderr)
        if {settled}:
            log.close()
        os._exit(9)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=ROOT, stderr=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 9


def test_a_worker_that_died_is_evidence_at_the_run_it_looked_after(graph: Graph, home: Path) -> None:
    run = graph.begin()
    died(home, "MemoryError\n" + "x" * 100_000 + "\nlast words")
    for _ in range(2):
        upkeep.account_for_the_dead(graph.store, home, 1)
    with graph.store.read() as connection:
        (seen,) = evidence_of(connection, task_id=graph.task)
        kept = content(connection, seen.digest)
    assert (seen.kind, seen.run_id, seen.seen_by) == ("worker_crash", run.id, KEEPER.worker)
    assert kept.endswith(b"last words\n")
    assert len(kept) <= 64 * 1024
    # The worker is dead; its agent need not be.
    assert graph.run(run.id).state is RunState.STARTING
    assert dead_workers(home) == []


def test_a_worker_that_ended_in_good_order_leaves_no_evidence(graph: Graph, home: Path) -> None:
    graph.begin()
    died(home, "stopping", settled=True)
    upkeep.account_for_the_dead(graph.store, home, 1)
    with graph.store.read() as connection:
        assert evidence_of(connection, task_id=graph.task) == ()


def test_a_dead_worker_that_looked_after_nothing_is_forgotten(graph: Graph, home: Path) -> None:
    died(home, "out of memory")
    upkeep.account_for_the_dead(graph.store, home, 1)
    assert dead_workers(home) == []


def test_a_host_that_comes_back_takes_over_its_own_runs_and_no_others(graph: Graph) -> None:
    run = graph.begin()

    def lease() -> tuple[str, bool]:
        with graph.store.read() as connection:
            held = load_lease(connection, run.id)
        assert held is not None
        return held.worker, held.lease_until > datetime.now(UTC) + timedelta(minutes=5)

    stranger = Keeper("worker-9", "another-host", "boot-1", timedelta(minutes=10))
    upkeep.take_over(graph.store, stranger)
    assert lease() == (KEEPER.worker, False)
    successor = Keeper("worker-2", KEEPER.host, "boot-1", timedelta(minutes=10))
    upkeep.take_over(graph.store, successor)
    assert lease() == ("worker-2", True)


def test_there_may_be_nothing_to_do(graph: Graph, home: Path) -> None:
    upkeep.account_for_the_dead(graph.store, home, 1)
    upkeep.end_orphans(home)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"
