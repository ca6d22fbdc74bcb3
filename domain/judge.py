"""How it is judged what runs leave: an author's work, a check's end, a review; pure functions, as in domain.landing.

The same observations always lead the same way, whoever observes them and however often.
"""

from __future__ import annotations

from typing import Any

from domain.flow import Answer, Continue, Done, Pause, Wait, flow_of, rework
from domain.landing import forge_fact
from domain.pull import PullRequest
from domain.review import ReviewFacts, ReviewState
from domain.run import Collected, Outcome, RunEnd, RunFacts, RunState
from domain.task import QuestionKind, TaskEvent, TaskFacts, TaskState
from domain.wording import counted

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
    return rework(task, TaskEvent.CHECKS_FAILED, task.head_sha, f"{how}\n{end.tail}".strip())


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
            return rework(task, TaskEvent.CHANGES_REQUESTED, task.head_sha, note)
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
