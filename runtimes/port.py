"""The port: what a runtime takes, what it makes of it, and how it judges the end.

A runtime is a file in this package and a line in the registry. It turns a job into a launch (a
command line, a whole environment, and whatever files that command needs in the run's folder) and
an end into a verdict. How processes are started, watched and ended is the supervisor's, the same
for all; what confines a run or gives it a terminal is for the supervisor and the launch, not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from domain.rules import NOTHING_REFUSED, Policy
from domain.run import EndKind, Outcome, Role
from domain.told import ToldUsage

if TYPE_CHECKING:
    from runtimes.folder import RunFolder
    from runtimes.scenes import Scene

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

PRIVATE = ("home", "tmp")
"""What of a run's folder is the run's own to write: its HOME and its TMPDIR."""

GIVEN = "given"
"""What of a run's folder holds the artifacts of earlier tasks that it is given, to read and not to write."""

ROWS, COLUMNS = 40, 120
"""The size of the terminal that a run on one has."""


@dataclass(frozen=True)
class Door:
    """Where an agent finds its model, its brief and us: one address, one credential.

    `models` is the base address of model calls: `{models}/anthropic` for Anthropic's API, whose own
    paths begin with /v1, and `{models}/openai/v1` for OpenAI's two. `mcp` is the address of our tools,
    empty where there are none. `token` is the run's capability; it goes into files of mode 0600 only.
    `cap_nano_usd` is what it is good for, 0 where that has no bound of its own.
    """

    models: str
    mcp: str
    token: str = field(repr=False)
    cap_nano_usd: int = 0


@dataclass(frozen=True)
class Login:
    """How an agent reaches its model around the door: `folder` is where its CLI has logged in on this host.

    `anthropic` and `openai` are the base addresses of the two APIs, without their version; empty for the CLI's own.
    """

    folder: Path
    anthropic: str = ""
    openai: str = ""


@dataclass(frozen=True)
class Job:
    """What is to be done, as the work graph has it.

    `workspace` is the directory to work in; `folder` is the run's own, for the control plane's files
    and the run's private ones. `note` is what this run must know beyond the task's text. `timeout` is
    the wall clock in seconds. `command` is set for checks only. `path` is the PATH of the run.

    For agents: `brief` is the whole prompt of a run that begins afresh, `reminder` what one is told again that may
    have forgotten it (empty: the brief), `model` the model's name as its
    maker has it, `door` the only address they need. `memory` is the folder that their CLI keeps its
    sessions in, the same for every run of a task and role until one breaks off before its first turn;
    `session` is the id of one that is to be gone on with if it is there and whole, and empty for a run that
    begins afresh. `schema` is the JSON Schema of the result.
    `policy` says what is refused. `confined` says that the run will be, and its CLI need not see to it.
    `login` is set for a run that is unmetered: its model is reached by that, and the door is for all the rest.
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
    role: str = "author"
    brief: str = ""
    reminder: str = ""
    model: str = ""
    memory: Path | None = None
    session: str = ""
    schema: Mapping[str, Any] | None = None
    door: Door | None = None
    policy: Policy = NOTHING_REFUSED
    confined: bool = False
    login: Login | None = None

    @property
    def reads_only(self) -> bool:
        """Whether it is a reviewer's: what it is to judge is not its to change, nor to be told by."""
        return self.role == Role.REVIEWER


@dataclass(frozen=True)
class Passage:
    """The one way out of a cell: whatever connects to `inside` in there is carried to `outside`. Host and port."""

    inside: tuple[str, int]
    outside: tuple[str, int]


@dataclass(frozen=True)
class Cell:
    """What confines a run: the command line in front of its own, and its way out, if it has one."""

    argv: tuple[str, ...]
    passage: Passage | None = None


@dataclass(frozen=True)
class Launch:
    """What the supervisor runs. `env` is complete: nothing is inherited from any process of ours.

    `timeout` and `idle` (no output; 0 is no limit) are in seconds, `output_limit` is the bytes kept on
    disk, `grace` the seconds between SIGTERM and SIGKILL. `stdin` is a file that the agent reads to its
    end; without one its input is empty.

    Where `stream` is set, standard output is lines of JSON that are kept apart from the rest, as
    RunFolder.stream gives them back: another `output_limit` bytes (room for two lines at least) and the
    first 64 KiB. Of a line longer than `line_limit` bytes only the start is kept.

    Where `pty` is set, the agent has a terminal of 40 rows and 120 columns, at which nobody types: it is its
    controlling terminal, and its input unless `stdin` names a file. What it draws is its output; it has no
    stream then. `TERM` is `linux` unless `env` has another.

    `fixed` are files of ours among what the agent may write, that it may not write all the same where it is
    confined. `cell` confines it.
    """

    run_id: str
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    timeout: float
    idle: float = 0.0
    output_limit: int = 1 << 20
    grace: float = 2.0
    stdin: Path | None = None
    stream: bool = False
    line_limit: int = 1 << 20
    pty: bool = False
    fixed: tuple[Path, ...] = ()
    cell: Cell | None = None


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
    """What an end means for the run, and why in a few words.

    `session` is the id under which the CLI goes on with it, empty where no turn began; `result` what it answered
    by the CLI's own means, as yet unchecked.
    """

    outcome: Outcome
    exit_code: int | None
    reason: str
    session: str = ""
    result: Any = None


@dataclass(frozen=True)
class Installed:
    """Whether a runtime can work on this host.

    `version` is its program's, empty where that is not known; `missing` says in a sentence what it lacks,
    and is empty where it lacks nothing. `mend` is the command that installs the version that we are tested
    with, empty where that is the one there.
    """

    version: str = ""
    missing: str = ""
    mend: str = ""


class Runtime(Protocol):
    """What can make a run. `name` is what a plan calls it."""

    name: str

    def launch(self, job: Job) -> Launch:
        """Write what the command needs into `job.folder` and say how to run it; repeatable."""
        ...

    def judge(self, result: RunResult, folder: RunFolder) -> Verdict:
        """What this end means; `folder` holds the output and events where an exit code is not enough."""
        ...

    def scenes(self, stream: Iterable[Mapping[str, Any]]) -> Sequence[Scene]:
        """What a person would read in a stream of its, or in a piece of one; a runtime without one has none."""
        ...

    def usage(self, stream: Iterable[Mapping[str, Any]]) -> ToldUsage | None:
        """What a whole stream of its says that it used: its own word. None where it says nothing, or a part is gone."""
        ...

    def installed(self, path: str) -> Installed:
        """What there is of it on this PATH; may start its program, and waits for that some seconds."""
        ...


class Agent(Runtime, Protocol):
    """A runtime with a model, which it can reach by a login of its own as well."""

    def login(self, folder: Path, model: str = "") -> Mapping[str, str]:
        """What a run is given of the login that its CLI has in this folder, as texts of files in its memory.

        Without a model, for any that it is good for. Raises NoLogin where there is none, or none that is good for
        this.
        """
        ...
