"""A stage for Watchbill's workflows: a real Temporal, a real store, and a scripted world around them.

Each stage has a Temporal namespace and a store of its own; tests that share one keep apart by their owners.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import select, update
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus, WorkflowHandle
from temporalio.plugin import SimplePlugin
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Replayer, Worker

from activities.dispatch import Dispatch
from domain.decision import Decision, DecisionKind, Reply
from domain.document import parse
from domain.heartbeat import HeartbeatPolicy
from domain.identity import branch_of, digest, host_queue, plan_id, plan_workflow_id, task_id, task_workflow_id
from domain.lifecycle import Move, Receipt
from domain.publication import Beat, Publish, PublishTo, Word
from domain.pull import Repository
from domain.task import TaskFacts, TaskState
from domain.view import PlanView
from starter.client import Temporal
from store.audit import audit
from store.database import Store, open_store
from store.decisions import decide
from store.dispatch import beat
from store.inbox import Delivery, receive
from store.moves import move
from store.publication import publish
from store.receipts import receipts_of
from store.runs import Keeper
from store.tables import leases, plans
from store.tasks import load_task
from store.views import plan_view
from store.workers import incarnation_of
from tests.rightful import rightful
from tests.workflows.world import Script, ScriptedForge, ScriptedHost
from worker import standing
from worker.incarnation import namespace_id
from worker.plugin import watchbill_plugin
from worker.settings import WorkerSettings
from worker.upkeep import signer_of
from worker.wiring import WORKFLOWS, Ports, shared_worker

HOST = "host-a"
PATIENCE = 60.0
"""Seconds until a test gives up on what should come; far above what anything here takes."""

RUNNING = WorkflowExecutionStatus.RUNNING

_numbers = itertools.count(1)


async def namespace(address: str, plugin: SimplePlugin | None = None) -> Client:
    """A client in a new namespace, where everything stands that a worker's start puts there; sweeps are rare."""
    name = f"stage-{next(_numbers)}"
    first = await Client.connect(address)
    request = RegisterNamespaceRequest(namespace=name)
    request.workflow_execution_retention_period.FromTimedelta(timedelta(days=1))
    await first.workflow_service.register_namespace(request)
    client = await Client.connect(address, namespace=name, plugins=[plugin or watchbill_plugin()])
    # A new namespace, and then its search attributes, are known to all of the server a moment later.
    await _once_known(lambda: standing.prepare(client, HeartbeatPolicy(interval=3600)), RPCStatusCode.NOT_FOUND)
    await _once_known(lambda: client.count_workflows("WatchbillOwner = 'nobody'"), RPCStatusCode.INVALID_ARGUMENT)
    return client


async def _once_known(call: Callable[[], Awaitable[Any]], unknown: RPCStatusCode) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await call()
                return
            except RPCError as error:
                if error.status is not unknown:
                    raise
            await asyncio.sleep(0.05)


def document(slug: str, *boxes: str, **front: Any) -> str:
    """A plan whose boxes say `title {attributes}`; `front` overrides what its front matter has, "" leaves it out."""
    values = {
        "slug": slug,
        "repository": "acme/shop",
        "concurrency": 4,
        "merge": "when-proven",
        "checks": '["true"]',
    }
    head = "\n".join(f"{key}: {value}" for key, value in {**values, **front}.items() if value)
    tasks = "\n".join(f"- [ ] {box}\n\n  ```sh\n  true\n  ```\n" for box in boxes or ("Do it",))
    return f"---\n{head}\n---\n# A plan\n\n## Tasks\n\n{tasks}"


