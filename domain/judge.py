"""How each step's outcome is judged: pure functions from what was observed to what comes next.

The same observations always lead the same way, whoever observes them and however often.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.duties import Actor
from domain.flow import Answer, Continue, Done, Pause, Wait, flow_of
from domain.plan import MergePolicy
from domain.policy import is_outdated, may_merge, merge_is_wanted, proof_of
from domain.pull import Merge, MergeKind, Opened, OpenKind, PullRequest, Push, PushKind
from domain.review import ReviewFacts, ReviewState
from domain.run import Collected, Outcome, RunEnd, RunFacts, RunState
from domain.task import QuestionKind, TaskEvent, TaskFacts, TaskState
from domain.wording import counted

LOOK_SOON = 2.0
"""Seconds until a pull request is read again whose mergeability the forge is still working out."""

LOOK_WHILE_BLOCKED = 300.0
"""Seconds until a merge is tried again that the repository's rules did not let through."""

MAX_BACKOFF = 60.0

MAX_BROKEN_CHECKS = 3
"""How often one check may be lost or stopped in a round before a person is asked."""

MAX_VOID_REVIEWS = 3
"""How often one reviewer may give no review that counts, in a round, before a person is asked."""


def before_run(task: TaskFacts) -> Pause | None:
    """Whether another author run may begin: every kind of retry draws on this one bound."""
    if task.runs_begun < task.allowed_runs:
        return None
    return Pause(
        QuestionKind.TOO_MANY_RUNS,
        f"{counted(task.runs_begun, 'run')} did not finish this task. {task.note or 'The last one left no word.'} "
        f"Resume to allow {task.attempts} more, or cancel.",
        TaskState.WORKING,
    )


def is_worth_a_draft(task: TaskFacts, run: RunFacts, end: RunEnd, work: Collected) -> bool:
    """Whether people should see on the forge what a run left when its money was spent; never what the plan refuses."""
    refused = run.round == task.round and end.outcome is Outcome.REFUSED
    return refused and bool(work.changed) and not work.strays and not work.faults


def after_work(
    task: TaskFacts, run: RunFacts, end: RunEnd, work: Collected, draft: PullRequest | None = None
) -> Answer:
    """What an author's run amounts to, from how it ended and what it left; `draft` is where that is shown."""
    if run.round != task.round:
        return Wait(0)
    if end.outcome is Outcome.REFUSED:
        return _after_refusal(task, end, work, draft)
    if end.state is not RunState.FINISHED:
        return _after_broken_run(task, run, end, work)
    kept: dict[str, Any] = {"head_sha": work.head_sha, "tree_sha": work.tree_sha, "base_sha": work.base_sha}
    kept |= {"host": run.host, "fresh_start": False}
    if end.outcome is Outcome.ASKED:
        return Pause(QuestionKind.AGENT_ASKS, end.question, TaskState.WORKING, {"host": run.host})
    # What could not be collected may be all that there is.
    if not work.changed and not work.faults:
        if end.refused:
            # Success would start what comes after it, on an agent's word that there was nothing to be done.
            why = f"The run changed nothing, and not all that it wanted to do was allowed. {_refused(end)}"
            choice = "Answer to let it go on with your word, resume to let it try again, or cancel."
            return Pause(QuestionKind.CANNOT_GO_ON, f"{why}{choice}", TaskState.WORKING, {"host": run.host})
        return Done(
            TaskEvent.NOTHING_CHANGED,
            f"nothing_changed:{run.id}",
            "the run left the tree as the base has it",
            {"reason": "the work changes nothing against the base"},
        )
    if work.strays or work.faults:
        return Pause(QuestionKind.OUT_OF_SCOPE, _out_of_scope(work), TaskState.WORKING, kept)
    if work.tree_sha == task.last_tree_sha:
        return Pause(
            QuestionKind.NO_PROGRESS,
            f"The run ended as done and changed nothing since the last attempt. {_refused(end)}{task.note}".strip(),
            TaskState.WORKING,
            kept,
        )
    return Continue(
        flow_of(task).onward(TaskState.WORKING),
        f"worked:{run.id}",
        f"run {run.number} left {counted(work.changed, 'changed file')}",
        kept,
    )


