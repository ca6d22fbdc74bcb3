"""What counts as proof, and when Watchbill itself may merge."""

from __future__ import annotations

from domain.plan import MergePolicy
from domain.pull import PullRequest
from domain.task import TaskFacts

PROVEN = "proven"
UNPROVEN = "unproven"


def proof_of(task: TaskFacts, head_sha: str) -> str:
    """A merge is proven when the policy's evidence, as it is today, is complete for exactly the merged commit."""
    complete = head_sha == task.proven_sha and not is_outdated(task)
    return PROVEN if head_sha and complete else UNPROVEN


def is_outdated(task: TaskFacts) -> bool:
    """Whether the task was proven by rules that its plan has no more."""
    return bool(task.proven_sha) and task.proven_by != task.judged


def merge_is_wanted(task: TaskFacts, pull: PullRequest) -> bool:
    """Whether the plan's policy, or a person's approval of this very commit, wants Watchbill to merge."""
    when_proven = task.merge == MergePolicy.WHEN_PROVEN and proof_of(task, pull.head_sha) == PROVEN
    return when_proven or pull.head_sha == task.approved_sha


def may_merge(task: TaskFacts, pull: PullRequest) -> bool:
    """Whether a wanted merge may be asked for now. `mergeable` None means that the forge is working it out."""
    return pull.mergeable is True and merge_is_wanted(task, pull)
