"""A stage for a rehearsal: an installation with a stand-in GitHub, which leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from forge.aside import delete
from runtimes.folder import Live, live_in
from starter.installing import RELAY, WEBHOOKS, WORKER
from starter.local.addresses import Addresses
from starter.local.installation import Installation, Local
from starter.settings import Settings, load
from starter.sources import copy_of
from starter.standin import environment_for_stand_in, stand_in

_RUNS_END_WITHIN = 15.0
"""Seconds; a run's processes are killed two seconds after they were asked to end."""


@dataclass(frozen=True)
class Stage:
    """What is up for a rehearsal, and the settings by which commands find it."""

    local: Local
    settings: Settings

    @property
    def addresses(self) -> Addresses:
        return self.local.addresses


@asynccontextmanager
async def stage(owner: str, repository: str, source: Path, tell: Callable[[str], None]) -> AsyncIterator[Stage]:
    """Everything that a plan needs, with a copy of `source` as the repository of that name in the stand-in.

    It is told nothing of what this process was told, no address and no credentials, so nothing leaves
    the machine. All of it ends with the block, its home included.
    """
    async with _temporary_home() as home:
        copied = await asyncio.to_thread(copy_of, source, home / "source.git")
        environment = environment_for_stand_in(_untold(os.environ))
        installation = Installation(
            home=home,
            owner=owner,
            github=replace(stand_in(home, {repository: copied}), port=0),
            environment=environment,
            temporal_port=0,
            ui_port=0,
            webhooks_port=0,
            relay_port=0,
            worker=WORKER,
            webhooks=WEBHOOKS,
            relay=RELAY,
        )
        async with Local(installation, tell) as local:
            settings = load({**environment, "WATCHBILL_HOME": str(home), "WATCHBILL_OWNER": owner})
            yield Stage(local, settings)


@asynccontextmanager
async def _temporary_home() -> AsyncIterator[Path]:
    home = Path(tempfile.mkdtemp(prefix="watchbill-rehearsal-"))
    try:
        yield home
    finally:
        await asyncio.to_thread(_end_runs, home / "runs")
        await asyncio.to_thread(_remove, home)


def _end_runs(runs: Path) -> None:
    """A run outlives its worker, but not the rehearsal: nobody would ever look at it again."""
    live = live_in(runs)
    for run in live:
        run.stop("the rehearsal is over")
    given_up = time.monotonic() + _RUNS_END_WITHIN
    while any(isinstance(run.status(), Live) for run in live) and time.monotonic() < given_up:
        time.sleep(0.05)


def _remove(home: Path) -> None:
    # What a run made read-only is ours all the same, and so is what somebody writes while it is deleted.
    for _ in range(3):
        with suppress(OSError):
            delete(home)


def _untold(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what tells an installation where it is and who it is.

    How runs are confined is no such thing: whoever requires it means rehearsals too.
    """
    told, kept = ("WATCHBILL_", "TEMPORAL_", "GITHUB_", "GH_"), "WATCHBILL_CONFINE"
    return {name: value for name, value in environment.items() if name.startswith(kept) or not name.startswith(told)}
