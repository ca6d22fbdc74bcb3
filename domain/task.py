"""A task: one top-level checkbox, one branch, one pull request, and the life it leads to get there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from domain.lifecycle import Lifecycle, table
from domain.review import ReviewFacts
from domain.run import RunFacts


class TaskState(StrEnum):
    PENDING = "pending"
    WORKING = "working"
    CHECKING = "checking"
    REVIEWING = "reviewing"
    PUBLISHING = "publishing"
    IN_REVIEW = "in_review"
    PAUSED = "paused"
    MERGED = "merged"
    NO_CHANGES = "no_changes"
    CLOSED = "closed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TaskEvent(StrEnum):
    CONFIRM = "confirm"
    BEGIN = "begin"
    WORKED = "worked"
    NOTHING_CHANGED = "nothing_changed"
    CHECKED = "checked"
    CLEARED = "cleared"
    CHECKS_FAILED = "checks_failed"
    BRANCH_MOVED = "branch_moved"
    HEAD_MOVED = "head_moved"
    WORK_LOST = "work_lost"
    BLOCKED = "blocked"
    PUBLISHED = "published"
    CHANGES_REQUESTED = "changes_requested"
    CI_FAILED = "ci_failed"
    CONFLICTED = "conflicted"
    APPROVED = "approved"
    OUTDATED = "outdated"
    RAISED = "raised"
    REVISE = "revise"
    PAUSE = "pause"
    RESUME_PENDING = "resume_pending"
    RESUME_WORKING = "resume_working"
    RESUME_CHECKING = "resume_checking"
    RESUME_REVIEWING = "resume_reviewing"
    RESUME_PUBLISHING = "resume_publishing"
    RESUME_IN_REVIEW = "resume_in_review"
    FAIL = "fail"
    RETRY = "retry"
    CANCEL = "cancel"
    MERGED = "merged"
    CLOSED = "closed"
    REOPENED = "reopened"


T, E = TaskState, TaskEvent

SLOTTED = (T.WORKING, T.CHECKING, T.REVIEWING, T.PUBLISHING)
"""The states in which a task holds one of the owner's slots: it may run processes."""

RUNNABLE = (T.PENDING, *SLOTTED, T.IN_REVIEW)
SUCCEEDED = (T.MERGED, T.NO_CHANGES)
ENDED = (T.MERGED, T.NO_CHANGES, T.CLOSED, T.FAILED, T.CANCELLED)

RESUME_AT: dict[TaskState, TaskEvent] = {
    T.PENDING: E.RESUME_PENDING,
    T.WORKING: E.RESUME_WORKING,
    T.CHECKING: E.RESUME_CHECKING,
    T.REVIEWING: E.RESUME_REVIEWING,
    T.PUBLISHING: E.RESUME_PUBLISHING,
    T.IN_REVIEW: E.RESUME_IN_REVIEW,
}

TASK = Lifecycle(
    "task",
    table(
        (None, E.CONFIRM, T.PENDING),
        (T.PENDING, E.BEGIN, T.WORKING),
        # Through the flow.
        (T.WORKING, E.WORKED, T.CHECKING),
        (T.CHECKING, E.CHECKED, T.REVIEWING),
        ((T.CHECKING, T.REVIEWING), E.CLEARED, T.PUBLISHING),
        (T.PUBLISHING, E.PUBLISHED, T.IN_REVIEW),
        # A person's word that this very head may be merged.
        (T.IN_REVIEW, E.APPROVED, T.IN_REVIEW),
        # The forge does not let it be merged yet, and says why.
        (T.IN_REVIEW, E.BLOCKED, T.IN_REVIEW),
        # Nothing to deliver: the diff against the base is empty.
        ((T.WORKING, T.PUBLISHING), E.NOTHING_CHANGED, T.NO_CHANGES),
        # A person pushed to the pull request: their commit is kept, and proven anew.
        (T.IN_REVIEW, E.HEAD_MOVED, T.CHECKING),
        # Back to the agent; every kind draws on the one bound on runs.
        (T.CHECKING, E.CHECKS_FAILED, T.WORKING),
        (T.PUBLISHING, E.BRANCH_MOVED, T.WORKING),
        ((T.REVIEWING, T.IN_REVIEW), E.CHANGES_REQUESTED, T.WORKING),
        (T.IN_REVIEW, E.CI_FAILED, T.WORKING),
        (T.IN_REVIEW, E.CONFLICTED, T.WORKING),
        # It was proven by rules that the plan has no more: it came back from an end that a revision does not touch.
        (T.IN_REVIEW, E.OUTDATED, T.WORKING),
        # The commit lay on a host that is gone, and had not been pushed.
        ((T.CHECKING, T.REVIEWING, T.PUBLISHING), E.WORK_LOST, T.WORKING),
        # A person lets it cost more.
        *((state, E.RAISED, state) for state in (*RUNNABLE, T.PAUSED)),
        # A person has confirmed another text of what has not begun, or is paused.
        (T.PENDING, E.REVISE, T.PENDING),
        (T.PAUSED, E.REVISE, T.PAUSED),
        # Waiting for a person, and going on where it stood.
        (RUNNABLE, E.PAUSE, T.PAUSED),
        *((T.PAUSED, event, state) for state, event in RESUME_AT.items()),
        ((*RUNNABLE, T.PAUSED), E.FAIL, T.FAILED),
        ((*RUNNABLE, T.PAUSED), E.CANCEL, T.CANCELLED),
        (T.FAILED, E.RETRY, T.PENDING),
        # The forge's fact moves the task wherever it stands; only a merge is for ever.
        ((*RUNNABLE, T.PAUSED, T.NO_CHANGES, T.CLOSED, T.FAILED, T.CANCELLED), E.MERGED, T.MERGED),
        ((*RUNNABLE, T.PAUSED), E.CLOSED, T.CLOSED),
        ((T.CLOSED, T.FAILED), E.REOPENED, T.IN_REVIEW),
    ),
    ended=frozenset(ENDED),
)


