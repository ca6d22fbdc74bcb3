"""Watching over one run's process on this host, from spawn to end.

The process belongs to its supervisor, not to this worker: cancelling, losing or killing the
activity detaches, and the next attempt attaches to what lives. Only the graph's word stops a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from temporalio import activity
from temporalio.service import RPCError

from activities.commissions import Commissions
from activities.handing import hand_over
from activities.policies import Terms, terms_in
from activities.redaction import showable
from activities.reminders import Reminder
from activities.screens import EVERY, Camera
from activities.story import Teller, story_of
from domain.agents import AGENTS
from domain.confinement import Confinement
from domain.errors import NotFound, WatchbillError
from domain.identity import plan_workflow_id
from domain.metering import Meter, Metering
from domain.run import STATE_OF, EndKind, Role, RunEnd, RunFacts, RunState
from domain.task import TaskFacts
from domain.told import ToldUsage
from runtimes.confiner import Confiner
from runtimes.folder import Absent, Dead, Ended, Live, RunFolder
from runtimes.port import Job, Runtime
from runtimes.screen import BESIDE
from store import runs, tasks
from store.database import Store
from store.screens import put_screen

FIRST_LOOK = 0.02
SLOWEST_LOOK = 0.5
"""Seconds between looks at the run's folder; they grow from the first to the slowest."""

RENEWALS = 12
"""How often a lease is renewed before it would lapse."""

SIGN_OF_LIFE = 1.0
"""Seconds between heartbeats; a run that is over before the first costs the server none."""

HEED = 1.0
"""Seconds until the graph is asked again whether the run is still wanted."""


class Witness(Protocol):
    """Looks at a run every now and then, beside its supervisor, and keeps no run from going on."""

    def take(self) -> None: ...


