"""What a supervisor adds to the command that it runs, and the policy hook to every use of a tool."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from subprocess import DEVNULL

from domain.confinement import Confine, Confinement
from domain.rules import Policy
from runtimes import hooks
from runtimes.confiner import Confiner
from runtimes.folder import Ended, RunFolder
from runtimes.hooks import POLICY_FILE, TOLD, compile_policy
from runtimes.port import Job, Launch
from runtimes.sandbox import find_sandbox
from runtimes.shell import private_environment
from tests.bench.figures import Figure, Row, Skipped

_HOOK = Path(hooks.__file__).with_name("hook.py")
_COMMAND = ("sh", "-c", "true")
_INTERPRETER = (sys.executable, "-I", "-S", "-c", "pass")


def supervision(folder: Path, rounds: int) -> list[Row]:
    """A supervised run against its bare command, and against an interpreter that starts and does nothing."""
    ours = median(_cpu(partial(_supervised, folder / f"run-{number}")) for number in range(rounds))
    bare = median(_cpu(lambda: subprocess.run(_COMMAND, check=True)) for _ in range(rounds))
    python = median(_cpu(lambda: subprocess.run(_INTERPRETER, check=True)) for _ in range(rounds))
    figures: list[Row] = [
        Figure("a supervised `sh -c true` / the command alone, CPU", "ms", ours * 1000, bare * 1000),
        Figure("a supervised `sh -c true` / an empty Python, CPU", "ms", ours * 1000, python * 1000),
    ]
    if missing := find_sandbox().missing:
        return [*figures, Skipped("a confined `sh -c true`", missing)]
    celled = median(_cpu(partial(_supervised, folder / f"celled-{number}", confined=True)) for number in range(rounds))
    return [*figures, Figure("a confined `sh -c true` / one that is not, CPU", "ms", celled * 1000, ours * 1000)]


def hook(folder: Path, rounds: int) -> Figure:
    """The policy hook that is asked before a shell command, against an interpreter that does nothing."""
    policy = Policy(commands=("git push*",))
    job = Job("bench-1", "bench", "", "", folder, folder / "hooked", 60, brief="Do it.", policy=policy)
    # As whoever starts a run does: an agent's hook makes no folder.
    (job.folder / TOLD).mkdir(parents=True)
    for path, text in compile_policy(job, "claude").files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    asked = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "a && b | c"}}
    question = json.dumps({**asked, "cwd": str(folder)}).encode()
    command = (sys.executable, "-I", "-S", str(_HOOK), "claude", str(job.folder / POLICY_FILE), "50")
    ask = partial(subprocess.run, input=question, stdout=DEVNULL, check=True)
    ours = median(_cpu(partial(ask, command)) for _ in range(rounds))
    bare = median(_cpu(partial(ask, _INTERPRETER)) for _ in range(rounds))
    return Figure("the policy hook / an empty Python, CPU", "ms", ours * 1000, bare * 1000, most=1.5)


def _supervised(path: Path, *, confined: bool = False) -> None:
    folder = RunFolder(path)
    launch = Launch("bench-00000000-1-author-1", _COMMAND, Path("/"), {"PATH": "/usr/bin:/bin"}, 60)
    if confined:
        (path / "workspace").mkdir(parents=True)
        job = Job(launch.run_id, "bench", "", "", path / "workspace", path, 60, path="/usr/bin:/bin")
        private_environment(job)
        launch = Confiner(Confine.REQUIRED).confine(launch, job, Confinement.CONFINED)
    folder.spawn(launch, datetime.now(UTC) + timedelta(minutes=1))
    while not isinstance(folder.status(), Ended):
        time.sleep(0.005)


def _cpu(act: Callable[[], object]) -> float:
    """The seconds of CPU of the processes that this starts, once all of them have been waited for."""
    before = cpu_of_children()
    act()
    # A supervisor is waited for by a thread; its end follows its result.
    deadline = time.monotonic() + 5
    while cpu_of_children() == before and time.monotonic() < deadline:
        time.sleep(0.005)
    return cpu_of_children() - before


def cpu_of_children() -> float:
    """The seconds of CPU of every child that has been waited for, with its own."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