class QuestionState(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"


class QuestionEvent(StrEnum):
    ASK = "ask"
    ANSWER = "answer"
    WITHDRAW = "withdraw"


QUESTION = Lifecycle(
    "question",
    table(
        (None, QuestionEvent.ASK, QuestionState.OPEN),
        (QuestionState.OPEN, QuestionEvent.ANSWER, QuestionState.ANSWERED),
        # The forge's fact, or a cancel, made the question pointless.
        (QuestionState.OPEN, QuestionEvent.WITHDRAW, QuestionState.WITHDRAWN),
    ),
    ended=frozenset({QuestionState.ANSWERED, QuestionState.WITHDRAWN}),
)


class QuestionKind(StrEnum):
    """Why a task waits for a person."""

    PAUSED_BY_PERSON = "paused_by_person"
    TOO_MANY_RUNS = "too_many_runs"
    NO_PROGRESS = "no_progress"
    OUT_OF_SCOPE = "out_of_scope"
    PREDECESSOR = "predecessor"
    CANNOT_GO_ON = "cannot_go_on"
    NOT_MERGEABLE = "not_mergeable"
    AGENT_ASKS = "agent_asks"
    OUT_OF_BUDGET = "out_of_budget"
    REJECTED = "rejected"
    REVISED = "revised"


@dataclass(frozen=True)
class Question:
    """What a paused task asks. Answering it resumes the task at the step `resume_at`."""

    id: str
    task_id: str
    kind: QuestionKind
    text: str
    resume_at: TaskState
    state: QuestionState = QuestionState.OPEN
    answer: str = ""


@dataclass(frozen=True)
class TaskFacts:
    """Everything the task's workflow needs to know, loaded from the graph in one read.

    `seq` is the task's last receipt; `round` counts entries into a step that repeats work, and is part
    of every key that such a step makes; `epoch` is the newest run's, and fences older ones.

    Runs: `runs` holds this round's, and any that lives still, in order of their start; `runs_begun`
    counts the author's over all rounds, of which `allowed_runs` may be begun before a person is asked.

    Commits: `head_sha` is what the task stands at, made on `host`; `latest_work` what the newest
    collected author run of any round left; `pushed_sha` what we last put on the branch, `proven_sha`
    for which the policy's evidence is complete, `approved_sha` which a person approved.
    `last_tree_sha` is the tree of the round before, for the breaker on no progress.

    `reviewers` are those whom the plan names, as `domain.review.Reviewer` is written; `reviews` all that were given
    so far, in their order.
    `revision` is the plan's revision that last changed this task, 0 for none; `revised` says that it did so after
    the last run of an author began. `judged` is the revision that last changed what judges the plan's tasks, and
    `proven_by` the one by which `proven_sha` was: they differ where the proof is out of date.

    `budget_nano_usd` is what all its runs may cost together, None where nobody said.

    `model` is what the runtime uses, `session` the id under which the CLI of the newest author run
    remembers the task, empty where it cannot be gone on with.

    `note` is what the next run must know; `foreign_commits` that the branch carries commits which are
    not ours; `fresh_start` that the next run begins from the base instead of from the branch.
    """

    id: str
    plan_id: str
    owner: str
    ordinal: int
    title: str
    body: str
    state: TaskState
    seq: int
    round: int
    epoch: int
    repository: str
    base: str
    merge: str
    runtime: str
    timeout: int
    model: str = ""
    session: str = ""
    budget_nano_usd: int | None = None
    checks: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    attempts: int = 4
    allowed_runs: int = 4
    runs_begun: int = 0
    base_sha: str = ""
    head_sha: str = ""
    tree_sha: str = ""
    last_tree_sha: str = ""
    latest_work: str = ""
    proven_sha: str = ""
    approved_sha: str = ""
    pushed_sha: str = ""
    pull_number: int | None = None
    pull_url: str = ""
    merged_sha: str = ""
    proof: str = ""
    note: str = ""
    reason: str = ""
    host: str = ""
    foreign_commits: bool = False
    fresh_start: bool = False
    has_slot: bool = False
    question: Question | None = None
    runs: tuple[RunFacts, ...] = ()
    reviews: tuple[ReviewFacts, ...] = ()
    revision: int = 0
    revised: bool = False
    judged: int = 0
    proven_by: int = 0

    @property
    def ended(self) -> bool:
        return self.state in ENDED
