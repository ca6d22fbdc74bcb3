"""What is handed over when a plan is published, begun or looked at: the inputs of workflows and activities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from domain.decision import Decision
from domain.duties import Actor, may
from domain.heartbeat import HeartbeatPolicy
from domain.lifecycle import Move
from domain.pull import Repository
from domain.run import Role
from domain.task import TaskFacts, TaskState


@dataclass(frozen=True)
class Publish:
    """A document to be published by its owner, as its starter read it.

    `file_name` gives a slug where the document has none; `repository` and `base` (empty for the
    default branch) are the document's own, said here so that the forge can be asked first. `revise` says that it
    is meant as another text of a plan that is confirmed: nobody changes one by mistaking its slug.
    """

    owner: str
    text: str
    repository: str
    base: str = ""
    file_name: str = ""
    by: str = ""
    revise: bool = False


@dataclass(frozen=True)
class FindRepository:
    """`base` is empty for the repository's default branch."""

    name: str
    base: str = ""


@dataclass(frozen=True)
class PublishTo:
    """A publication whose repository the forge has confirmed, with the base that it will be merged into."""

    publish: Publish
    repository: Repository
    base: str
    at: datetime


@dataclass(frozen=True)
class Decide:
    decision: Decision
    at: datetime


@dataclass(frozen=True)
class Word:
    """A decision as it arrives by signal at a plan's workflow, from a webhook or by hand in the UI.

    `task` is the box's ordinal, None for the whole plan; `names` is what the decision answers. Budgets are
    those of an approval that raises one, 0 where they stay as they are.
    """

    task: int | None = None
    names: str = ""
    text: str = ""
    by: str = ""
    budget_nano_usd: int = 0
    plan_budget_nano_usd: int = 0


@dataclass(frozen=True)
class PlanRef:
    plan_id: str
    owner: str


@dataclass(frozen=True)
class LookAtPlan:
    """`seen` is the seq of the receipt up to which the plan's story is known to whoever looks."""

    plan_id: str
    seen: int = 0


@dataclass(frozen=True)
class TaskRef:
    task_id: str
    plan_id: str
    owner: str
    title: str = ""


@dataclass(frozen=True)
class OwnerRef:
    owner: str


@dataclass(frozen=True)
class BeginRun:
    """`ordinal` and `command` tell which check; an author has neither."""

    task_id: str
    role: Role
    at: datetime
    ordinal: int = 0
    command: str = ""


class HostVerdict(StrEnum):
    """What the graph says of a host that does not answer."""

    WAIT = "wait"
    MOVED_ON = "moved_on"
    """The task no longer waits for this: a person, the forge or another workflow has moved it."""
    GONE = "gone"


@dataclass(frozen=True)
class AskAboutHost:
    """Whether to go on waiting for the host that a step's work lies on.

    `run_id` is empty where no run is concerned; `patience_over` says that the host was silent for
    longer than any restart takes.
    """

    task_id: str
    state: TaskState
    round: int
    run_id: str = ""
    patience_over: bool = False


@dataclass(frozen=True)
class SentMove:
    """A move on its way from a task's workflow to the activity that makes it.

    `by` is empty in one that was sent before moves named who causes them.
    """

    kind: str
    subject: str
    event: str
    key: str
    chain: str
    cause: str
    at: datetime
    facts: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""

    def arrived(self) -> Move:
        """The move that it is: the forge's where the workflow read it there, else its worker's, whatever it says.

        What names nobody is the forge's where it cannot be the worker's.
        """
        told = self.by or (Actor.WORKER if may(Actor.WORKER, self.kind, self.event) else Actor.FORGE)
        return Move(**{**vars(self), "by": Actor.FORGE if told == Actor.FORGE else Actor.WORKER})


@dataclass(frozen=True)
class Moves:
    """A task's moves, made together or not at all; `seen` is the task's last receipt when they were judged."""

    moves: tuple[SentMove, ...]
    seen: int

    @classmethod
    def of(cls, moves: Iterable[Move], seen: int) -> Moves:
        return cls(tuple(SentMove(**vars(move)) for move in moves), seen)


@dataclass(frozen=True)
class MovesReply:
    """The state that holds after the moves; empty when `refused` says why the table did not allow them.

    `task` is the task as it stands after moves that were made now, for its workflow to go on from.
    """

    state: str
    fresh: bool
    refused: str = ""
    task: TaskFacts | None = None


@dataclass(frozen=True)
class EnsureTasks:
    """Tasks that should have a workflow; `wake` also hints that they look at the facts again."""

    tasks: tuple[TaskRef, ...]
    wake: bool = False


@dataclass(frozen=True)
class Beat:
    """One beat of an owner's heart.

    `whole` asks for everything that should be alive, not just what is to begin; `follow` for every
    open pull request, not just those that somebody hinted at.
    """

    owner: str
    at: datetime
    whole: bool = False
    follow: bool = False


@dataclass(frozen=True)
class BeatReply:
    """What a beat decided.

    `wake` were granted a slot, or should re-read their pull request; `alive` should have a workflow,
    as should `plans`; `strays` are tasks that no longer watch the forge, but were hinted at.
    `closed_gate` says why no work was dispatched; `idle` that nothing confirmed is left to do; `policy`
    is what the worker that answered is set to.
    """

    wake: tuple[TaskRef, ...] = ()
    alive: tuple[TaskRef, ...] = ()
    plans: tuple[PlanRef, ...] = ()
    strays: tuple[TaskRef, ...] = ()
    closed_gate: str = ""
    idle: bool = False
    policy: HeartbeatPolicy = HeartbeatPolicy()


@dataclass(frozen=True)
class PushOrder:
    """Push exactly this commit, if the task is still in this state and at this epoch."""

    task_id: str
    epoch: int
    sha: str
    state: TaskState = TaskState.PUBLISHING


@dataclass(frozen=True)
class MergeOrder:
    """Merge exactly this commit of this pull request."""

    task_id: str
    number: int
    sha: str