def _after_refusal(task: TaskFacts, end: RunEnd, work: Collected, draft: PullRequest | None) -> Answer:
    """No money is left, in a budget or at the provider: the reason says which.

    A draft is a pull request like any other, and its head is what we pushed.
    """
    ended = forge_fact(task, draft) if draft is not None else None
    if ended is not None:
        return ended
    shown, found = "pushed nowhere", dict[str, Any]()
    if draft is not None:
        shown = f"shown in draft {draft.url}"
        found = {"pull_number": draft.number, "pull_url": draft.url, "pushed_sha": draft.head_sha}
    kept = f"What it did is kept as {work.head_sha[:12]}, and {shown}. " if work.changed else ""
    why = f"A model call was refused for want of money: {end.reason}. {kept}Resume once it is there, or cancel."
    return Pause(QuestionKind.OUT_OF_BUDGET, why, TaskState.WORKING, found)


def _after_broken_run(task: TaskFacts, run: RunFacts, end: RunEnd, work: Collected) -> Answer:
    if end.state is RunState.REFUSED:
        why = f"The run was refused: {end.reason}. {_refused(end)}".strip()
        return Pause(QuestionKind.CANNOT_GO_ON, why, TaskState.WORKING)
    if end.state is not RunState.CRASHED:
        return Wait(0)
    earlier = _earlier(task, run)
    # A model that cannot be reached is no fault of the work: only the bound on runs ends that.
    if end.outcome is not Outcome.DROPPED and any(
        other.head_sha == work.head_sha and other.reason == end.reason for other in earlier
    ):
        return Pause(
            QuestionKind.NO_PROGRESS,
            f"Two runs failed alike and left the same files: {end.reason}.{_last_words(end)}",
            TaskState.WORKING,
        )
    return Wait(min(MAX_BACKOFF, 2.0 ** len(earlier)))


def word_for(task: TaskFacts, run: RunFacts, *, unheard: bool = False) -> str:
    """What an author's run has to know beyond the task: a person's or our word, and how its last turn broke off.

    `unheard` is whether it asked something in that turn which no person has seen.
    """
    before = turn_before(task, run)
    trouble = _TROUBLE.get(before.outcome, "").format(why=before.reason) if before else ""
    return "\n\n".join(part for part in (task.note, trouble, _UNHEARD if unheard else "") if part)


def turn_before(task: TaskFacts, run: RunFacts) -> RunFacts | None:
    """The last run of the same role that has ended before this one began."""
    before = [other for other in task.runs if other.role is run.role and other.epoch < run.epoch and not other.live]
    return before[-1] if before else None


_UNHEARD = "What you asked in your last turn has reached nobody. Ask again if you still need the answer."


_TROUBLE: dict[str, str] = {
    Outcome.NO_RESULT: "Your last turn ended without a result. See that the task is done, then give the result.",
    Outcome.SCHEMA_BROKEN: "The result of your last turn is not of the form that is asked for: {why}. Give it anew.",
    Outcome.DROPPED: "The connection to the model broke off in your last turn. Go on where you stopped.",
    Outcome.CRASHED: "Your last turn was cut off: {why}. Look at what stands in the workspace, then go on.",
}


