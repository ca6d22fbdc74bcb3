"""A host and a forge that do as a test tells them, and keep count of what was asked of them.

Both move the graph as the real ones do. What is told is consumed in order, and where nothing is told the
usual happens: runs finish, pushes arrive, pull requests merge.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from temporalio import activity

from domain.confinement import Confinement
from domain.duties import Actor
from domain.errors import NotFound, Superseded
from domain.identity import branch_of, digest, task_of_branch
from domain.lifecycle import Move
from domain.publication import PushOrder
from domain.pull import Merge, MergeKind, Opened, OpenKind, PullRequest, Push, PushKind, Repository
from domain.review import ReviewFacts
from domain.run import Collected, EndKind, Outcome, Role, RunEnd, RunEvent, RunFacts, RunState
from domain.task import TaskFacts
from forge.git import Auth
from store import reviews, runs
from store.database import Store
from store.events import Event
from store.moves import move
from store.runs import Keeper
from store.tasks import load_run, load_task
from store.words import Speaker, WordKind, say


def sha(name: str) -> str:
    """What stands for a commit or a tree of this name."""
    return digest(name)[:40]


BASE = sha("base")


class Script:
    """What is to happen next, by task and step."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], deque[Any]] = {}

    def tell(self, about: str, step: str, *outcomes: Any) -> None:
        """An exception is raised, anything else is the step's to understand."""
        self._told.setdefault((about, step), deque()).extend(outcomes)

    def next(self, about: str, step: str) -> Any:
        told = self._told.get((about, step))
        outcome = told.popleft() if told else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def waits(self, about: str, step: str) -> bool:
        """Whether something that was told has not happened yet."""
        return bool(self._told.get((about, step)))


@dataclass
class ScriptedForge:
    """A forge in memory, with one branch and at most one pull request a task."""

    script: Script
    branches: dict[str, str] = field(default_factory=dict)
    pulls: dict[int, PullRequest] = field(default_factory=dict)
    looks: Counter[str] = field(default_factory=Counter)
    opened: Counter[str] = field(default_factory=Counter)
    merged: Counter[str] = field(default_factory=Counter)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def repository(self, name: str) -> Repository:
        self.script.next(name, "repository")
        return Repository(name, "main", f"https://forge.invalid/{name}.git")

    async def installation(self, name: str) -> int:
        self.looks[name] += 1
        self.script.next(name, "installation")
        return 0

    async def branch_head(self, name: str, branch: str) -> str | None:
        return BASE if branch == "main" else self.branches.get(branch)

    async def push_auth(self, name: str) -> Auth:
        raise AssertionError("a scripted host pushes nothing")

    async def renew_auth(self, name: str) -> bool:
        return False

    async def open_pull_request(
        self, name: str, *, branch: str, base: str, title: str, body: str, draft: bool = False, renew: bool = False
    ) -> Opened:
        task = str(task_of_branch(branch))
        told = self.script.next(task, "open")
        if told is not None:
            return Opened(OpenKind(told))
        found = await self.find_pull_request(name, branch=branch, base=base)
        if found is not None:
            self.change(task, draft=found.draft and draft, head_sha=self.branches[branch])
            return Opened(OpenKind.FOUND, self.pull_of(task))
        self.opened[task] += 1
        number = next(self._numbers)
        url = f"https://forge.invalid/{name}/pull/{number}"
        self.pulls[number] = PullRequest(
            number, url, True, False, branch, self.branches[branch], base, mergeable=True, draft=draft
        )
        return Opened(OpenKind.OPENED, self.pulls[number])

    async def find_pull_request(self, name: str, *, branch: str, base: str) -> PullRequest | None:
        return next((pull for pull in self.pulls.values() if pull.head_ref == branch), None)

    async def read_pull_request(self, name: str, number: int) -> PullRequest:
        pull = self.pulls[number]
        task = str(task_of_branch(pull.head_ref))
        self.looks[task] += 1
        self.script.next(task, "look")
        if pull.open:
            self.pulls[number] = pull = replace(pull, head_sha=self.branches[pull.head_ref])
        return pull

    async def merge_pull_request(self, name: str, number: int, *, sha: str, title: str, message: str = "") -> Merge:
        task = str(task_of_branch(self.pulls[number].head_ref))
        told = self.script.next(task, "merge")
        if callable(told):
            told()
        elif told is not None:
            assert isinstance(told, Merge)
            return told
        pull = await self.read_pull_request(name, number)
        if pull.head_sha != sha:
            return Merge(MergeKind.HEAD_MOVED)
        self.merged[task] += 1
        self.merge(task, by="watchbill[bot]")
        return Merge(MergeKind.MERGED, self.pulls[number].merged_sha)

    async def close_pull_request(self, name: str, number: int) -> None:
        self.pulls[number] = replace(self.pulls[number], open=False, closed_at="2026-03-01T00:00:00Z")

    async def comment(self, name: str, number: int, marker: str, body: str) -> None:
        raise AssertionError("nothing comments")

    # What people do on the forge.

    def pull_of(self, task: str) -> PullRequest:
        return next(pull for pull in self.pulls.values() if pull.head_ref == branch_of(task))

    def merge(self, task: str, by: str = "ada") -> None:
        self.change(task, open=False, merged=True, merged_sha=sha(f"merged {task}"), merged_by=by)

    def close(self, task: str) -> None:
        self.change(task, open=False, closed_at=datetime.now(UTC).isoformat())

    def change(self, task: str, **facts: Any) -> None:
        pull = self.pull_of(task)
        self.pulls[pull.number] = replace(pull, **facts)

    def push(self, task: str, name: str) -> str:
        """Somebody pushes a commit of this name to the task's branch."""
        self.branches[branch_of(task)] = sha(name)
        return sha(name)


