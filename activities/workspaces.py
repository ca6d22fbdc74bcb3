"""Workspaces on this host: cut for a run, collected after it, pushed from, and cleared away.

The code that an agent may touch and the repository that we push from are never the same: an agent
gets a clone that it may break, and what it leaves is committed by a git of ours over its files.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from temporalio import activity

from activities.changes import changes_of
from activities.patience import in_thread
from activities.policies import policy_in
from activities.supervision import workspace_of
from domain.duties import Actor
from domain.errors import NotFound, Superseded, Unauthorized, Unavailable, WatchbillError
from domain.identity import branch_of, digest
from domain.lifecycle import Move
from domain.publication import PushOrder
from domain.pull import Push, PushKind
from domain.review import ReviewFacts
from domain.rules import Policy
from domain.run import Collected, Role, RunEvent, RunFacts
from domain.scope import outside
from domain.task import TaskFacts
from forge.aside import remove
from forge.collect import Work
from forge.git import Auth
from forge.mirror import Mirror
from forge.port import Forge
from forge.text import message
from runtimes.folder import Live, RunFolder
from runtimes.port import PRIVATE
from store import evidence, moves, reviews, tasks
from store.database import Store

SHOWN_STRAYS = 20
"""How many paths outside the plan's scope are named; a codemod may touch thousands."""


@dataclass(frozen=True)
class Prepared:
    """What a workspace was cut from, kept beside the run so that a repeat starts from the same."""

    start_sha: str
    base_sha: str