def after_check(task: TaskFacts, check: RunFacts, end: RunEnd) -> Answer | None:
    """What one check command, run by us on the commit, says of it; None when it passed.

    A check that broke off says nothing of the commit: it is run again, and only when it breaks off
    the same way twice does that count against the commit.
    """
    if check.round != task.round:
        return Wait(0)
    match end.state:
        case RunState.FINISHED if end.exit_code == 0:
            return None
        case RunState.FINISHED:
            how = f"`{check.command}` exited {end.exit_code}."
        case RunState.CRASHED if any(other.reason == end.reason for other in _earlier(task, check)):
            how = f"`{check.command}` did not finish: {end.reason}."
        case _:
            return _after_broken_check(task, check, end)
    return _rework(task, TaskEvent.CHECKS_FAILED, task.head_sha, f"{how}\n{end.tail}".strip())


def _after_broken_check(task: TaskFacts, check: RunFacts, end: RunEnd) -> Answer:
    same = [other for other in task.runs if (other.role, other.ordinal) == (check.role, check.ordinal)]
    if sum(other.number < check.number for other in same) + 1 < MAX_BROKEN_CHECKS:
        return Wait(0)
    why = f"`{check.command}` could not be run to its end: {end.reason or end.state}."
    return Pause(QuestionKind.CANNOT_GO_ON, why, TaskState.CHECKING)


def _earlier(task: TaskFacts, run: RunFacts) -> list[RunFacts]:
    """The crashed runs of the same kind that came before this one in the round."""
    return [
        other
        for other in task.runs
        if (other.role, other.ordinal, other.state) == (run.role, run.ordinal, RunState.CRASHED)
        and other.number < run.number
    ]


def after_work_lost(task: TaskFacts) -> Answer:
    """The host that held the work is gone: what was not pushed is done again, in a new round."""
    if task.state is TaskState.WORKING:
        return Wait(0)
    return Continue(
        TaskEvent.WORK_LOST,
        f"work_lost:{task.round}:{task.head_sha}",
        f"host {task.host} is gone, and with it {task.head_sha[:12]}",
        {"round": task.round + 1, "head_sha": "", "tree_sha": "", "host": "", "note": "", "last_tree_sha": ""},
    )


def after_checks(task: TaskFacts) -> Answer:
    """Every check that the plan names has passed for this commit; without checks nothing is proven by them."""
    passed = f"{counted(len(task.checks), 'check')} passed" if task.checks else "the plan names no checks"
    if task.reviewers:
        return Continue(flow_of(task).onward(TaskState.CHECKING), f"checked:{task.round}:{task.head_sha}", passed)
    return _cleared(task, passed, proven=bool(task.checks))


def approved(task: TaskFacts, reviewer: str) -> bool:
    """Whether this reviewer has approved exactly this commit, in whichever round."""
    return any(
        (review.state, review.commit_sha, review.reviewer) == (ReviewState.APPROVED, task.head_sha, reviewer)
        for review in task.reviews
    )


def after_review(task: TaskFacts, run: RunFacts, end: RunEnd, review: ReviewFacts) -> Answer | None:
    """What one review says of the commit; None when it approves."""
    if run.round != task.round:
        return Wait(0)
    match review.state:
        case ReviewState.APPROVED:
            return None
        case ReviewState.CHANGES_REQUESTED:
            note = f"{review.reviewer} asks for changes: {review.summary}\n\n{review.findings}"
            return _rework(task, TaskEvent.CHANGES_REQUESTED, task.head_sha, note)
        case ReviewState.REJECTED:
            choice = (
                "Approve to publish it all the same, as unproven; answer or resume to let it be done again with your "
                "word; or cancel."
            )
            why = f"{review.reviewer} rejects the work: {review.summary}\n\n{review.findings}".strip()
            return Pause(QuestionKind.REJECTED, f"{why}\n\n{choice}", TaskState.WORKING)
        case _:
            return _after_void_review(task, run, end, review)


