"""What a worker does before it takes up work: account for the dead, and end what they left behind."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import structlog
from sqlalchemy import Connection

from domain.duties import Actor
from domain.lifecycle import Move
from domain.run import EvidenceKind, RunEvent, RunFacts
from runtimes.crashes import DeadWorker, dead_workers, forget
from runtimes.folder import reap_orphans
from signing.keys import Signer, open_or_make
from store import keys, leases, workers
from store.database import Store
from store.evidence import Observation, record
from store.leases import runs_of_worker
from store.moves import move
from store.runs import Keeper
from store.tasks import load_run

log = structlog.get_logger("upkeep")


def account_for_the_dead(store: Store, home: Path, incarnation: int) -> None:
    """Record every worker of this host that died, with its last words, at each run that it looked after.

    A repeat finds the evidence recorded. A crash in the middle leaves the worker to be accounted for again.
    """
    for dead in dead_workers(home):
        with store.read() as connection:
            runs = [load_run(connection, run) for run in runs_of_worker(connection, dead.worker_id)]
        for run in runs:
            with store.write() as connection:
                _record(connection, dead, run, incarnation)
        with store.write() as connection:
            workers.worker_ended(connection, dead.worker_id, datetime.now(UTC), crashed=True)
        forget(home, dead.worker_id)
        log.warning("a worker had died", worker=dead.worker_id, runs=[run.id for run in runs])


def signer_of(store: Store, key: Path, use: str = keys.SEAL) -> Signer:
    """This worker's key for one use, with its public half in the graph before anything bears it.

    A repeat finds both.

    Raises Unauthorized for a key file that others may read, or that holds something else.
    """
    signer = open_or_make(key)
    with store.write() as connection:
        keys.keep_key(connection, signer.kid, signer.public, use, datetime.now(UTC))
    return signer


def sign_on(store: Store, keeper: Keeper) -> None:
    """Note in the graph that this worker runs. A repeat changes nothing."""
    with store.write() as connection:
        note = workers.Worker(keeper.worker, keeper.host, keeper.boot, os.getpid(), datetime.now(UTC))
        workers.worker_started(connection, note)


def sign_off(store: Store, keeper: Keeper) -> None:
    """Note that this worker ended in good order. One that dies is noted by whoever finds it."""
    with store.write() as connection:
        workers.worker_ended(connection, keeper.worker, datetime.now(UTC), crashed=False)


def take_over(store: Store, keeper: Keeper) -> None:
    """Renew the leases of this host's runs before anybody takes them for lost: whoever watches them is on its way.

    A repeat renews them once more. What nobody comes to watch lapses again, and is lost then.
    """
    with store.write() as connection:
        until = datetime.now(UTC) + keeper.lease
        leases.take_over_host(connection, keeper.host, keeper.worker, keeper.boot, until)


def end_orphans(home: Path) -> None:
    """End what is left of runs whose supervisor is gone; their ends are recorded by whoever watches them next."""
    for run in reap_orphans(home / "runs"):
        log.warning("ended what was left of a run", run=run)


def _record(connection: Connection, dead: DeadWorker, run: RunFacts, incarnation: int) -> None:
    now = datetime.now(UTC)
    cause = f"worker {dead.worker_id} died"
    seen = Observation(
        plan_id=run.plan_id,
        task_id=run.task_id,
        run_id=run.id,
        epoch=run.epoch,
        kind=EvidenceKind.WORKER_CRASH,
        content=dead.tail.encode(),
        seen_by=dead.worker_id,
    )
    key = f"worker_crashed:{run.id}:{dead.worker_id}"
    move(
        connection,
        Move("run", run.id, RunEvent.WORKER_CRASHED, key, run.plan_id, cause, now, by=Actor.WORKER),
        record(connection, seen, cause, now),
        incarnation=incarnation,
    )
