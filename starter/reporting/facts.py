"""What a report holds: plain data, the same for a terminal, for machines and for a page."""

from __future__ import annotations

from dataclasses import dataclass, field

from domain.projection import Check, Review
from domain.spending import Spending
from domain.told import ToldUsage


@dataclass(frozen=True)
class Word:
    """What a person said about the plan, when, in the receipt's words."""

    at: str
    text: str


@dataclass(frozen=True)
class RunReport:
    """One run. `ended_at` and `seconds` are empty and None while it is at work. Money is in nano-dollars.

    `metering` is a Metering, empty for what calls no model; what it spent is None where that is not known.
    `told` is what its CLI says that it used then: unverified, and in no sum.
    """

    run: str
    role: str
    number: int
    state: str
    outcome: str
    runtime: str
    model: str
    began_at: str
    ended_at: str
    seconds: float | None
    spent_nano_usd: int | None = 0
    metering: str = ""
    told: ToldUsage | None = None


@dataclass(frozen=True)
class TaskReport:
    """`proof` is `proven` or `unproven` once merged. `seconds` from its first begin to its end, or None.

    `checks` are those of the commit that counts, `reviews` what reviewers said of the commit that it stands at, and
    `earlier_reviews` what they said of commits before it, oldest first; both are without secrets. `metering` is what
    its agents' runs were that have begun, as `domain.metering.of_runs` puts it. `said` is what its agent says of the
    work, in its own words and without secrets. `commands` are what answers
    what it waits for. `moved_at` is its last receipt's time, or its last run's, empty where nothing was done yet;
    `moved` is whether that lies in the time that the report is about.
    """

    ordinal: int
    title: str
    state: str
    proof: str = ""
    pull_url: str = ""
    merged_sha: str = ""
    checks: tuple[Check, ...] = ()
    reviews: tuple[Review, ...] = ()
    earlier_reviews: tuple[Review, ...] = ()
    runs: int = 0
    check_runs: int = 0
    review_runs: int = 0
    crashes: int = 0
    worker_crashes: int = 0
    began_at: str = ""
    ended_at: str = ""
    moved_at: str = ""
    moved: bool = True
    seconds: float | None = None
    reason: str = ""
    waits_for: str = ""
    commands: tuple[str, ...] = ()
    said: str = ""
    attempts: tuple[RunReport, ...] = ()
    metering: str = ""


@dataclass(frozen=True)
class WaitReport:
    """What waits for a person, and what answers it. `task` is the box's ordinal, None for the plan itself."""

    plan: str
    task: int | None
    title: str
    text: str
    commands: tuple[str, ...]
    question_id: str = ""


@dataclass(frozen=True)
class Part:
    """A part of what was spent. `name` is a task's ordinal, a plan's slug, a role or a model.

    The first two have a `title`.
    """

    name: str
    spending: Spending
    title: str = ""


@dataclass(frozen=True)
class Cell:
    """The smallest part: one task's, or one plan's, in one role and with one model."""

    name: str
    role: str
    model: str
    spending: Spending


@dataclass(frozen=True)
class Costs:
    """What calls of models came to, split in ways of which each adds up to the whole.

    `budget_nano_usd` is the plan's, None where it names none.
    """

    whole: Spending = field(default_factory=Spending)
    tasks: tuple[Part, ...] = ()
    roles: tuple[Part, ...] = ()
    models: tuple[Part, ...] = ()
    cells: tuple[Cell, ...] = ()
    budget_nano_usd: int | None = None


@dataclass(frozen=True)
class Report:
    """A plan in one page. `head` is the receipt chain's hash at receipt `seq`, `seal` its newest signed head.

    `costs` are those of the time that the report is about. `confinement`, `metering` and `spent_nano_usd`, all that was
    ever spent or is held, are the view's.
    `since` is where that time begins, empty for all of it; then `tasks` are those that moved in it, or wait, and
    `still` says how many others are in which state.
    """

    plan_id: str
    title: str
    state: str
    repository: str
    base: str
    merge: str
    digest: str
    confinement: str
    asked: str
    words: tuple[Word, ...]
    tasks: tuple[TaskReport, ...]
    counts: dict[str, int]
    seq: int
    head: str
    paused: bool = False
    spent_nano_usd: int | None = 0
    sealed_seq: int = 0
    seal: str = ""
    waiting: tuple[WaitReport, ...] = ()
    costs: Costs = field(default_factory=Costs)
    since: str = ""
    made_at: str = ""
    still: dict[str, int] | None = None
    metering: str = ""


@dataclass(frozen=True)
class MorningReport:
    """All plans of an owner that moved since a moment, and whatever waits in any of them.

    `costs.tasks` has a part for each plan.
    """

    owner: str
    since: str
    made_at: str
    plans: tuple[Report, ...]
    waiting: tuple[WaitReport, ...]
    costs: Costs
