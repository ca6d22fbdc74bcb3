"""The installation that is measured, and what plans cost in it from their confirmation to their end."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from temporalio.client import Client

from domain.decision import Decision, DecisionKind, Outcome
from domain.document import parse
from domain.identity import plan_id, plan_workflow_id, task_id, task_workflow_id
from domain.publication import Publish
from starter.client import Temporal
from starter.graph import view_of
from starter.installing import RELAY, WEBHOOKS
from starter.local.installation import Installation, Local
from starter.settings import Settings, load
from starter.sources import copy_of
from starter.standin import stand_in
from tests.bench.counted_worker import read_counts
from tests.bench.histories import AT_ONCE, Cost, cost_of
from tests.bench.processes import cpu_of, memory_of

T = TypeVar("T")

OWNER = "bench"
REPOSITORY = "bench/shop"
SLOTS = 8
"""Tasks under way at once, for two cores."""

TOLD = {"WATCHBILL_GITHUB_PAUSE": "0", "WATCHBILL_SLOTS": str(SLOTS), "WATCHBILL_CONFINE": "off"}

_COUNTED_WORKER = (sys.executable, "-P", str(Path(__file__).with_name("counted_worker.py")))
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Spent:
    """What a number of tasks took. `seconds` are from the first confirmation to the last plan's end.

    `cpu` is everybody's: server, worker, stand-in, webhooks door and what they started, up to the end
    of the tasks' workflows, which clear away after the plan has ended.
    """

    tasks: int
    seconds: float
    cpu: float
    statements: int
    gits: int
    memory: float
    """MB that the worker has held at most, since its start."""
    cost: Cost


@dataclass(frozen=True)
class Installed:
    """An installation that is up, in which plans can be measured."""

    local: Local
    settings: Settings
    temporal: Temporal
    counts: Path

    @property
    def client(self) -> Client:
        return self.temporal.client

    def server_cpu(self) -> float:
        """The seconds of CPU that the Temporal server has used."""
        return cpu_of([self._pid("temporal")])

    def cpu(self) -> float:
        """The seconds of CPU that everything here has used, with what it started and waited for."""
        return cpu_of(pid for pid in self.local.pids.values() if pid is not None)

    async def measure(self, plans: int, boxes: int) -> Spent:
        """Publish so many plans, then confirm them all and wait until every box is merged."""
        names = [f"measured-{next(_numbers)}" for _ in range(plans)]
        digests = dict(zip(names, await at_once(self._publish(name, boxes) for name in names), strict=True))
        since, began, cpu = datetime.now(UTC), time.perf_counter(), self.cpu()
        statements, gits = read_counts(self.counts)
        await at_once(self._confirm(name, digest) for name, digest in digests.items())
        ids = [plan_id(OWNER, name) for name in names]
        await self._ended(plan_workflow_id(each) for each in ids)
        seconds = time.perf_counter() - began
        await self._ended(task_workflow_id(task_id(each, box + 1)) for each in ids for box in range(boxes))
        spent = self.cpu() - cpu
        now = read_counts(self.counts)
        for each in ids:
            self._require_merged(each)
        return Spent(
            tasks=plans * boxes,
            seconds=seconds,
            cpu=spent,
            statements=now[0] - statements,
            gits=now[1] - gits,
            memory=memory_of(self._pid("worker")),
            cost=await cost_of(self.client, OWNER, ids, boxes, since),
        )

    async def publish(self, name: str, boxes: int) -> None:
        """Publish a plan that nobody confirms."""
        await self._publish(name, boxes)

    async def _publish(self, name: str, boxes: int) -> str:
        text = document(name, boxes)
        publication = Publish(OWNER, text, REPOSITORY, "main", f"{name}.md", OWNER)
        reply = await self.temporal.publish(plan_id(OWNER, name), publication)
        assert reply.outcome is Outcome.DONE, reply.message
        return parse(text, file_name=f"{name}.md").digest

    async def _confirm(self, name: str, digest: str) -> None:
        decision = Decision(DecisionKind.CONFIRM, plan_id(OWNER, name), names=digest, by=OWNER)
        reply = await self.temporal.decide(decision, OWNER)
        # Where the store is slow to take it, the move is tried again and finds itself made.
        assert reply.outcome in (Outcome.DONE, Outcome.ALREADY), reply.message

    async def _ended(self, workflows: Iterable[str]) -> None:
        await asyncio.gather(*(self.client.get_workflow_handle(each).result() for each in workflows))

    def _require_merged(self, plan: str) -> None:
        view = view_of(self.settings, plan)
        states = [task.state for task in view.tasks] if view else []
        assert set(states) == {"merged"}, f"{plan} did not end as it should: {states}"

    def _pid(self, name: str) -> int:
        pid = self.local.pids[name]
        assert pid is not None, f"{name} is down"
        return pid


@asynccontextmanager
async def installed(folder: Path) -> AsyncIterator[Installed]:
    """An installation of the product's own parts in this folder, with a stand-in GitHub; all of it ends after."""
    home, source = folder / "home", folder / "shop"
    source.mkdir()
    (source / "README.md").write_text("# A shop\n")
    home.mkdir()
    copied = await asyncio.to_thread(copy_of, source, home / "source.git")
    counts = folder / "counts"
    inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environment = {**inherited, **TOLD, "WATCHBILL_BENCH_COUNTS": str(counts)}
    installation = Installation(
        home=home,
        owner=OWNER,
        github=replace(stand_in(home, {REPOSITORY: copied}), port=0),
        environment=environment,
        temporal_port=0,
        ui_port=0,
        webhooks_port=0,
        relay_port=0,
        worker=_COUNTED_WORKER,
        webhooks=WEBHOOKS,
        relay=RELAY,
    )
    async with Local(installation, print) as local:
        settings = load({**environment, "WATCHBILL_HOME": str(home), "WATCHBILL_OWNER": OWNER})
        yield Installed(local, settings, await Temporal.connect(settings), counts)


def document(name: str, boxes: int) -> str:
    """A plan whose boxes are instant scripts, each in a file of its own, with one instant check.

    A script removes the files of those before it: otherwise every workspace would be larger than the last, and a
    plan would be the slower the more were measured before it.
    """
    front = ("---", f"title: {name}", f"slug: {name}", f"repository: {REPOSITORY}", "base: main")
    settings = ("runtime: shell", f"concurrency: {boxes}", 'checks: ["true"]', "merge: when-proven", "---")
    lines = [*front, *settings, "", "## Tasks", ""]
    for box in range(1, boxes + 1):
        script = ("rm -f ./*.txt", f"echo {name}, box {box} > {name}-{box}.txt")
        lines += [f"- [ ] Write file {box}", "", "  ```sh", *(f"  {line}" for line in script), "  ```", ""]
    return "\n".join(lines)


async def at_once(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Await all of these, as many at a time as a development server bears."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(call: Awaitable[T]) -> T:
        async with gate:
            return await call

    return await asyncio.gather(*map(one, calls))