def _after_void_review(task: TaskFacts, run: RunFacts, end: RunEnd, review: ReviewFacts) -> Answer:
    """It counts for nothing: it is given again, so often, unless only a person can help."""
    if end.outcome is Outcome.ASKED:
        return Pause(QuestionKind.AGENT_ASKS, end.question, TaskState.REVIEWING)
    if end.outcome is Outcome.REFUSED:
        why = f"A review was refused for want of money: {end.reason}. Resume once it is there, or cancel."
        return Pause(QuestionKind.OUT_OF_BUDGET, why, TaskState.REVIEWING)
    if end.state is RunState.STOPPED:
        return Wait(0)
    same = [other for other in task.runs if (other.role, other.ordinal) == (run.role, run.ordinal)]
    begun = sum(other.number <= run.number for other in same)
    if end.state is not RunState.REFUSED and begun < MAX_VOID_REVIEWS:
        return Wait(min(MAX_BACKOFF, 2.0**begun))
    why = f"{review.reviewer} gave no review that counts: {review.why}. Resume to let it try again, or cancel."
    return Pause(QuestionKind.CANNOT_GO_ON, why, TaskState.REVIEWING)


def after_reviews(task: TaskFacts) -> Answer:
    """Every reviewer that the plan names has approved exactly this commit."""
    return _cleared(task, f"approved by {', '.join(task.reviewers)}", proven=True)


def _cleared(task: TaskFacts, cause: str, *, proven: bool) -> Answer:
    return Continue(
        TaskEvent.CLEARED,
        f"cleared:{task.round}:{task.head_sha}",
        cause,
        {"proven_sha": task.head_sha if proven else "", **({"proven_by": task.judged} if task.judged else {})},
    )


def after_push(task: TaskFacts, push: Push) -> Answer | None:
    """None when the branch is at our commit and the pull request can be opened."""
    if push.kind is PushKind.PUSHED:
        return None
    note = (
        f"Somebody pushed {push.sha[:12]} to the branch; the next run builds on it."
        if push.sha
        else "Somebody deleted the branch; the work is done again."
    )
    return _rework(
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
        return _rework(task, TaskEvent.OUTDATED, pull.head_sha, note, {"proven_sha": "", "last_tree_sha": ""})
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
        case MergeKind.BLOCKED if merge.reason == task.reason:
            return Wait(LOOK_WHILE_BLOCKED)
        case MergeKind.BLOCKED:
            return Continue(
                TaskEvent.BLOCKED,
                f"blocked:{task.seq}",
                merge.reason or "the repository's rules do not allow the merge yet",
                {"reason": merge.reason},
                Actor.FORGE,
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
    return _rework(
        task,
        TaskEvent.CONFLICTED,
        pull.head_sha,
        f"The branch conflicts with {task.base}; the work is done again on top of it.",
        {"fresh_start": True},
        by=Actor.FORGE,
    )


def _rework(
    task: TaskFacts,
    event: TaskEvent,
    sha: str,
    note: str,
    facts: Mapping[str, Any] | None = None,
    *,
    by: Actor = Actor.WORKER,
) -> Continue:
    """Back to the author, in a new round that knows what was wrong with the last one."""
    return Continue(
        event,
        f"{event}:{task.round}:{sha}",
        note.splitlines()[0],
        {"round": task.round + 1, "note": note, "reason": "", "last_tree_sha": task.tree_sha, **(facts or {})},
        by,
    )


def _out_of_scope(work: Collected) -> str:
    more = f" and {work.stray_count - len(work.strays)} more" if work.stray_count > len(work.strays) else ""
    outside = f"The work touches what the plan does not allow: {', '.join(work.strays)}{more}." if work.strays else ""
    choice = "Approve to take it as it is, resume to let it be done again, or cancel."
    return " ".join(part for part in (outside, *work.faults, choice) if part)


def _refused(end: RunEnd) -> str:
    """What policy refused the run last, unless its reason says so already."""
    return f"The last to be refused: {end.refused.rstrip('. ')}. " if end.refused not in end.reason else ""


def _last_words(end: RunEnd) -> str:
    lines = [line.strip()[:300] for line in end.tail.splitlines() if line.strip()]
    told = "\n".join(lines[-3:])
    return f" Its last words: {told}" if told else ""
