"""The port: what a runtime takes, what it makes of it, and how it judges the end.

A runtime is a file in this package and a line in the registry. It turns a job into a launch (a
command line, a whole environment, and whatever files that command needs in the run's folder) and
an end into a verdict. How processes are started, watched and ended is the supervisor's, the same
for all; what confines a run or gives it a terminal is for the supervisor and the launch, not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from domain.run import EndKind, RunState

if TYPE_CHECKING:
    from runtimes.folder import RunFolder

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Job:
    """What is to be done, as the work graph has it.

    `workspace` is the directory to work in; `folder` is the run's own, for the control plane's files
    and the run's private ones. `note` is what this run must know beyond the task's text. `timeout` is
    the wall clock in seconds. `command` is set for checks only. `path` is the PATH of the run.
    """

    run_id: str
    task_id: str
    task_title: str
    task_body: str
    workspace: Path
    folder: Path
    timeout: int
    note: str = ""
    command: str = ""
    path: str = DEFAULT_PATH


@dataclass(frozen=True)
class Launch:
    """What the supervisor runs. `env` is complete: nothing is inherited from any process of ours.

    `timeout` and `idle` (no output; 0 is no limit) are in seconds, `output_limit` is the bytes kept on
    disk, `grace` the seconds between SIGTERM and SIGKILL.
    """

    run_id: str
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    timeout: float
    idle: float = 0.0
    output_limit: int = 1 << 20
    grace: float = 2.0


@dataclass(frozen=True)
class RunResult:
    """How a run's processes came to their end, as `result.json` has it.

    `exit_code` is negative for a signal, None when no agent began or none was seen to end. `reason`
    is empty when the agent simply exited. `output_bytes` counts all output, of which the tail is
    kept when `truncated`. `leftovers` is how many processes outlived the agent and were ended.
    """

    kind: EndKind
    exit_code: int | None
    reason: str
    started_at: datetime
    ended_at: datetime
    output_bytes: int = 0
    truncated: bool = False
    leftovers: int = 0


@dataclass(frozen=True)
class Verdict:
    """What an end means for the run: its state from now on, and why in a few words."""

    state: RunState
    exit_code: int | None
    reason: str


class Runtime(Protocol):
    """What can make a run. `name` is what a plan calls it."""

    name: str

    def launch(self, job: Job) -> Launch:
        """Write what the command needs into `job.folder` and say how to run it; repeatable."""
        ...

    def judge(self, result: RunResult, folder: RunFolder) -> Verdict:
        """What this end means; `folder` holds the output and events where an exit code is not enough."""
        ...
