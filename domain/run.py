"""A run: one attempt of an agent at a task, one check of a commit, or one review of it, on one host."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from domain.duties import Actor
from domain.lifecycle import Lifecycle, table


class Role(StrEnum):
    AUTHOR = "author"
    CHECK = "check"
    REVIEWER = "reviewer"

    @property
    def judges(self) -> bool:
        """Whether it looks at a commit in a clean checkout, and makes none."""
        return self is not Role.AUTHOR

    @property
    def actor(self) -> Actor:
        """As whom what such a run says by itself is written down."""
        return Actor(self.value)


class RunState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    FINISHED = "finished"
    CRASHED = "crashed"
    LOST = "lost"
    REFUSED = "refused"
    STOPPED = "stopped"


class RunEvent(StrEnum):
    START = "start"
    SPAWN = "spawn"
    FINISH = "finish"
    CRASH = "crash"
    LOSE = "lose"
    REFUSE = "refuse"
    STOP = "stop"
    COLLECT = "collect"
    WORKER_CRASHED = "worker_crashed"


S, E = RunState, RunEvent
LIVE = (S.STARTING, S.RUNNING)

RUN = Lifecycle(
    "run",
    table(
        (None, E.START, S.STARTING),
        (S.STARTING, E.SPAWN, S.RUNNING),
        # A run can end before anyone saw it spawn: the worker died in between.
        (LIVE, E.FINISH, S.FINISHED),
        (LIVE, E.CRASH, S.CRASHED),
        # Silent beyond its lease; or ended, but what it left is on a host that is gone.
        ((*LIVE, S.FINISHED, S.CRASHED, S.STOPPED, S.REFUSED), E.LOSE, S.LOST),
        (LIVE, E.REFUSE, S.REFUSED),
        (LIVE, E.STOP, S.STOPPED),
        # What a run left in its workspace is committed and preserved, however it ended.
        (S.FINISHED, E.COLLECT, S.FINISHED),
        (S.CRASHED, E.COLLECT, S.CRASHED),
        (S.STOPPED, E.COLLECT, S.STOPPED),
        (S.REFUSED, E.COLLECT, S.REFUSED),
        # The worker beside a run died; the run itself may well live on.
        *((state, E.WORKER_CRASHED, state) for state in S),
    ),
    ended=frozenset({S.FINISHED, S.CRASHED, S.LOST, S.REFUSED, S.STOPPED}),
)

EVIDENCE = Lifecycle("evidence", table((None, "record", "recorded")), ended=frozenset({"recorded"}))
"""Evidence is a fact that never changes; its one move gives it a receipt like everything else."""


class EvidenceKind(StrEnum):
    CHECK = "check"
    CHANGES = "changes"
    """The paths by which a commit of ours differs from its base, one a line."""
    DIFF = "diff"
    REVIEW = "review"
    AGENT_CRASH = "agent_crash"
    WORKER_CRASH = "worker_crash"
    USAGE = "usage"
    """What the CLI of an unmetered run says that it used: its own word, which nobody here can check."""


@dataclass(frozen=True)
class RunFacts:
    """A run's row. `start_sha` is the commit it began from, `head_sha` the commit made of what it left.

    `model` is the name of the model it uses, empty without one; `outcome` what it amounted to, empty while
    it lives; `session` the id under which its CLI remembers it, empty where no turn began; `asked` what it asked a
    person.
    `exit_code` is the process's exit status, negative for a signal, None while unknown.
    `confinement` is a Confinement, empty until the run's process begins. `metering` is a Metering from then on, and
    empty for what is no agent's.
    `cap_nano_usd` is what its capability is good for, 0 for no bound of its own; None until the process begins,
    of what is no agent's, and of what is not metered.
    `brief` is the hash of what it was told, empty until the process begins and of what is no agent's.
    `ordinal` counts the check commands of a plan from 1, or its reviewers; it is 0 for an author. `started_at` is
    ISO 8601.
    `revision` is its task's when it began: the text that it was made for.
    """

    id: str
    plan_id: str
    task_id: str
    role: Role
    number: int
    round: int
    epoch: int
    runtime: str
    host: str
    state: RunState
    start_sha: str = ""
    head_sha: str = ""
    command: str = ""
    ordinal: int = 0
    exit_code: int | None = None
    reason: str = ""
    started_at: str = ""
    model: str = ""
    outcome: str = ""
    session: str = ""
    asked: str = ""
    confinement: str = "unconfined"
    cap_nano_usd: int | None = None
    metering: str = ""
    brief: str = ""
    revision: int = 0

    @property
    def live(self) -> bool:
        return self.state in LIVE


class EndKind(StrEnum):
    """How a run's process came to its end, as the supervisor or its absence tells."""

    EXITED = "exited"
    KILLED = "killed"
    TIMED_OUT = "timed_out"
    STOPPED = "stopped"
    LEASE_LAPSED = "lease_lapsed"
    SUPERVISOR_DIED = "supervisor_died"
    NEVER_STARTED = "never_started"


class Outcome(StrEnum):
    """What a run amounts to, told from how its process ended and from what it said: no exit status is trusted."""

    DONE = "done"
    """It came to its own end, with a result where one is asked for."""
    ASKED = "asked"
    """It stopped to ask a person something."""
    NO_RESULT = "no_result"
    """It ended as if it were done, and the result that was asked for is missing."""
    SCHEMA_BROKEN = "schema_broken"
    """Its result is not of the form that was asked for."""
    DENIED = "denied"
    """It ended because what it wanted to do was not allowed."""
    REFUSED = "refused"
    """The model's door refused it for want of money."""
    DROPPED = "dropped"
    """It lost the model in the middle of an answer, or could not reach it."""
    CRASHED = "crashed"
    STOPPED = "stopped"


STATE_OF: dict[Outcome, RunState] = {
    Outcome.DONE: RunState.FINISHED,
    Outcome.ASKED: RunState.FINISHED,
    Outcome.NO_RESULT: RunState.CRASHED,
    Outcome.SCHEMA_BROKEN: RunState.CRASHED,
    Outcome.DENIED: RunState.REFUSED,
    Outcome.REFUSED: RunState.REFUSED,
    Outcome.DROPPED: RunState.CRASHED,
    Outcome.CRASHED: RunState.CRASHED,
    Outcome.STOPPED: RunState.STOPPED,
}
"""The state that a run is in after each outcome."""


@dataclass(frozen=True)
class RunEnd:
    """What the activity that watched a run answers: the run's state now and how it got there.

    `question` is what an agent asks a person; `session` names what its CLI remembers of the task. `refused`
    is the last use of a tool that policy refused it, however it went on; empty where nothing was refused.
    """

    run_id: str
    state: RunState
    kind: EndKind
    exit_code: int | None = None
    reason: str = ""
    tail: str = ""
    outcome: Outcome = Outcome.DONE
    question: str = ""
    session: str = ""
    refused: str = ""


@dataclass(frozen=True)
class Collected:
    """What a run left, as a commit of ours: `head_sha` equals `start_sha` when nothing changed.

    `start_sha` is what the branch began from (the base, or a branch that already existed);
    `base_sha` is the remote base it is measured against, `changed` how many paths differ from it.
    `strays` are the first of those outside the plan's `paths`, `stray_count` how many there are;
    `faults` says in sentences what else may not be published.
    """

    run_id: str
    base_sha: str
    start_sha: str
    head_sha: str
    tree_sha: str
    changed: int = 0
    strays: tuple[str, ...] = ()
    stray_count: int = 0
    faults: tuple[str, ...] = ()