@dataclass(frozen=True)
class Ends:
    """How a run's process ends."""

    state: RunState = RunState.FINISHED
    exit_code: int | None = 0
    kind: EndKind = EndKind.EXITED
    reason: str = ""
    said: str = ""
    outcome: Outcome = Outcome.DONE
    question: str = ""
    refused: str = ""
    """What policy refused it, as its hook would have recorded it."""
    answer: Any = field(default_factory=lambda: {"verdict": "approve", "summary": "Good.", "findings": []})
    """A reviewer's answer; None where it gives none."""


CRASHES = Ends(RunState.CRASHED, -9, EndKind.KILLED, "killed by signal 9", "Killed\n")
REFUSED = Ends(RunState.REFUSED, 1, reason="the task has no money left", outcome=Outcome.REFUSED)
FAILS = Ends(RunState.FINISHED, 1, said="1 failed, 3 passed\n")


@dataclass(frozen=True)
class Left:
    """What a run left in its workspace; a tree that is not named is one of its own."""

    changed: int = 1
    tree: str = ""
    head: str = ""
    strays: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


class Held:
    """A run that goes on until it is let go, and then ends as told."""

    def __init__(self, ends: Ends | None = None, *, silent: bool = False) -> None:
        self.ends = ends or Ends()
        self.silent = silent
        self.released = asyncio.Event()

    def release(self) -> None:
        self.released.set()


