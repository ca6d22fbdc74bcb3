"""How it is judged what the forge says: of a push, of a pull request, of a merge; pure functions, as in domain.judge.

The same observations always lead the same way, whoever observes them and however often.
"""

from __future__ import annotations

from domain.duties import Actor
from domain.flow import Answer, Continue, Done, Pause, Wait, flow_of, rework
from domain.plan import MergePolicy
from domain.policy import is_outdated, may_merge, merge_is_wanted, proof_of
from domain.pull import Merge, MergeKind, Opened, OpenKind, PullRequest, Push, PushKind
from domain.task import QuestionKind, TaskEvent, TaskFacts, TaskState

LOOK_SOON = 2.0
"""Seconds until a pull request is read again whose mergeability the forge is still working out."""

LOOK_WHILE_BLOCKED = 300.0
"""Seconds until a merge is tried again that the repository's rules did not let through."""


def after_push(task: TaskFacts, push: Push) -> Answer | None:
    """None when the branch is at our commit and the pull request can be opened."""
    if push.kind is PushKind.PUSHED:
        return None
    note = (
        f"Somebody pushed {push.sha[:12]} to the branch; the next run builds on it."
        if push.sha
        else "Somebody deleted the branch; the work is done again."
    )
    return rework(
        task,
        TaskEvent.BRANCH_MOVED,
        push.sha or "deleted",
        note,
        {
            # The next push leases on what is there now, which the next run has built upon.
            "pushed_sha": push.sha,
            "foreign_commits": bool(push.sha),
            "fresh_start": False,
            # Nothing was wrong with the tree, so the next run may well leave the same one.
            "last_tree_sha": "",
        },
        by=Actor.FORGE,
    )


def after_open(task: TaskFacts, opened: Opened) -> Answer:
    """Whether there is a pull request to follow now."""
    if opened.kind is OpenKind.EMPTY or opened.pull is None:
        return Done(
            TaskEvent.NOTHING_CHANGED,
            f"nothing_changed:{task.head_sha}",
            "the forge sees no commits between base and branch",
            {"reason": "the base contains this work already"},
        )
    pull = opened.pull
    ended = forge_fact(task, pull)
    if ended is not None:
        return ended
    if pull.head_sha != task.head_sha:
        # The forge has not caught up with the push yet, or somebody has pushed since: push and look again.
        return Wait(LOOK_SOON)
    return Continue(
        flow_of(task).onward(TaskState.PUBLISHING),
        f"published:{pull.number}:{task.head_sha}:{task.round}",
        f"pull request {pull.number} is {opened.kind}",
        {"pull_number": pull.number, "pull_url": pull.url, "pushed_sha": task.head_sha, "note": ""},
    )


def after_look(task: TaskFacts, pull: PullRequest) -> Answer | None:
    """What the pull request, as the forge has it now, means for the task; None when it may be merged."""
    ended = forge_fact(task, pull)
    if ended is not None:
        return ended
    if pull.head_sha != task.head_sha:
        # Somebody pushed; or it was closed and reopened below work of ours that was never pushed.
        return Continue(
            TaskEvent.HEAD_MOVED,
            f"head_moved:{task.round}:{pull.head_sha}",
            f"the pull request is at {pull.head_sha[:12]}",
            {
                "head_sha": pull.head_sha,
                "pushed_sha": pull.head_sha,
                "foreign_commits": task.foreign_commits or pull.head_sha != task.pushed_sha,
                "round": task.round + 1,
                "reason": "",
            },
            Actor.FORGE,
        )
    if pull.mergeable is False:
        return _after_conflict(task, pull)
    if task.merge == MergePolicy.WHEN_PROVEN and is_outdated(task) and not merge_is_wanted(task, pull):
        # Nobody would merge it, and nothing else would ask anybody to.
        note = "The plan was revised since this was proven: see that the work is as its rules are now."
        return rework(task, TaskEvent.OUTDATED, pull.head_sha, note, {"proven_sha": "", "last_tree_sha": ""})
    if may_merge(task, pull):
        return None
    return Wait(LOOK_SOON) if merge_is_wanted(task, pull) else Wait()


def after_vanished(task: TaskFacts) -> Pause:
    """The forge knows of no pull request for a task that was in review."""
    gone = f"The forge has no pull request from this task's branch to {task.base} any more."
    return Pause(QuestionKind.CANNOT_GO_ON, f"{gone} Cancel, or resume to look again.", TaskState.IN_REVIEW)


def after_merge(task: TaskFacts, pull: PullRequest, merge: Merge) -> Answer:
    """What came of asking the forge to merge exactly the commit that was proven or approved."""
    match merge.kind:
        case MergeKind.MERGED:
            return _merged(task, pull, merge.sha, "Watchbill merged it", by=Actor.WORKER)
        case MergeKind.CONFLICT:
            return _after_conflict(task, pull)
        case MergeKind.HEAD_MOVED:
            return Wait(1)
        case MergeKind.BLOCKED | MergeKind.UNPROVEN if merge.reason == task.reason:
            return Wait(LOOK_WHILE_BLOCKED)
        case MergeKind.BLOCKED | MergeKind.UNPROVEN:
            return Continue(
                TaskEvent.BLOCKED,
                f"blocked:{task.seq}",
                merge.reason or "the repository's rules do not allow the merge yet",
                {"reason": merge.reason},
                Actor.FORGE if merge.kind is MergeKind.BLOCKED else Actor.WORKER,
            )


def forge_fact(task: TaskFacts, pull: PullRequest) -> Continue | None:
    """The move that the forge's fact demands wherever the task stands; None when it demands none."""
    if pull.merged:
        if task.state is TaskState.MERGED:
            return None
        why = f"merged by {pull.merged_by or 'somebody'}"
        return _merged(task, pull, pull.merged_sha, why, by=Actor.FORGE)
    found = {"pull_number": pull.number, "pull_url": pull.url}
    if not pull.open and not task.ended:
        why = "the pull request was closed without being merged"
        facts = {"reason": why, **found}
        return Done(TaskEvent.CLOSED, f"closed:{pull.number}:{pull.closed_at}", why, facts, Actor.FORGE)
    if pull.open and task.state is TaskState.CLOSED:
        return Continue(
            TaskEvent.REOPENED,
            f"reopened:{pull.number}:{task.seq}",
            "the pull request is open again",
            {"reason": "", **found},
            Actor.FORGE,
        )
    return None


def _merged(task: TaskFacts, pull: PullRequest, sha: str, cause: str, *, by: Actor) -> Done:
    return Done(
        TaskEvent.MERGED,
        f"merged:{pull.number}",
        cause,
        {
            "merged_sha": sha,
            "proof": proof_of(task, pull.head_sha),
            "reason": "",
            "pull_number": pull.number,
            "pull_url": pull.url,
        },
        by,
    )


def _after_conflict(task: TaskFacts, pull: PullRequest) -> Answer:
    if task.foreign_commits:
        return Pause(
            QuestionKind.NOT_MERGEABLE,
            f"Pull request {pull.number} conflicts with {task.base} and carries commits that are not ours. "
            "Resolve the conflict on the branch, then resume.",
            TaskState.IN_REVIEW,
        )
    return rework(
        task,
        TaskEvent.CONFLICTED,
        pull.head_sha,
        f"The branch conflicts with {task.base}; the work is done again on top of it.",
        {"fresh_start": True},
        by=Actor.FORGE,
    )
