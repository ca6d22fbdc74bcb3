"""The life of one task: a checkbox, from its first run to the end of its pull request.

The workflow keeps nothing that it must trust. Each turn loads the facts, does the step that the
task's state names, and carries the answer out as a move; so it may be killed, terminated or begun
anew at any line, and goes on from what the graph says. It ends when the task has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from activities.facts import Facts
    from activities.landing import Landing
    from activities.supervision import Supervision
    from activities.workspaces import Workspaces
    from domain import judge, landing
    from domain.flow import Answer, Fail, Pause, Wait, moves_of, run_to_continue
    from domain.identity import host_queue
    from domain.publication import BeginRun, MergeOrder, Moves, MovesReply, PushOrder, TaskRef
    from domain.pull import Merge, Opened, PullRequest, Push, PushKind
    from domain.review import ReviewFacts
    from domain.run import Collected, EndKind, Role, RunEnd, RunFacts, RunState
    from domain.task import SLOTTED, QuestionKind, TaskFacts, TaskState
    from workflows import options, surface
    from workflows.calls import HostGone, MovedOn, best_effort, facts, failure_of, kind_of, on_host


@workflow.defn
class TaskWorkflow:
    @workflow.init
    def __init__(self, ref: TaskRef) -> None:
        self._ref = ref
        self._hinted = False
        self._shown: tuple[object, ...] = ()
        self._waits = 0

    @workflow.run
    async def run(self, ref: TaskRef) -> TaskState:
        task = await self._load()
        while True:
            await self._show(task)
            if task.ended:
                await self._clear_away(task)
            if task.ended or task.state is TaskState.PENDING:
                if not self._hinted:
                    return task.state
                task = await self._load()
                continue
            task = await self._carry_out(task, await self._step(task))
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(ref)

    @workflow.signal
    def look_again(self) -> None:
        """A hint that some fact may have changed. It carries nothing, so it may come late, twice or never."""
        self._hinted = True

    async def _load(self) -> TaskFacts:
        self._hinted = False
        task: TaskFacts = await facts(Facts.load_task, self._ref.task_id)
        return task

    async def _step(self, task: TaskFacts) -> Answer:
        """Do what the task's state asks for, and answer what should follow."""
        if task.state in SLOTTED and not task.has_slot:
            return Wait()
        try:
            if await self._attend_to_earlier(task):
                return Wait(0)
            match task.state:
                case TaskState.WORKING:
                    return await self._work(task)
                case TaskState.CHECKING:
                    return await self._check(task)
                case TaskState.REVIEWING:
                    return await self._review(task)
                case TaskState.PUBLISHING:
                    return await self._publish(task)
                case TaskState.IN_REVIEW:
                    return await self._land(task)
                case _:
                    return Wait()
        except MovedOn:
            return Wait(0)
        except HostGone:
            return judge.after_work_lost(task)
        except ActivityError as error:
            return _cannot(task, error)

    async def _work(self, task: TaskFacts) -> Answer:
        """Let an agent work in a workspace of its own, and preserve what it leaves however it ends."""
        run = run_to_continue(task, Role.AUTHOR)
        if run is None:
            exhausted = judge.before_run(task)
            if exhausted is not None:
                return exhausted
            run = await self._begin(task, Role.AUTHOR)
        end = await self._run(task, run)
        work: Collected = await on_host(task, run.host, Workspaces.collect_work, run.id, options.GIT, run)
        draft = await self._draft(task, run, work) if judge.is_worth_a_draft(task, run, end, work) else None
        return judge.after_work(task, run, end, work, draft)

    async def _draft(self, task: TaskFacts, run: RunFacts, work: Collected) -> PullRequest | None:
        """Show unfinished work as a draft, if the forge takes it soon: a person is about to be asked for money.

        A pull request that is ready is left alone: what is unfinished does not belong where it can be merged.
        """
        try:
            there = await self._look(task, options.FORGE_NOW) if task.pull_number is not None else None
            if there is not None and not (there.open and there.draft):
                return None
            order = PushOrder(task.id, run.epoch, work.head_sha, task.state)
            push: Push = await on_host(task, run.host, Workspaces.push_branch, order, options.GIT_NOW)
            if push.kind is not PushKind.PUSHED:
                return None
            opened: Opened = await workflow.execute_activity_method(Landing.open_draft, task.id, **options.FORGE_NOW)
        except ActivityError as error:
            workflow.logger.info("no draft", extra={"task": task.id, "reason": failure_of(error)})
            return None
        return opened.pull

    async def _check(self, task: TaskFacts) -> Answer:
        """Run the plan's checks ourselves, in a clean checkout of the commit; never on the agent's word."""
        for ordinal, command in enumerate(task.checks, start=1):
            run = run_to_continue(task, Role.CHECK, ordinal)
            if run is None:
                run = await self._begin(task, Role.CHECK, ordinal, command)
            answer = judge.after_check(task, run, await self._run(task, run))
            if answer is not None:
                return answer
        return judge.after_checks(task)

    async def _review(self, task: TaskFacts) -> Answer:
        """Let models of other makers judge exactly this commit, each in a checkout that it cannot change."""
        for ordinal, reviewer in enumerate(task.reviewers, start=1):
            if judge.approved(task, reviewer):
                continue
            run = run_to_continue(task, Role.REVIEWER, ordinal)
            if run is None:
                run = await self._begin(task, Role.REVIEWER, ordinal)
            end = await self._run(task, run)
            review: ReviewFacts = await on_host(task, run.host, Workspaces.collect_review, run.id, options.GIT, run)
            answer = judge.after_review(task, run, end, review)
            if answer is not None:
                return answer
        return judge.after_reviews(task)

    async def _publish(self, task: TaskFacts) -> Answer:
        """Put the commit on the task's branch and open its one pull request."""
        if task.pull_number is not None or task.pushed_sha:
            # It may have been merged or closed meanwhile, also by somebody who was quicker than our record of it.
            there = await self._look(task)
            ended = landing.forge_fact(task, there) if there is not None else None
            if ended is not None:
                return ended
        order = PushOrder(task.id, task.epoch, task.head_sha)
        push: Push = await on_host(task, task.host, Workspaces.push_branch, order, options.GIT)
        moved = landing.after_push(task, push)
        if moved is not None:
            return moved
        opened: Opened = await workflow.execute_activity_method(Landing.open_pull_request, task.id, **options.FORGE)
        return landing.after_open(task, opened)

    async def _land(self, task: TaskFacts) -> Answer:
        """Follow the pull request to its end, and merge it once policy or a person allows exactly its head."""
        pull = await self._look(task)
        if pull is None:
            return landing.after_vanished(task)
        answer = landing.after_look(task, pull)
        if answer is not None:
            return answer
        order = MergeOrder(task.id, pull.number, pull.head_sha)
        merge: Merge = await workflow.execute_activity_method(Landing.merge_pull_request, order, **options.FORGE)
        return landing.after_merge(task, pull, merge)

    async def _attend_to_earlier(self, task: TaskFacts) -> bool:
        """See every run of an earlier round to its end before this round begins one; whether there was any."""
        earlier = [run for run in task.runs if run.live and run.round != task.round]
        for run in earlier:
            end: RunEnd = await on_host(task, run.host, Supervision.supervise, run.id, options.RUN, run)
            if run.role is Role.AUTHOR and end.kind is not EndKind.NEVER_STARTED:
                await on_host(task, run.host, Workspaces.collect_work, run.id, options.GIT, run)
        return bool(earlier)

    async def _begin(self, task: TaskFacts, role: Role, ordinal: int = 0, command: str = "") -> RunFacts:
        order = BeginRun(task.id, role, workflow.now(), ordinal, command)
        run: RunFacts = await facts(Facts.begin_run, order)
        return run

    async def _run(self, task: TaskFacts, run: RunFacts) -> RunEnd:
        """How the run ended: watched to its end while it lives, read from the graph once it has."""
        end: RunEnd
        if run.live:
            await on_host(task, run.host, Workspaces.prepare_workspace, run.id, options.GIT, run)
            end = await on_host(task, run.host, Supervision.supervise, run.id, options.RUN, run)
        else:
            end = await facts(Facts.recorded_end, run.id)
        if end.state is RunState.LOST:
            raise HostGone(run.host)
        return end

    async def _look(self, task: TaskFacts, how: Mapping[str, Any] = options.FORGE) -> PullRequest | None:
        pull: PullRequest | None = await workflow.execute_activity_method(Landing.look_at_pull_request, task.id, **how)
        return pull

    async def _carry_out(self, task: TaskFacts, answer: Answer) -> TaskFacts:
        """Make the answer's moves, or wait as it says; the task as it stands afterwards."""
        if isinstance(answer, Wait):
            await self._wait(answer.seconds)
            return await self._load()
        # What is hinted at by now is in the facts that the move answers, or that are loaded when it is not made.
        self._hinted = False
        try:
            reply: MovesReply = await facts(Facts.move, Moves.of(moves_of(task, answer, workflow.now()), task.seq))
        except ActivityError as error:
            if kind_of(error) not in _OVERTAKEN:
                raise
            reply = MovesReply(state=task.state, fresh=False)
        if not reply.fresh and reply.state in (task.state, ""):
            # Somebody was first, or the graph does not allow it: look again, but not in a tight loop.
            await self._wait(options.LOOK_AFRESH)
            return await self._load()
        self._waits = 0
        if task.state not in SLOTTED or reply.state not in SLOTTED:
            # A slot came free, or is wanted.
            await surface.nudge_heartbeat(self._ref.owner)
        return reply.task or await self._load()

    async def _wait(self, seconds: float | None) -> None:
        """Wait for a hint, for so long at most. Short waits that come to nothing grow, so no loop is tight."""
        if seconds == 0:
            return
        patience = options.TASK_LOOK
        if seconds is not None:
            patience = timedelta(seconds=max(seconds, min(options.LONGEST_SHORT_WAIT, seconds * 2**self._waits)))
            self._waits = min(self._waits + 1, 10)
        try:
            await workflow.wait_condition(lambda: self._hinted, timeout=patience, timeout_summary="look again")
        except TimeoutError:
            return

    async def _clear_away(self, task: TaskFacts) -> None:
        """What is left to do once the task has ended; none of it can change how it ended."""
        if task.state in (TaskState.CANCELLED, TaskState.NO_CHANGES) and (task.pull_number or task.head_sha):
            await best_effort(Landing.close_pull_request, task.id, options.CLEAN_UP)
        if task.host:
            await best_effort(Workspaces.clear_away, task.id, options.CLEAN_UP, host_queue(task.host))

    async def _show(self, task: TaskFacts) -> None:
        """Let the Temporal UI and the plan see where the task stands, when that has changed."""
        now = (task.state, task.question, task.round, task.reason)
        if now != self._shown:
            self._shown = now
            surface.show_task(self._ref, task)
            await surface.wake_plan(self._ref)


_OVERTAKEN = ("Superseded", "KeyReused")
"""Errors which say that somebody else has moved the task on in the meantime."""


def _cannot(task: TaskFacts, error: ActivityError) -> Answer:
    """An activity said that trying again is pointless: whether a person can mend it decides what follows."""
    match kind_of(error):
        case kind if kind in _OVERTAKEN:
            return Wait(options.LOOK_AFRESH)
        case "Defect":
            return Fail(failure_of(error))
        case _:
            why = failure_of(error).rstrip(". ")
            return Pause(QuestionKind.CANNOT_GO_ON, f"{why}. Mend it, then resume.", task.state)