@dataclass
class ScriptedHost:
    """The activities of a host's own queue, with processes that exist in `living` alone."""

    store: Store
    keeper: Keeper
    script: Script
    forge: ScriptedForge
    living: dict[str, Ends | Held] = field(default_factory=dict)
    started: Counter[str] = field(default_factory=Counter)
    left: dict[str, Collected] = field(default_factory=dict)
    pushed: Counter[str] = field(default_factory=Counter)
    cleared: list[str] = field(default_factory=list)

    def activities(self) -> Sequence[Callable[..., Any]]:
        return [
            self.prepare_workspace, self.supervise, self.collect_work, self.collect_review, self.push_branch,
            self.clear_away,
        ]  # fmt: skip

    @activity.defn
    async def prepare_workspace(self, run_id: str) -> None:
        self.script.next(self._load(run_id)[1].id, "prepare")

    @activity.defn
    async def supervise(self, run_id: str) -> RunEnd:
        run, task = self._load(run_id)
        if not run.live:
            with self.store.read() as connection:
                return runs.recorded_end(connection, run)
        if run_id not in self.living:
            self.living[run_id] = self.script.next(task.id, run.role) or Ends()
            with self.store.write() as connection:
                runs.spawned(connection, run, self.keeper, Confinement.UNCONFINED, datetime.now(UTC), 1)
            self.started[run_id] += 1
        how = self.living[run_id]
        if isinstance(how, Held):
            how = await self._watch(run, how)
        end = RunEnd(run.id, how.state, how.kind, how.exit_code, how.reason, how.said, how.outcome, how.question)
        now = datetime.now(UTC)
        story = [Event(1, now, "refused", {"tool": "Bash", "why": how.refused})] if how.refused else []
        with self.store.write() as connection:
            if run.role is Role.REVIEWER and how.answer is not None:
                speaker = Speaker(task.owner, run.plan_id, run.task_id, run.id, run.epoch, run.role)
                body = {"result": how.answer, "revision": 1, "brief": "none"}
                say(connection, speaker, WordKind.RESULT, body, now)
            told = runs.end(connection, run, end, story, self.keeper.worker, now, 1)
        del self.living[run_id]
        return told

    async def _watch(self, run: RunFacts, held: Held) -> Ends:
        while not held.released.is_set():
            if not held.silent:
                activity.heartbeat()
            with self.store.write() as connection:
                stop = runs.keep(connection, run, self.keeper, datetime.now(UTC))
            if stop:
                return Ends(RunState.STOPPED, None, EndKind.STOPPED, stop)
            await asyncio.sleep(0.05)
        return held.ends

    @activity.defn
    async def collect_work(self, run_id: str) -> Collected:
        run, task = self._load(run_id)
        if run_id not in self.left:
            told = self.script.next(task.id, "collect") or Left()
            head, tree = told.head or f"commit {run_id}", told.tree or f"tree {run_id}"
            self.left[run_id] = Collected(
                run_id, BASE, BASE, sha(head), sha(tree), told.changed, told.strays, len(told.strays), told.faults
            )
        facts = {"head_sha": self.left[run_id].head_sha, "start_sha": BASE}
        key, at = f"collected:{run.id}", activity.info().scheduled_time
        with self.store.write() as connection:
            move(
                connection, Move("run", run.id, RunEvent.COLLECT, key, run.plan_id, "kept", at, facts, by=Actor.WORKER)
            )
        return self.left[run_id]

    @activity.defn
    async def collect_review(self, run_id: str) -> ReviewFacts:
        run, task = self._load(run_id)
        changed = self.script.next(task.id, "tampers") or ""
        ending = reviews.Ending(run, changed, self.keeper.worker, datetime.now(UTC))
        with self.store.write() as connection:
            return reviews.give(connection, ending, 1)

    @activity.defn
    async def push_branch(self, order: PushOrder) -> Push:
        with self.store.read() as connection:
            task = load_task(connection, order.task_id, datetime.now(UTC))
        self.script.next(task.id, "push")
        if task.epoch != order.epoch or task.state is not order.state:
            raise Superseded(f"task {task.id} has moved on")
        there = self.forge.branches.get(branch_of(task.id), "")
        if there not in (task.pushed_sha, order.sha):
            return Push(PushKind.MOVED, there)
        self.forge.branches[branch_of(task.id)] = order.sha
        self.pushed[task.id] += 1
        return Push(PushKind.PUSHED, order.sha)

    @activity.defn
    async def clear_away(self, task_id: str) -> None:
        self.script.next(task_id, "clear")
        self.cleared.append(task_id)

    def _load(self, run_id: str) -> tuple[RunFacts, TaskFacts]:
        with self.store.read() as connection:
            run = load_run(connection, run_id)
            return run, load_task(connection, run.task_id, datetime.now(UTC))


def not_there(name: str) -> NotFound:
    return NotFound(f"{name} is not there for us; install the App on it")
