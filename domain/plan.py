"""A plan: a document that someone owns, and the life it has once it is published.

A plan that nobody has published is a file on somebody's disk and no fact of ours, so the
lifecycle starts at publication.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.agents import AGENTS
from domain.confinement import Confine, Network
from domain.lifecycle import Lifecycle, table
from domain.metering import Meter, Metering
from domain.rules import NOTHING_REFUSED, Policy


class PlanState(StrEnum):
    AWAITING_CONFIRMATION = "awaiting_confirmation"
    CONFIRMED = "confirmed"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    ARCHIVED = "archived"


class PlanEvent(StrEnum):
    PUBLISH = "publish"
    REPUBLISH = "republish"
    CONFIRM = "confirm"
    REVISE = "revise"
    BEGIN = "begin"
    PAUSE = "pause"
    RESUME = "resume"
    RAISED = "raised"
    COMPLETE = "complete"
    REOPEN = "reopen"
    ARCHIVE = "archive"


P, E = PlanState, PlanEvent

PLAN = Lifecycle(
    "plan",
    table(
        (None, E.PUBLISH, P.AWAITING_CONFIRMATION),
        (P.AWAITING_CONFIRMATION, E.REPUBLISH, P.AWAITING_CONFIRMATION),
        (P.AWAITING_CONFIRMATION, E.CONFIRM, P.CONFIRMED),
        (P.CONFIRMED, E.BEGIN, P.IN_PROGRESS),
        # Pause is a gate that the heartbeat reads, not a state: what runs, runs on.
        (P.CONFIRMED, E.PAUSE, P.CONFIRMED),
        (P.CONFIRMED, E.RESUME, P.CONFIRMED),
        (P.IN_PROGRESS, E.PAUSE, P.IN_PROGRESS),
        (P.IN_PROGRESS, E.RESUME, P.IN_PROGRESS),
        # A person lets it cost more.
        (P.CONFIRMED, E.RAISED, P.CONFIRMED),
        (P.IN_PROGRESS, E.RAISED, P.IN_PROGRESS),
        # A person has confirmed another text. A plan that has ended is opened again for it.
        (P.CONFIRMED, E.REVISE, P.CONFIRMED),
        (P.IN_PROGRESS, E.REVISE, P.IN_PROGRESS),
        # A plan whose boxes were all checked, or cancelled before the first began, has nothing to begin.
        ((P.CONFIRMED, P.IN_PROGRESS), E.COMPLETE, P.COMPLETED),
        # A person retries a failed task or revises the plan, or the forge reopens what was closed.
        ((P.COMPLETED, P.ARCHIVED), E.REOPEN, P.IN_PROGRESS),
        ((P.AWAITING_CONFIRMATION, P.COMPLETED), E.ARCHIVE, P.ARCHIVED),
    ),
    ended=frozenset({P.COMPLETED, P.ARCHIVED}),
)


class RevisionState(StrEnum):
    PROPOSED = "proposed"
    CONFIRMED = "confirmed"
    WITHDRAWN = "withdrawn"


class RevisionEvent(StrEnum):
    PROPOSE = "propose"
    CONFIRM = "confirm"
    WITHDRAW = "withdraw"


REVISION = Lifecycle(
    "revision",
    table(
        (None, RevisionEvent.PROPOSE, RevisionState.PROPOSED),
        (RevisionState.PROPOSED, RevisionEvent.CONFIRM, RevisionState.CONFIRMED),
        (RevisionState.PROPOSED, RevisionEvent.WITHDRAW, RevisionState.WITHDRAWN),
    ),
    ended=frozenset({RevisionState.CONFIRMED, RevisionState.WITHDRAWN}),
)


class MergePolicy(StrEnum):
    BY_HAND = "by-hand"
    WHEN_PROVEN = "when-proven"


@dataclass(frozen=True)
class TaskSpec:
    """One top-level checkbox as the document has it; plan-wide defaults are already filled in.

    `after` holds ordinals of this plan; `timeout` is the wall clock of one run in seconds.
    `budget_nano_usd` is None where neither the box nor the plan names one. `struck` is a box that was struck
    out: it keeps its ordinal and starts nothing. `own` names the attributes that the box has itself: what a
    default of the plan's cannot change.
    """

    ordinal: int
    title: str
    body: str
    line: int
    done: bool = False
    struck: bool = False
    after: tuple[int, ...] = ()
    runtime: str = "shell"
    model: str = ""
    budget_nano_usd: int | None = None
    timeout: int = 3600
    own: tuple[str, ...] = field(default=(), compare=False)

    @property
    def starts_nothing(self) -> bool:
        """Whether the box becomes no task: it was checked, or struck out, when its plan was confirmed."""
        return self.done or self.struck


@dataclass(frozen=True)
class PlanSpec:
    """A document that parsed without a fault. `spec` is its prose, `digest` names its exact text.

    `review_budget_nano_usd` is what one review may cost, where that is less than what its task has left.
    `policy` is what the plan refuses; its owner's own policy comes on top of it. `confine` can only ask
    for more than the worker does; `network` is what checks and scripts reach, and agents that are not metered.
    `lines` says where each key of the front matter stands.
    """

    slug: str
    title: str
    repository: str
    digest: str
    tasks: tuple[TaskSpec, ...]
    base: str = ""
    spec: str = ""
    reviewers: tuple[str, ...] = ()
    budget_nano_usd: int | None = None
    review_budget_nano_usd: int | None = None
    concurrency: int = 1
    attempts: int = 4
    checks: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    merge: MergePolicy = MergePolicy.BY_HAND
    policy: Policy = NOTHING_REFUSED
    confine: Confine = Confine.AUTO
    network: Network = Network.NONE
    metering: Meter = Meter.ON
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def has_agents(self) -> bool:
        return any(task.runtime in AGENTS for task in self.tasks)

    @property
    def expected_metering(self) -> str:
        """What the runs of its agents are to be, a Metering; empty where it has no agents."""
        if not self.has_agents:
            return ""
        return Metering.UNMETERED if self.metering is Meter.OFF else Metering.METERED