@dataclass
class Plan:
    """A plan on a stage, and what a test does to it."""

    stage: Stage
    owner: str
    slug: str
    text: str

    @property
    def id(self) -> str:
        return plan_id(self.owner, self.slug)

    @property
    def handle(self) -> WorkflowHandle[Any, Any]:
        return self.stage.client.get_workflow_handle(plan_workflow_id(self.id))

    def task(self, ordinal: int = 1) -> str:
        return task_id(self.id, ordinal)

    def task_handle(self, ordinal: int = 1) -> WorkflowHandle[Any, Any]:
        return self.stage.client.get_workflow_handle(task_workflow_id(self.task(ordinal)))

    def run(self, number: int = 1, *, role: str = "author", ordinal: int = 1) -> str:
        return f"{self.task(ordinal)}-{role}-{number}"

    def publication(self, text: str = "") -> Publish:
        return Publish(self.owner, text or self.text, "acme/shop", by=self.owner)

    async def publish(self, text: str = "") -> Reply:
        return await self.stage.temporal.publish(self.id, self.publication(text))

    def text_digest(self) -> str:
        view = self.view()
        assert view is not None
        return view.digest

    async def confirm(self) -> Reply:
        decision = Decision(DecisionKind.CONFIRM, self.id, names=self.text_digest(), by=self.owner)
        return await self.stage.temporal.decide(decision, self.owner)

    def enter(self) -> Plan:
        """Publish and confirm in the graph alone, and begin: as if Temporal had been lost since."""
        order = PublishTo(self.publication(), Repository("acme/shop", "main", ""), "main", datetime.now(UTC))
        decision = Decision(DecisionKind.CONFIRM, self.id, names=digest(self.text), by=self.owner)
        with self.stage.store.write() as connection:
            publish(connection, order, parse(self.text), 1)
        with self.stage.store.write() as connection:
            decide(connection, decision, datetime.now(UTC), 1)
        beat(self.stage.store, Beat(self.owner, datetime.now(UTC)), self.stage.settings.policy, 1)
        return self

    async def begin(self) -> Plan:
        """Publish and confirm."""
        await self.publish()
        await self.confirm()
        return self

    async def decide(self, kind: str, ordinal: int | None = None, names: str = "", text: str = "") -> Reply:
        decision = Decision(DecisionKind(kind), self.id, ordinal, names, text, self.owner)
        return await self.stage.temporal.decide(decision, self.owner)

    async def signal(self, kind: str, ordinal: int | None = None, names: str = "", text: str = "") -> None:
        await self.handle.signal(kind, Word(ordinal, names, text, self.owner))

    def tell(self, step: str, *outcomes: Any, ordinal: int = 1) -> None:
        self.stage.script.tell(self.task(ordinal), step, *outcomes)

    def facts(self, ordinal: int = 1) -> TaskFacts:
        with self.stage.store.read() as connection:
            return load_task(connection, self.task(ordinal), datetime.now(UTC))

    def started(self, ordinal: int = 1) -> dict[str, int]:
        """How often a process was started for each run of the task, by role and number."""
        own = f"{self.task(ordinal)}-"
        started = self.stage.host.started.items()
        return {run.removeprefix(own): count for run, count in started if run.startswith(own)}

    async def until_started(self, number: int = 1, *, role: str = "author", ordinal: int = 1) -> None:
        run = self.run(number, role=role, ordinal=ordinal)
        await self.stage.until(lambda: run in self.stage.host.living, lambda: f"{run} was never started")

    def view(self) -> PlanView | None:
        with self.stage.store.read() as connection:
            return plan_view(connection, self.id)

    def state(self) -> str:
        with self.stage.store.read() as connection:
            return str(connection.scalar(select(plans.c.state).where(plans.c.id == self.id)))

    def receipts(self, kind: str = "", event: str = "") -> list[Receipt]:
        with self.stage.store.read() as connection:
            every = receipts_of(connection, self.id, limit=10_000)
        return [one for one in every if kind in ("", one.kind) and event in ("", one.event)]

    def events(self, ordinal: int = 1) -> list[str]:
        """What happened to a task, in order, refusals left out."""
        mine = self.task(ordinal)
        return [one.event for one in self.receipts("task") if one.subject == mine and not one.refused]

    async def until(self, state: TaskState | str, ordinal: int = 1) -> TaskFacts:
        """The task's facts once it is in this state."""
        task_has_it = lambda: self.facts(ordinal).state == state  # noqa: E731  # read twice, said once
        await self.stage.until(task_has_it, lambda: f"{self.events(ordinal)} never came to {state}")
        return self.facts(ordinal)

    async def until_over(self, state: str = "completed") -> None:
        """Until the plan has ended, and nothing of it goes on in Temporal."""
        await self.stage.until(lambda: self.state() == state, lambda: f"{self.state()} is not {state}")
        await self.stage.until_quiet(self)

    async def hint(self, ordinal: int = 1, *, nudge: bool = True, event: str = "pull_request") -> str:
        """A delivery about the task's pull request, as the webhooks' door handles it; its id."""
        task, name = self.task(ordinal), f"delivery-{next(_numbers)}"
        number = self.facts(ordinal).pull_number
        with self.stage.store.write() as connection:
            receive(
                connection,
                Delivery(
                    delivery=name, source="github", event=event, payload="{}", received_at=datetime.now(UTC),
                    repository="Acme/Shop", branch=branch_of(task), pull_number=number, task_id=task,
                ),
            )  # fmt: skip
        if nudge:
            await self.stage.nudge(self.owner)
        return name

    def move(self, event: str, facts: dict[str, Any], key: str = "", ordinal: int = 1) -> None:
        """A move of a task that none of the workflows here made."""
        wish = Move(
            "task", self.task(ordinal), event, key or f"a test's {event}", self.id, "a test", datetime.now(UTC), facts,
            by=rightful("task", event),
        )  # fmt: skip
        with self.stage.store.write() as connection:
            assert not move(connection, wish)[0].refused

    def lapse(self, run: str) -> None:
        """Let the run's lease have run out a day ago."""
        long_ago = datetime.now(UTC) - timedelta(days=1)
        with self.stage.store.write() as connection:
            connection.execute(update(leases).where(leases.c.run_id == run).values(lease_until=long_ago))


