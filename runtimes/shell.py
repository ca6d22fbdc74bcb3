"""The runtimes without a model: `shell` runs the script in a task's text, and a check runs a command."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from domain.errors import WatchbillError
from domain.run import EndKind, Outcome
from domain.script import shell_block
from domain.told import ToldUsage
from runtimes.folder import RunFolder
from runtimes.hooks import TOLD
from runtimes.port import GIVEN, Installed, Job, Launch, RunResult, Verdict
from runtimes.scenes import Scene


class Shell:
    """The first fenced `sh` or `bash` block of a task is the work; it ends at its first failing command."""

    name = "shell"

    def launch(self, job: Job) -> Launch:
        """WatchbillError when the task has no such block: a plan with such a task is refused earlier."""
        block = shell_block(job.task_body)
        if block is None:
            raise WatchbillError(f"The task {job.task_title!r} has no fenced sh block: there is nothing to run.")
        interpreter, script = block
        env = private_environment(job)
        file = job.folder / "script"
        file.write_text(script)
        return Launch(job.run_id, (interpreter, "-eu", str(file)), job.workspace, env, job.timeout)

    def judge(self, result: RunResult, folder: RunFolder) -> Verdict:
        if result.kind is EndKind.EXITED and result.exit_code == 0:
            return Verdict(Outcome.DONE, 0, "")
        return unfinished(result)

    def scenes(self, stream: Iterable[Mapping[str, Any]]) -> Sequence[Scene]:
        return ()

    def usage(self, stream: Iterable[Mapping[str, Any]]) -> ToldUsage | None:
        return None

    def installed(self, path: str) -> Installed:
        return _with_shell(path)


class Check:
    """A command of the plan, run over what an author left: any exit code is a finding, and not a crash."""

    name = "check"

    def launch(self, job: Job) -> Launch:
        env = private_environment(job)
        return Launch(job.run_id, ("sh", "-c", job.command), job.workspace, env, job.timeout)

    def judge(self, result: RunResult, folder: RunFolder) -> Verdict:
        # An exit has a reason when the command could not even be run: that says nothing of the work.
        if result.kind is EndKind.EXITED and not result.reason:
            return Verdict(Outcome.DONE, result.exit_code, "")
        return unfinished(result)

    def scenes(self, stream: Iterable[Mapping[str, Any]]) -> Sequence[Scene]:
        return ()

    def usage(self, stream: Iterable[Mapping[str, Any]]) -> ToldUsage | None:
        return None

    def installed(self, path: str) -> Installed:
        return _with_shell(path)


def _with_shell(path: str) -> Installed:
    return Installed() if shutil.which("sh", path=path) else Installed(missing=f"there is no sh on {path}")


def unfinished(result: RunResult) -> Verdict:
    """What an end means that did not come to its own conclusion.

    `stopped` is kept for the graph's own word. Everything else is a crash, a lapsed lease too: the
    process has provably ended, and what it left lies here to be collected. `lost` is for a run whose
    host cannot be asked, which nobody who reads a result can mean.
    """
    outcome = Outcome.STOPPED if result.kind is EndKind.STOPPED else Outcome.CRASHED
    return Verdict(outcome, result.exit_code, result.reason or f"it exited with {result.exit_code}")


def private_environment(job: Job) -> dict[str, str]:
    """Make the run's private directories and note, and answer the environment that names them."""
    home, scratch, note = (job.folder / name for name in ("home", "tmp", "note"))
    for directory in (job.folder, home, scratch, job.folder / TOLD):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    note.write_text(job.note)
    given = job.folder / GIVEN
    return {
        "PATH": job.path,
        "HOME": str(home),
        "TMPDIR": str(scratch),
        "LANG": "C.UTF-8",
        "WATCHBILL_TASK": job.task_id,
        "WATCHBILL_NOTE": str(note),
        **({"WATCHBILL_GIVEN": str(given)} if given.is_dir() else {}),
    }
