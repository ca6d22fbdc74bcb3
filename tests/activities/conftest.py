"""A confirmed plan in a real store, and activities that can be called without a Temporal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from domain.decision import Decision, DecisionKind
from domain.document import parse
from domain.heartbeat import HeartbeatPolicy
from domain.identity import digest, plan_id, task_id
from domain.lifecycle import Move
from domain.publication import Beat, BeginRun, Publish, PublishTo
from domain.pull import Repository
from domain.run import Role, RunFacts
from domain.task import TaskFacts
from signing.keys import Signer, open_or_make
from store import runs
from store.database import Store
from store.decisions import decide
from store.dispatch import beat
from store.moves import move
from store.publication import publish
from store.runs import Keeper
from store.tasks import load_run, load_task
from tests.rightful import rightful
from tests.store.passing import passed
from tests.workflows.world import Script, ScriptedForge, sha

KEEPER = Keeper("worker-1", "host-a", "boot-1", timedelta(seconds=60))
OWNER, SLUG = "ada", "a-plan"


def document(script: str, **front: str) -> str:
    values = {"slug": SLUG, "repository": "acme/shop", "checks": '["test -e made"]', "attempts": "4", **front}
    head = "\n".join(f"{key}: {value}" for key, value in values.items())
    block = "\n".join(f"  {line}" for line in script.splitlines())
    box = f"- [ ] Make it\n\n  Closes #7, says @ada.\n\n  ```sh\n{block}\n  ```\n"
    return f"---\n{head}\n---\n# A plan\n\n## Tasks\n\n{box}"


@dataclass
class Graph:
    """The store with one task under way."""

    store: Store
    plan: str = plan_id(OWNER, SLUG)
    task: str = task_id(plan_id(OWNER, SLUG), 1)
    environment: ActivityEnvironment = field(default_factory=ActivityEnvironment)

    def __post_init__(self) -> None:
        now = datetime.now(UTC)
        self.environment.info = replace(self.environment.info, scheduled_time=now, current_attempt_scheduled_time=now)

    def confirm(self, script: str = "true", **front: str) -> None:
        text = document(script, **front)
        order = PublishTo(Publish(OWNER, text, "acme/shop"), Repository("acme/shop", "main", ""), "main", _now())
        with self.store.write() as connection:
            publish(connection, order, parse(text), 1)
        with self.store.write() as connection:
            decide(connection, Decision(DecisionKind.CONFIRM, self.plan, names=digest(text), by=OWNER), _now(), 1)
        beat(self.store, Beat(OWNER, _now()), HeartbeatPolicy(), 1)

    def begin(self, role: Role = Role.AUTHOR, ordinal: int = 0, command: str = "") -> RunFacts:
        """Begin a run; a check's command becomes one of the plan's, as only such are begun."""
        if role is Role.CHECK:
            self.move("revise", "plan", self.plan, checks=["true"] * (ordinal - 1) + [command])
        with self.store.write() as connection:
            return runs.begin(connection, BeginRun(self.task, role, _now(), ordinal, command), KEEPER, 1)

    def check(self, commit: str) -> None:
        """Have every check of the plan pass on the commit of this name."""
        for command in self.facts().checks:
            with self.store.write() as connection:
                passed(connection, self.plan, self.task, command, sha(commit), _now())

    def move(self, event: str, kind: str = "task", subject: str = "", **facts: Any) -> None:
        key, by = f"{event}:{_now()}", rightful(kind, event)
        wish = Move(kind, subject or self.task, event, key, self.plan, "a test", _now(), facts, by=by)
        with self.store.write() as connection:
            assert not move(connection, wish)[0].refused

    def pause(self) -> None:
        with self.store.write() as connection:
            decide(connection, Decision(DecisionKind.PAUSE, self.plan, 1, by=OWNER), _now(), 1)

    def revise(self, script: str, **front: str) -> None:
        """Publish and confirm another text of the plan."""
        text = document(script, **front)
        said = Publish(OWNER, text, "acme/shop", revise=True)
        order = PublishTo(said, Repository("acme/shop", "main", ""), "main", _now())
        with self.store.write() as connection:
            publish(connection, order, parse(text), 1)
        with self.store.write() as connection:
            decide(connection, Decision(DecisionKind.CONFIRM, self.plan, names=digest(text), by=OWNER), _now(), 1)

    def resume_and_begin(self) -> RunFacts:
        """Answer what the task asks, and begin its author's next run."""
        question = self.facts().question
        assert question is not None
        with self.store.write() as connection:
            decide(connection, Decision(DecisionKind.RESUME, self.plan, 1, question.id, by=OWNER), _now(), 1)
        return self.begin()

    def facts(self) -> TaskFacts:
        with self.store.read() as connection:
            return load_task(connection, self.task, _now())

    def run(self, run: str) -> RunFacts:
        with self.store.read() as connection:
            return load_run(connection, run)

    async def call(self, activity: Callable[..., Any], argument: Any) -> Any:
        return await self.environment.run(activity, argument)


def _now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def graph(sqlite_store: Store) -> Graph:
    return Graph(sqlite_store)


@pytest.fixture
def forge() -> ScriptedForge:
    return ScriptedForge(Script())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return open_or_make(tmp_path / "seal.pem")