@dataclass(frozen=True)
class Workspaces:
    """`home` is the folder of everything that this host keeps, `worker` the name of whoever sees what lies there."""

    store: Store
    forge: Forge
    home: Path
    incarnation: int
    worker: str = ""
    _addresses: dict[str, str] = field(default_factory=dict)

    @activity.defn
    async def prepare_workspace(self, run_id: str) -> None:
        """Give a run the tree it works in: for an author a clone on the task's branch, for who judges the commit.

        A repeat finds the workspace that is there. A crash before it is named as prepared leaves
        nothing that the next attempt would take for whole; what an earlier run left is preserved first.
        """
        run, task = await asyncio.to_thread(self._load, run_id)
        if not run.live or self._prepared(run) is not None:
            return
        mirror = Mirror(self.home, task.repository)
        if run.role.judges:
            tree = workspace_of(self.home, run)
            # What a reviewer compares the commit with is in its clone as well, under the base's name.
            beside = {"base": task.base, "base_sha": task.base_sha} if run.role is Role.REVIEWER else {}
            checkout = partial(mirror.checkout, tree, run.start_sha, **beside)
            try:
                await in_thread(checkout)
            except NotFound:
                # What our own run made is here; what somebody else pushed may not be yet.
                await self._fetch(mirror, task)
                await in_thread(checkout)
            self._write_prepared(run, Prepared(run.start_sha, task.base_sha))
            return
        heads = await self._fetch(mirror, task)
        base_sha = heads[task.base]
        if base_sha is None:
            raise NotFound(f"{task.repository} has no branch {task.base}")
        await in_thread(self._make_room, mirror, run)
        start = await in_thread(_start_of, mirror, task, base_sha, heads.get(branch_of(task.id)))
        await in_thread(
            mirror.cut,
            workspace_of(self.home, run),
            start=start,
            branch=branch_of(task.id),
            base=task.base,
            base_sha=base_sha,
        )
        self._write_prepared(run, Prepared(start, base_sha))

    @activity.defn
    async def collect_work(self, run_id: str) -> Collected:
        """Commit what a run left and keep it on a ref of ours, however the run ended.

        Dates and author are the run's, so a repeat makes the same commit; once it is preserved the
        workspace is no longer needed for that.
        """
        run, task = await asyncio.to_thread(self._load, run_id)
        policy = await asyncio.to_thread(self._policy, run.plan_id)
        prepared = self._prepared(run)
        if prepared is None:
            raise NotFound(f"the workspace of run {run.id} was never made")
        work = await in_thread(
            Mirror(self.home, task.repository).collect,
            workspace_of(self.home, run),
            task_id=task.id,
            run_id=run.id,
            start=prepared.start_sha,
            base_sha=prepared.base_sha,
            message=message(task.title, f"Task {task.ordinal} of plan {task.plan_id}."),
            at=datetime.fromisoformat(run.started_at),
            refuse=policy.paths,
        )
        await asyncio.to_thread(self._record_collected, run, prepared, work)
        strays = outside(task.paths, work.changed)
        return Collected(
            run_id=run.id,
            base_sha=prepared.base_sha,
            start_sha=prepared.start_sha,
            head_sha=work.head_sha,
            tree_sha=work.tree_sha,
            changed=len(work.changed),
            strays=strays[:SHOWN_STRAYS],
            stray_count=len(strays),
            faults=work.faults,
        )

    @activity.defn
    async def collect_review(self, run_id: str) -> ReviewFacts:
        """Write down what a reviewer's run amounts to, once it is seen whether it left the commit as it was.

        A repeat answers the review that is there. A crash before it is written leaves the checkout to look at again.
        """
        run, task = await asyncio.to_thread(self._load, run_id)
        changed = ""
        if self._prepared(run) is not None:
            work = await in_thread(
                Mirror(self.home, task.repository).collect,
                workspace_of(self.home, run),
                task_id=task.id,
                run_id=run.id,
                start=run.start_sha,
                base_sha=run.start_sha,
                message=message(task.title, f"What {run.id} changed."),
                at=datetime.fromisoformat(run.started_at),
            )
            changed = "; ".join((*work.changed[:SHOWN_STRAYS], *work.faults))
        return await asyncio.to_thread(self._give, run, changed)

    def _give(self, run: RunFacts, changed: str) -> ReviewFacts:
        with self.store.write() as connection:
            run = tasks.load_run(connection, run.id)
            ending = reviews.Ending(run, changed, self.worker, datetime.now(UTC))
            return reviews.give(connection, ending, self.incarnation)

    @activity.defn
    async def push_branch(self, order: PushOrder) -> Push:
        """Put exactly this commit on the task's branch, unless a newer epoch or somebody else's commit is there.

        A repeat finds the branch at the commit already; a response that was lost is not pushed twice. A crash
        before the task's row says so leaves a commit there that a run of this task made: it is ours all the same.
        """
        task = await asyncio.to_thread(self._current, order)
        mirror = Mirror(self.home, task.repository)
        async with self._remote(task) as (url, auth):
            push = await in_thread(mirror.push, url, auth, branch_of(task.id), order.sha, task.pushed_sha)
            if push.kind is PushKind.MOVED and await asyncio.to_thread(self._is_made_by_us, task, push.sha):
                push = await in_thread(mirror.push, url, auth, branch_of(task.id), order.sha, push.sha)
            return push

    @activity.defn
    async def clear_away(self, task_id: str) -> None:
        """Remove the workspaces of a task that has ended, and the memory, HOME and TMPDIR of its runs.

        What is not preserved stays where it is, and so does what belongs to a run that lives. What runs wrote and
        how they ended stays as well. A repeat finds them gone. A crash in the middle leaves some, which the next
        attempt removes.
        """
        task = await asyncio.to_thread(self._load_task, task_id)
        mirror = Mirror(self.home, task.repository)
        folder = self.home / "workspaces" / task_id
        for tree in sorted(tree for role in Role if role.judges for tree in folder.glob(f"{role}-*")):
            await in_thread(mirror.discard_checkout, tree)
        owner = self._owner_of(folder / "author")
        if owner:
            with suppress(NotFound):
                await in_thread(mirror.discard, folder / "author", task_id=task_id, run_id=owner)
        await in_thread(self._clear_runs, task)

    async def _fetch(self, mirror: Mirror, task: TaskFacts) -> dict[str, str | None]:
        async with self._remote(task) as (url, auth):
            return await in_thread(mirror.fetch, url, auth, task.base, branch_of(task.id))

    @asynccontextmanager
    async def _remote(self, task: TaskFacts) -> AsyncIterator[tuple[str, Auth]]:
        """Where git finds the task's repository, and the credentials for it.

        The forge is asked for the address once, and again after git could not do with it.
        """
        name = task.repository
        if name not in self._addresses:
            self._addresses[name] = (await self.forge.repository(name)).clone_url
        try:
            yield self._addresses[name], await self.forge.push_auth(name)
        except Unauthorized as error:
            if await self.forge.renew_auth(name):
                raise Unavailable(f"{error}; new credentials are at hand") from error
            raise
        except WatchbillError:
            self._addresses.pop(name, None)
            raise

    def _make_room(self, mirror: Mirror, run: RunFacts) -> None:
        """Take the previous run's tree out of the way, once nothing of it lives and its work is preserved.

        A tree whose work is not preserved is moved aside, never deleted.
        """
        tree = workspace_of(self.home, run)
        owner = self._owner_of(tree)
        if owner and owner != run.id:
            if isinstance(RunFolder(self.home / "runs" / owner).status(), Live):
                raise Unavailable(f"run {owner} still lives in {tree}")
            try:
                mirror.discard(tree, task_id=run.task_id, run_id=owner)
            except NotFound:
                if tree.exists():
                    tree.rename(tree.with_name(f"left-by-{owner}"))
        elif owner == run.id:
            # Cut by an attempt of this very run that died before it said so; nobody has worked in it.
            mirror.discard_checkout(tree)
        _write(self._owner_file(tree), run.id)

    def _clear_runs(self, task: TaskFacts) -> None:
        """Delete what nobody but a run itself, or the next one of its task, would look at."""
        lives = False
        for run in task.runs:
            folder = RunFolder(self.home / "runs" / run.id)
            if run.live or isinstance(folder.status(), Live):
                lives = True
                continue
            for name in PRIVATE:
                remove(folder.path / name)
        if not lives:
            remove(self.home / "memory" / task.id)

    def _owner_file(self, tree: Path) -> Path:
        return tree.with_name(f"{tree.name}.run")

    def _owner_of(self, tree: Path) -> str:
        file = self._owner_file(tree)
        return file.read_text() if file.exists() else ""

    def _load(self, run_id: str) -> tuple[RunFacts, TaskFacts]:
        with self.store.read() as connection:
            run = tasks.load_run(connection, run_id)
            return run, tasks.load_task(connection, run.task_id, activity.info().scheduled_time)

    def _policy(self, plan_id: str) -> Policy:
        with self.store.read() as connection:
            return policy_in(connection, plan_id, self.home)

    def _load_task(self, task_id: str) -> TaskFacts:
        with self.store.read() as connection:
            return tasks.load_task(connection, task_id, activity.info().scheduled_time)

    def _current(self, order: PushOrder) -> TaskFacts:
        task = self._load_task(order.task_id)
        if task.epoch != order.epoch or task.state is not order.state:
            raise Superseded(f"task {task.id} has moved on; {order.sha[:12]} is not pushed")
        return task

    def _is_made_by_us(self, task: TaskFacts, sha: str) -> bool:
        with self.store.read() as connection:
            return tasks.is_made_by_a_run(connection, task.id, sha)

    def _record_collected(self, run: RunFacts, prepared: Prepared, work: Work) -> None:
        key, why = f"collected:{run.id}", "its work is preserved"
        facts = {"head_sha": work.head_sha, "start_sha": prepared.start_sha}
        at = activity.info().scheduled_time
        with self.store.write() as connection:
            seen = [evidence.record(connection, changes_of(run, work, self.worker), why, at)] if work.changed else []
            collect = Move("run", run.id, RunEvent.COLLECT, key, run.plan_id, why, at, facts, by=Actor.WORKER)
            moves.move(connection, collect, *seen, incarnation=self.incarnation)

    def _prepared_file(self, run: RunFacts) -> Path:
        return self.home / "runs" / run.id / "prepared.json"

    def _prepared(self, run: RunFacts) -> Prepared | None:
        try:
            return Prepared(**json.loads(self._prepared_file(run).read_text()))
        except FileNotFoundError:
            return None

    def _write_prepared(self, run: RunFacts, prepared: Prepared) -> None:
        _write(self._prepared_file(run), json.dumps(asdict(prepared)))


def _write(file: Path, text: str) -> None:
    """Whole or not at all, whoever else writes the same."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = file.with_name(f".{file.name}.{digest(f'{text}{id(file)}')[:8]}")
    beside.write_text(text)
    beside.replace(file)


def _start_of(mirror: Mirror, task: TaskFacts, base_sha: str, branch_sha: str | None) -> str:
    """Where the next run begins: at our own latest work if it contains the remote branch, else at the branch.

    A fresh start begins at the base, unless a run of this same round has left something.
    """
    this_round = [run.head_sha for run in task.runs if run.role is Role.AUTHOR and run.head_sha]
    latest = (this_round[-1] if this_round else "") if task.fresh_start else task.latest_work
    if latest and not mirror.has(latest):
        latest = ""
    if task.fresh_start:
        return latest or base_sha
    ours = branch_sha is None or (branch_sha == task.pushed_sha and not task.foreign_commits)
    if latest and (ours or mirror.contains(latest, branch_sha or "")):
        return latest
    return branch_sha or base_sha