@dataclass(frozen=True)
class Supervision:
    """`home` is this host's folder, `keeper` this worker; `agent_path` the PATH that runs are given.

    `commissions` gives agents what they need and takes what they said; `confiner` keeps runs from the rest.
    `wake` hints to a workflow, by its id, that it should look again.
    """

    store: Store
    home: Path
    runtimes: Mapping[str, Runtime]
    keeper: runs.Keeper
    agent_path: str
    incarnation: int
    commissions: Commissions
    confiner: Confiner
    wake: Callable[[str], Awaitable[None]]

    @activity.defn
    async def supervise(self, run_id: str) -> RunEnd:
        """Start the run's process, or attach to the one that lives, and answer how it ended.

        A repeat never starts a second process: the run's folder is locked by the supervisor that
        owns it. A crash before the spawn starts it on the next attempt; a crash after it attaches;
        a supervisor that died with no result, or a folder that somebody deleted, has what remains of the run ended,
        and is recorded as a crash. Before an agent
        is spawned, at each attempt, the forge is asked whether we may work on its repository.
        """
        run, task = await asyncio.to_thread(self._load, run_id)
        if not run.live:
            return await asyncio.to_thread(self._recorded_end, run)
        folder = RunFolder(self.home / "runs" / run.id)
        unwanted = await asyncio.to_thread(self._unwanted, folder, run)
        if unwanted:
            return await asyncio.to_thread(self._record, folder, run, _never_started(run, unwanted))
        if run.state is RunState.RUNNING and await asyncio.to_thread(folder.lost):
            await asyncio.to_thread(folder.mourn, run.id)
        if not await asyncio.to_thread(_has_begun, folder):
            await self.commissions.require_welcome(run, task)
        spawned = await asyncio.to_thread(self._spawn, folder, run, task)
        camera = Camera(self.store, self._runtime(run), folder, run)
        witnesses: list[Witness] = [camera, Teller(self.store, folder, run)]
        if run.runtime in AGENTS:
            witnesses.append(Reminder(self.store, self.commissions, folder, run, task))
        await self._watch(folder, run, witnesses, kept=spawned)
        return await asyncio.to_thread(self._record_end, folder, run, task, camera)

    async def _watch(self, folder: RunFolder, run: RunFacts, witnesses: Iterable[Witness], *, kept: bool) -> None:
        """Return once the run has ended, keeping its lease alive and passing on the graph's word to stop.

        `kept` is whether that has just been done.
        """
        clock = asyncio.get_running_loop().time
        renewal = min(5.0, self.keeper.lease.total_seconds() / RENEWALS)
        pause, take_at, shown = FIRST_LOOK, clock() + EVERY, False
        beat_at = clock() + SIGN_OF_LIFE
        heed_at, renew_at = (clock() + HEED, clock() + renewal) if kept else (0.0, 0.0)
        while not isinstance(status := folder.status(), Ended):
            if isinstance(status, Dead):
                await asyncio.to_thread(folder.bury)
                continue
            if isinstance(status, Absent):
                await asyncio.to_thread(folder.mourn, run.id)
                continue
            now = clock()
            if now >= beat_at:
                activity.heartbeat()
                beat_at = now + SIGN_OF_LIFE
            if now >= renew_at:
                await asyncio.to_thread(self._renew_or_stop, folder, run)
                heed_at = now + HEED
                renew_at = now + renewal
            elif now >= heed_at:
                await asyncio.to_thread(self._heed, folder, run)
                heed_at = now + HEED
            if now >= take_at:
                for witness in witnesses:
                    await asyncio.to_thread(witness.take)
                if not shown:
                    shown = await self._have_shown(run)
                # From its end on: a screen that is slow to draw takes no more of the time than its share.
                take_at = clock() + EVERY
            await asyncio.sleep(pause)
            pause = min(SLOWEST_LOOK, pause * 1.5)

    async def _have_shown(self, run: RunFacts) -> bool:
        """Have the plan look at a run that lasts: until it ends nothing else would. Whether the hint was given."""
        try:
            async with asyncio.timeout(HEED):
                await self.wake(plan_workflow_id(run.plan_id))
        except (RPCError, TimeoutError) as error:
            activity.logger.info("could not wake the plan", extra={"run": run.id, "reason": repr(error)})
            return False
        return True

    def _unwanted(self, folder: RunFolder, run: RunFacts) -> str:
        """Why a run that has not begun shall not begin any more; empty for one that goes on."""
        if not isinstance(folder.status(), Absent):
            return ""
        with self.store.write() as connection:
            return runs.keep(connection, run, self.keeper, datetime.now(UTC))

    def _spawn(self, folder: RunFolder, run: RunFacts, task: TaskFacts) -> bool:
        """Spawning is the folder's to do once; here it is written down before it happens. Whether it was ours to do."""
        # Nothing is written for an agent that has been here: it may have left links where we would write.
        if _has_begun(folder):
            return False
        job = Job(
            run_id=run.id,
            task_id=task.id,
            task_title=task.title,
            task_body=task.body,
            workspace=workspace_of(self.home, run),
            folder=folder.path,
            timeout=task.timeout,
            note=task.note,
            command=run.command,
            path=self.agent_path,
        )
        if run.role is Role.AUTHOR:
            hand_over(self.store, folder, task.id)
        now = datetime.now(UTC)
        terms = self._terms(run)
        metering = _metering(run, terms)
        job = self.commissions.job(job, run, task, now, metering)
        how = self._confinement(run, job, terms)
        launch = self._runtime(run).launch(self.confiner.job(job, how))
        launch = self.confiner.confine(launch, job, how)
        folder.make()
        with self.store.write() as connection:
            cap = job.door.cap_nano_usd if job.door and not job.login else None
            runs.spawned(connection, run, self.keeper, how, now, self.incarnation, cap, metering)
        folder.spawn(launch, now + self.keeper.lease)
        return True

    def _terms(self, run: RunFacts) -> Terms:
        with self.store.read() as connection:
            return terms_in(connection, run.plan_id)

    def _confinement(self, run: RunFacts, job: Job, terms: Terms) -> Confinement:
        """How the run is confined; what was written down of it once holds."""
        if run.state is RunState.RUNNING:
            return Confinement(run.confinement)
        has_door = job.door is not None and job.login is None
        return self.confiner.choose(terms.confine, terms.network, has_door=has_door)

    def _heed(self, folder: RunFolder, run: RunFacts) -> None:
        """Stop the run if the graph wants it no more. A read, so that a cancel need not wait for a renewal."""
        with self.store.read() as connection:
            stop = runs.why_to_stop(connection, run, datetime.now(UTC))
        if stop:
            folder.stop(stop)

    def _renew_or_stop(self, folder: RunFolder, run: RunFacts) -> None:
        now = datetime.now(UTC)
        with self.store.write() as connection:
            stop = runs.keep(connection, run, self.keeper, now)
        if stop:
            folder.stop(stop)
        else:
            folder.renew(now + self.keeper.lease)

    def _runtime(self, run: RunFacts) -> Runtime:
        if run.runtime not in self.runtimes:
            raise NotFound(f"this host has no runtime {run.runtime}; install it, or name another in the plan.")
        return self.runtimes[run.runtime]

    def _load(self, run_id: str) -> tuple[RunFacts, TaskFacts]:
        with self.store.read() as connection:
            run = tasks.load_run(connection, run_id)
            return run, tasks.load_task(connection, run.task_id, activity.info().scheduled_time)

    def _record_end(self, folder: RunFolder, run: RunFacts, task: TaskFacts, camera: Camera) -> RunEnd:
        status = folder.status()
        if not isinstance(status, Ended):
            raise WatchbillError(f"run {run.id} has no recorded end")
        verdict = self._runtime(run).judge(status.result, folder)
        verdict, asked = self.commissions.outcome(run, task.owner, verdict, datetime.now(UTC))
        if run.role is Role.CHECK and verdict.exit_code and not verdict.reason and self._had_no_network(run):
            verdict = replace(verdict, reason=f"exit {verdict.exit_code}, without a network")
        end = RunEnd(
            run.id,
            STATE_OF[verdict.outcome],
            status.result.kind,
            verdict.exit_code,
            verdict.reason,
            _last_words(folder, run, camera),
            verdict.outcome,
            asked,
            verdict.session,
        )
        told = self._runtime(run).usage(folder.stream()) if self._is_unmetered(run) else None
        return self._record(folder, run, end, camera.last(), told)

    def _is_unmetered(self, run: RunFacts) -> bool:
        """Whether nobody counted what it used, so that its CLI's own word is the only one."""
        with self.store.read() as connection:
            return tasks.load_run(connection, run.id).metering == Metering.UNMETERED

    def _had_no_network(self, run: RunFacts) -> bool:
        with self.store.read() as connection:
            return tasks.load_run(connection, run.id).confinement == Confinement.CONFINED

    def _record(
        self,
        folder: RunFolder,
        run: RunFacts,
        end: RunEnd,
        screen: str | None = None,
        told: ToldUsage | None = None,
    ) -> RunEnd:
        self.commissions.forget(run)
        # First what the supervisor told: there is room for so many, and of the other an agent can write any number.
        story = (*story_of(folder.events(), ours=True), *story_of(folder.uses()))
        now = datetime.now(UTC)
        with self.store.write() as connection:
            recorded = runs.end(connection, run, end, story, self.keeper.worker, now, self.incarnation, told)
            if screen is not None:
                put_screen(connection, run.id, screen, now)
            return recorded

    def _recorded_end(self, run: RunFacts) -> RunEnd:
        with self.store.read() as connection:
            return runs.recorded_end(connection, run)