@dataclass
class Stage:
    client: Client
    store: Store
    script: Script
    forge: ScriptedForge
    host: ScriptedHost
    settings: WorkerSettings
    temporal: Temporal = field(init=False)
    _present: Worker | None = None

    def __post_init__(self) -> None:
        self.temporal = Temporal(self.client, "the test's Temporal")

    def plan(self, *boxes: str, owner: str = "", slug: str = "a-plan", **front: Any) -> Plan:
        return Plan(self, owner or f"owner-{next(_numbers)}", slug, document(slug, *boxes, **front))

    async def host_comes(self) -> None:
        """The host's worker begins to poll the host's queue."""
        self._present = Worker(
            self.client,
            task_queue=host_queue(HOST),
            activities=self.host.activities(),
            max_heartbeat_throttle_interval=timedelta(milliseconds=100),
            default_heartbeat_throttle_interval=timedelta(milliseconds=100),
        )
        await self._present.__aenter__()

    async def host_leaves(self) -> None:
        """The host's worker stops; its processes go on, as their supervisors would let them."""
        if self._present is not None:
            await self._present.__aexit__(None, None, None)
        self._present = None

    async def nudge(self, owner: str) -> None:
        await Dispatch(self.client).ensure_heartbeat(owner)

    async def until(self, holds: Callable[[], bool], otherwise: Callable[[], str] = lambda: "") -> None:
        pause = 0.02
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds():
                    await asyncio.sleep(pause)
                    pause = min(0.2, pause * 1.3)
        except TimeoutError:
            raise AssertionError(otherwise() or "what should come did not come") from None

    async def until_quiet(self, plan: Plan) -> None:
        """Until no workflow of this plan runs any more."""
        view = plan.view()
        tasks = [task.id for task in view.tasks if task.id] if view else []
        for workflow_id in [plan_workflow_id(plan.id), *map(task_workflow_id, tasks)]:
            await self.until_closed(workflow_id)

    async def until_closed(self, workflow_id: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while await self.running(workflow_id):
                await asyncio.sleep(0.05)

    async def until_running(self, workflow_id: str, other_than: str | None = None) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                described = await self._described(workflow_id)
                if described and described.status is RUNNING and described.run_id != other_than:
                    return
                await asyncio.sleep(0.05)

    async def until_attempt(self, handle: WorkflowHandle[Any, Any], number: int) -> None:
        """Until the workflow waits for this attempt at an activity."""
        async with asyncio.timeout(PATIENCE):
            while True:
                pending = (await handle.describe()).raw_description.pending_activities
                if any(one.attempt >= number for one in pending):
                    return
                await asyncio.sleep(0.05)

    async def until_events(self, workflow_id: str, field: str, count: int) -> None:
        """Until the workflow's history has so many events with these attributes."""
        async with asyncio.timeout(PATIENCE):
            while await self._events(workflow_id, field) < count:
                await asyncio.sleep(0.05)

    async def _events(self, workflow_id: str, field: str) -> int:
        try:
            history = await self.client.get_workflow_handle(workflow_id).fetch_history()
        except RPCError:
            return 0
        return sum(event.HasField(field) for event in history.events)

    async def running(self, workflow_id: str) -> bool:
        described = await self._described(workflow_id)
        return described is not None and described.status is RUNNING

    async def _described(self, workflow_id: str) -> WorkflowExecutionDescription | None:
        try:
            return await self.client.get_workflow_handle(workflow_id).describe()
        except RPCError:
            return None

    async def replay(self) -> None:
        """Replay everything that happened here."""
        replayer = Replayer(workflows=WORKFLOWS, plugins=[watchbill_plugin()])
        histories = self.client.list_workflows().map_histories()
        replayed = await replayer.replay_workflows(histories, raise_on_replay_failure=False)
        assert replayed.replay_failures == {}

    async def failed(self) -> list[str]:
        """The workflows that broke, of which there is never a reason to be any."""
        query = "ExecutionStatus = 'Failed' OR ExecutionStatus = 'TimedOut'"
        return [one.id async for one in self.client.list_workflows(query)]

    def audit(self) -> None:
        with self.store.read() as connection:
            assert audit(connection) == ()


@asynccontextmanager
async def open_stage(
    address: str, home: Path, url: str, plugin: SimplePlugin | None = None, **settings: Any
) -> AsyncIterator[Stage]:
    """A stage with its workers; at its end everything that happened is replayed, and the store audited."""
    # Left to itself, structlog draws every local variable of a traceback, which takes longer than a task's life.
    structlog.configure(processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()])
    told = WorkerSettings(home=home, **settings)
    client = await namespace(address, plugin)
    store = open_store(url)
    try:
        with store.write() as connection:
            incarnation_of(connection, await namespace_id(client), datetime.now(UTC))
        stage = _stage(client, store, told)
        with ThreadPoolExecutor(16) as threads:
            signer = signer_of(store, told.seal_key)
            ports = Ports(client, store, stage.forge, stage.host.keeper, 1, signer, signer)
            async with shared_worker(ports, stage.settings, threads):
                await stage.host_comes()
                try:
                    yield stage
                finally:
                    await stage.host_leaves()
        stage.audit()
        await stage.replay()
        assert await stage.failed() == []
    finally:
        store.close()


def _stage(client: Client, store: Store, settings: WorkerSettings) -> Stage:
    script = Script()
    forge = ScriptedForge(script)
    keeper = Keeper("worker-1", HOST, "boot-1", settings.lease_time)
    return Stage(client, store, script, forge, ScriptedHost(store, keeper, script, forge), settings)
