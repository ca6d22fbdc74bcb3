"""What an agent's CLI costs under the supervisor and in a cell, against the same command line by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from statistics import median
from subprocess import DEVNULL

from domain.confinement import Confine, Confinement
from rehearsal.server import Rehearsal
from runtimes.confiner import Confiner
from runtimes.folder import Ended, RunFolder
from runtimes.port import Door, Job, Launch
from runtimes.registry import RUNTIMES
from runtimes.sandbox import find_sandbox
from tests.bench.figures import Figure, Row, Skipped
from tests.bench.supervising import cpu_of_children

MODELS = {"claude": "claude-sonnet-4-6", "codex": "gpt-5.5", "opencode": "rehearsal"}
_BRIEF = "# The task in hand\n\n```sh\necho hi > hi.txt\n```\n"
_SECONDS = 240
_numbers = count(1)


def agents(folder: Path, rounds: int, path: str) -> Iterator[Row]:
    """Rows for each CLI on this PATH: one task with one command, over the stand-in's model."""
    missing = find_sandbox().missing
    with Rehearsal(folder / "models") as rehearsal:
        for cli in MODELS:
            if not shutil.which(cli, path=path):
                yield Skipped(cli, "it is not on PATH; `make agents` puts it into .agents")
                continue
            # In turns, so that what else goes on strikes all of them.
            turns = [_turn(cli, folder, rehearsal.models_url, path, celled=not missing) for _ in range(rounds)]
            celled, ours, alone = (median(each) for each in zip(*turns, strict=True))
            yield Figure(f"{cli} under its supervisor / alone, CPU", "s", ours, alone, most=1.2)
            if missing:
                yield Skipped(f"{cli} confined", missing)
            else:
                yield Figure(f"{cli} confined / not, under its supervisor, CPU", "s", celled, ours)


def _turn(cli: str, folder: Path, models: str, path: str, *, celled: bool) -> tuple[float, float, float]:
    """The seconds of CPU of one run in a cell, or 0, of one without, and of the command by itself."""

    def launch(how: Confinement = Confinement.UNCONFINED) -> Launch:
        return _launch(cli, folder, models, path, how)

    confined = _supervised(launch(Confinement.CONFINED)) if celled else 0.0
    return confined, _supervised(launch()), _alone(launch())


def _launch(cli: str, folder: Path, models: str, path: str, how: Confinement) -> Launch:
    number = next(_numbers)
    work = folder / f"work-{number}"
    subprocess.run(["git", "init", "--quiet", str(work)], check=True)
    job = Job(
        run_id=f"bench-0a1b2c3d-1-author-{number}",
        task_id="bench-0a1b2c3d-1",
        task_title="Do it",
        task_body="",
        workspace=work,
        folder=folder / f"run-{number}",
        timeout=_SECONDS,
        path=path,
        brief=_BRIEF,
        model=MODELS[cli],
        memory=folder / f"memory-{number}",
        door=Door(models, "", "a-token"),
    )
    confiner = Confiner(Confine.AUTO)
    return confiner.confine(RUNTIMES[cli].launch(confiner.job(job, how)), job, how)


def _supervised(launch: Launch) -> float:
    run = RunFolder(launch.cwd.with_name(f"run-of-{launch.cwd.name}"))
    before = cpu_of_children()
    run.spawn(launch, datetime.now(UTC) + timedelta(seconds=_SECONDS))
    while not isinstance(run.status(), Ended):
        time.sleep(0.02)
    _require_done(launch)
    # The supervisor itself is waited for by a thread, and counts once it has been.
    while cpu_of_children() == before:
        time.sleep(0.01)
    return cpu_of_children() - before


def _alone(launch: Launch) -> float:
    before = cpu_of_children()
    with Path(launch.stdin or os.devnull).open("rb") as told:
        command = [shutil.which(launch.argv[0], path=launch.env["PATH"]) or launch.argv[0], *launch.argv[1:]]
        subprocess.run(command, cwd=launch.cwd, env=launch.env, stdin=told, stdout=DEVNULL, stderr=DEVNULL, check=True)
    _require_done(launch)
    return cpu_of_children() - before


def _require_done(launch: Launch) -> None:
    """A CLI that did nothing costs nothing."""
    assert (launch.cwd / "hi.txt").exists(), f"{launch.argv[0]} did not do its task"