def _has_begun(folder: RunFolder) -> bool:
    """Whether the run's program is there, or has been; once it has, that stays so."""
    status = folder.status()
    return isinstance(status, Live | Ended) or (isinstance(status, Dead) and status.begun)


def _metering(run: RunFacts, terms: Terms) -> str:
    """Whether the run is metered, where it is an agent's; what was written down of it once holds."""
    if run.state is RunState.RUNNING or run.runtime not in AGENTS:
        return run.metering
    return Metering.UNMETERED if terms.metering is Meter.OFF else Metering.METERED


def _never_started(run: RunFacts, why: str) -> RunEnd:
    return RunEnd(run.id, RunState.STOPPED, EndKind.NEVER_STARTED, reason=f"it had not begun: {why}")


def _last_words(folder: RunFolder, run: RunFacts, camera: Camera) -> str:
    """The last of a run's output; of an agent's, what its CLI wrote beside its stream, and then the stream as read."""
    if run.runtime not in AGENTS:
        return showable(folder.text())
    beside, seen = showable(folder.text(BESIDE)).strip(), camera.look()
    return seen if beside in seen else f"{beside}\n\n{seen}"


def workspace_of(home: Path, run: RunFacts) -> Path:
    """An author's tree keeps its path from run to run, because agents remember paths."""
    name = "author" if run.role is Role.AUTHOR else f"{run.role}-{run.number}"
    return home / "workspaces" / run.task_id / name
