"""Every activity that a workflow asks for is served, and on the queue where it is asked for."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from temporalio import activity
from temporalio.client import Client

from activities.dispatch import Dispatch
from activities.facts import Facts
from activities.landing import Landing
from activities.supervision import Supervision
from activities.workspaces import Workspaces
from signing.keys import open_or_make
from store.database import Store
from tests.activities.conftest import KEEPER
from tests.workflows.world import Script, ScriptedForge
from worker.settings import WorkerSettings
from worker.wiring import WORKFLOWS, Ports, host_worker, shared_worker

ROOT = Path(__file__).parents[2]
SHARED, HOST = (Dispatch, Facts, Landing), (Supervision, Workspaces)


def asked_for() -> set[str]:
    """`Class.method` of every activity that the workflows name."""
    rooms = {kind.__name__ for kind in (*SHARED, *HOST)}
    trees = [ast.parse(path.read_text()) for path in (ROOT / "workflows").glob("*.py")]
    return {
        f"{node.value.id}.{node.attr}"
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in rooms
    }


def names(*kinds: type) -> dict[str, str]:
    """The activities of these classes, by name."""
    return {
        name: f"{kind.__name__}.{name}"
        for kind in kinds
        for name, method in vars(kind).items()
        if activity._Definition.from_callable(method) is not None
    }


async def test_every_activity_that_is_asked_for_is_served_where_it_belongs(
    temporal_client: Client, sqlite_store: Store, tmp_path: Path
) -> None:
    signer = open_or_make(tmp_path / "seal.pem")
    ports = Ports(temporal_client, sqlite_store, ScriptedForge(Script()), KEEPER, 1, signer, signer)
    settings = WorkerSettings(home=tmp_path)
    with ThreadPoolExecutor(64) as threads:
        shared = shared_worker(ports, settings, threads)
        host = host_worker(ports, settings, threads)
    served = {
        kind: {activity._Definition.must_from_callable(one).name for one in worker.config()["activities"]}
        for kind, worker in (("shared", shared), ("host", host))
    }
    assert served["shared"] == set(names(*SHARED))
    assert served["host"] == set(names(*HOST))
    assert asked_for() == set(names(*SHARED).values()) | set(names(*HOST).values())
    assert [workflow.__name__ for workflow in WORKFLOWS] == [
        workflow.__name__ for workflow in shared.config()["workflows"]
    ]


def test_every_activity_says_what_a_repeat_does() -> None:
    silent = [
        name
        for kind in (*SHARED, *HOST)
        for name, method in vars(kind).items()
        if activity._Definition.from_callable(method) is not None
        and not any(word in (method.__doc__ or "") for word in ("repeat", "Repeated", "A read", "again", "once"))
    ]
    assert silent == []


def test_no_activity_is_broken_off_in_the_middle_of_a_transaction() -> None:
    # Seen with fifty plans at once: the store's lock stayed taken, and every later move waited for it.
    found = (activity._Definition.from_callable(one) for kind in (*SHARED, *HOST) for one in vars(kind).values())
    in_threads = [one for one in found if one is not None and not one.is_async]
    assert in_threads
    assert [one.name for one in in_threads if not one.no_thread_cancel_exception] == []
