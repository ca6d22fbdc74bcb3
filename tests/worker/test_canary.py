"""A token that is used for everything is found nowhere: no history, row, log, argument, environment or file."""

from __future__ import annotations

import asyncio
import base64
import io
import logging
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import structlog
from temporalio.client import Client

from domain.decision import Decision, DecisionKind
from domain.identity import digest, plan_id
from domain.publication import Publish
from forge.github import GitHub
from forge.github_api import GitHubApi
from forge.github_auth import PersonalToken
from rehearsal.server import Rehearsal
from starter.client import Temporal
from store.database import open_store
from store.runs import Keeper
from store.views import plan_view
from telemetry.logs import configure
from tests.rehearsal_fixture import rehearsal
from tests.workflows.stage import namespace
from worker.incarnation import incarnation
from worker.settings import WorkerSettings
from worker.upkeep import signer_of
from worker.wiring import Ports, host_worker, shared_worker

__all__ = ["rehearsal"]

SPIES = """
env
cat /proc/$PPID/environ /proc/$PPID/cmdline | tr '\\0' '\\n'
cat .git/config
mkdir -p src && echo done > src/made.txt
""".strip()

DOCUMENT = f"""---
slug: canary
repository: acme/shop
checks: ["env; cat .git/config; test -e src/made.txt"]
merge: when-proven
---
# A plan that looks around

## Tasks

- [ ] Look around

  ```sh
{chr(10).join(f"  {line}" for line in SPIES.splitlines())}
  ```
"""


@contextmanager
def logged() -> Iterator[io.StringIO]:
    """Everything that is logged by anybody, as the doors log it."""
    errors, before, root = io.StringIO(), sys.stderr, logging.getLogger()
    handlers, level = root.handlers[:], root.level
    sys.stderr = errors
    configure()
    root.setLevel(logging.DEBUG)
    try:
        yield errors
    finally:
        sys.stderr = before
        root.handlers[:], root.level = handlers, level
        structlog.reset_defaults()


@contextmanager
def command_lines() -> Iterator[set[bytes]]:
    """The command lines of every process that was seen meanwhile."""
    seen: set[bytes] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.002):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    seen.add((process / "cmdline").read_bytes())
                except OSError:
                    continue

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield seen
    finally:
        over.set()
        watching.join()


async def test_a_token_is_seen_nowhere(
    temporal_address: str, rehearsal: Rehearsal, tmp_path: Path, migrated_file: Path
) -> None:
    rehearsal.scene.repository("acme/shop", files={"README.md": "shop\n"})
    token = rehearsal.scene.personal_token("acme")
    # Errors tell most: the forge fails, the connection breaks, and git is turned away once.
    rehearsal.scene.fault("error-before", "POST", "*/pulls")
    rehearsal.scene.fault("lost-after", "PUT", "*/merge")
    rehearsal.scene.fault("error-before", "*", "*git-receive-pack*", status=403)
    home = tmp_path / "home"
    home.mkdir()
    shutil.copyfile(migrated_file, home / "graph.db")
    settings = WorkerSettings(home=home, interval=1, github_api=rehearsal.url)
    store = open_store(settings.store)
    with logged() as log, command_lines() as seen, ThreadPoolExecutor(64) as threads:
        client = await namespace(temporal_address)
        api = GitHubApi(settings.github_api, seconds_between_writes=0)
        forge = GitHub(api, PersonalToken(api, token))
        keeper = Keeper("worker-1", "canary", "boot-1", timedelta(minutes=2))
        signer = signer_of(store, settings.seal_key)
        ports = Ports(client, store, forge, keeper, await incarnation(client, store), signer, signer)
        async with shared_worker(ports, settings, threads), host_worker(ports, settings, threads):
            plan = await to_the_end(Temporal(client, temporal_address))
        await api.close()
    with store.read() as connection:
        (task,) = plan_view(connection, plan).tasks
    store.close()
    assert task.state == "merged"
    histories = b"".join([one async for one in every_history(client)])
    files = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert b"WATCHBILL_TASK" in b"".join(files.values())
    assert any(b"git" in line for line in seen)
    assert b"canary" in histories
    assert "canary" in log.getvalue()
    for secret in (token.encode(), base64.b64encode(f"x-access-token:{token}".encode())):
        assert secret not in histories
        assert secret.decode() not in log.getvalue()
        assert [line for line in seen if secret in line] == []
        assert [path for path, held in files.items() if secret in held] == []


async def to_the_end(temporal: Temporal) -> str:
    """Publish, confirm, resume where a person is asked, until the plan has ended; its id."""
    plan = plan_id("ada", "canary")
    await temporal.publish(plan, Publish("ada", DOCUMENT, "acme/shop"))
    await temporal.decide(Decision(DecisionKind.CONFIRM, plan, names=digest(DOCUMENT), by="ada"), "ada")
    async with asyncio.timeout(90):
        while True:
            view = await temporal.view(plan)
            if view is not None and view.ended:
                return plan
            for task in view.tasks if view is not None else ():
                if task.question_id:
                    resume = Decision(DecisionKind.RESUME, plan, task.ordinal, task.question_id, by="ada")
                    await temporal.decide(resume, "ada")
            await asyncio.sleep(0.1)


async def every_history(client: Client) -> AsyncIterator[bytes]:
    """Every event of every workflow, with its payloads as they are kept."""
    async for execution in client.list_workflows():
        history = await client.get_workflow_handle(execution.id, run_id=execution.run_id).fetch_history()
        for event in history.events:
            yield event.SerializeToString()
