"""The life of a plan: published, confirmed once by a person, then watched until every box has ended.

It does no work of its own. It is where people's decisions arrive, and where the plan can be seen;
tasks are begun by the owner's heartbeat and lead lives of their own.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from activities.dispatch import Dispatch
    from activities.facts import Facts
    from activities.landing import Landing
    from domain.decision import Decision, DecisionKind, Outcome, Reply
    from domain.identity import task_id
    from domain.notes import EditContext
    from domain.publication import (
        Decide,
        EnsureTasks,
        FindRepository,
        LookAtPlan,
        PlanRef,
        Publish,
        PublishTo,
        TaskRef,
        Word,
    )
    from domain.pull import Repository
    from domain.view import PlanView, followed
    from workflows import options, surface
    from workflows.calls import facts, failure_of


@workflow.defn
class PlanWorkflow:
    @workflow.init
    def __init__(self, ref: PlanRef) -> None:
        self._ref = ref
        self._view: PlanView | None = None
        self._loaded = False
        self._hinted = False
        self._decided: list[tuple[Decision, tuple[int, ...]]] = []
        # Local activities of one workflow follow one another, or they do not replay (sdk-python#1578).
        self._graph = asyncio.Lock()

    @workflow.run
    async def run(self, ref: PlanRef) -> str:
        ticking = asyncio.create_task(self._tick())
        try:
            return await self._watch()
        finally:
            ticking.cancel()

    async def _watch(self) -> str:
        while True:
            self._hinted = False
            await self._look()
            await self._pass_on()
            if await self._over():
                return self._view.state if self._view else "nothing was published"
            if workflow.info().is_continue_as_new_suggested():
                await self._finish_decisions()
                workflow.continue_as_new(self._ref)
            await workflow.wait_condition(lambda: self._hinted)

    async def _tick(self) -> None:
        """Hint at a look now and then: one timer beside all that happens, where one a wait would fill the history."""
        while True:
            await workflow.sleep(options.PLAN_LOOK, summary="look again")
            self._hinted = True

    @workflow.signal
    def look_again(self) -> None:
        """A hint that some fact may have changed. It carries nothing, so it may come late, twice or never."""
        self._hinted = True

    @workflow.query
    def view(self) -> PlanView | None:
        """The plan as it stood when its facts were last read; None when nothing was published."""
        return self._view

    # Publishing and deciding. Validators check shape alone: they run before anything is loaded.

    @workflow.update
    async def publish(self, publish: Publish) -> Reply:
        """Publish a document once the forge has confirmed that its repository and base are there."""
        await workflow.wait_condition(lambda: self._loaded)
        repository: Repository = await workflow.execute_activity_method(
            Landing.find_repository, FindRepository(publish.repository, publish.base), **options.FORGE_NOW
        )
        order = PublishTo(publish, repository, publish.base or repository.default_branch, workflow.now())
        async with self._graph:
            reply: Reply = await facts(Facts.publish, order)
        self._hinted = True
        return reply

    @publish.validator
    def _publish_shape(self, publish: Publish) -> None:
        if not publish.text.strip() or not publish.repository:
            raise ApplicationError("there is no document to publish", type="InvalidPlan", non_retryable=True)

    @workflow.update
    async def decide(self, decision: Decision) -> Reply:
        """Write a person's decision down, then act on it. The reply says what it came to."""
        return await self._write_down(decision)

    @decide.validator
    def _decision_shape(self, decision: Decision) -> None:
        _require_plan(decision, self._ref)

    @workflow.update
    async def confirm(self, decision: Decision) -> Reply:
        """Confirm exactly the document whose digest the decision names, as a plan or as a revision of one."""
        return await self._write_down(decision)

    @confirm.validator
    def _confirm_shape(self, decision: Decision) -> None:
        _require_plan(decision, self._ref)
        if decision.kind is not DecisionKind.CONFIRM or not decision.names:
            raise ApplicationError("a confirmation names the digest of the document", non_retryable=True)

    @workflow.update
    async def edit_context(self, order: EditContext) -> Reply:
        """Write down what a person changed of what is known of the plan. The next run is told of it."""
        await workflow.wait_condition(lambda: self._loaded)
        async with self._graph:
            reply: Reply = await facts(Facts.edit_context, order)
        self._hinted = True
        return reply

    @edit_context.validator
    def _edit_shape(self, order: EditContext) -> None:
        if order.plan_id != self._ref.plan_id or order.repository:
            message = f"an edit of {order.plan_id or order.repository} came to {self._ref.plan_id}"
            raise ApplicationError(message, type="InvalidDecision", non_retryable=True)

    @workflow.signal(name="approve")
    async def on_approve(self, word: Word) -> None:
        await self._on(DecisionKind.APPROVE, word)

    @workflow.signal(name="answer")
    async def on_answer(self, word: Word) -> None:
        await self._on(DecisionKind.ANSWER, word)

    @workflow.signal(name="resume")
    async def on_resume(self, word: Word) -> None:
        await self._on(DecisionKind.RESUME, word)

    @workflow.signal(name="pause")
    async def on_pause(self, word: Word) -> None:
        await self._on(DecisionKind.PAUSE, word)

    @workflow.signal(name="retry")
    async def on_retry(self, word: Word) -> None:
        await self._on(DecisionKind.RETRY, word)

    @workflow.signal(name="cancel")
    async def on_cancel(self, word: Word) -> None:
        await self._on(DecisionKind.CANCEL, word)

    @workflow.signal(name="archive")
    async def on_archive(self, word: Word) -> None:
        await self._on(DecisionKind.ARCHIVE, word)

    @workflow.signal(name="withdraw")
    async def on_withdraw(self, word: Word) -> None:
        await self._on(DecisionKind.WITHDRAW, word)

    async def _on(self, kind: DecisionKind, word: Word) -> None:
        """A decision that came as a signal: the one handler stands behind it, and nobody waits for the reply."""
        decision = Decision(
            kind,
            self._ref.plan_id,
            word.task,
            word.names,
            word.text,
            word.by or "a signal",
            word.budget_nano_usd,
            word.plan_budget_nano_usd,
        )
        try:
            reply = await self._write_down(decision)
        except ActivityError as error:
            workflow.logger.warning("a signalled decision could not be recorded", extra={"reason": failure_of(error)})
            return
        workflow.logger.info("decision by signal", extra={"outcome": reply.outcome, "said": reply.message})

    async def _write_down(self, decision: Decision) -> Reply:
        await workflow.wait_condition(lambda: self._loaded)
        async with self._graph:
            reply: Reply = await facts(Facts.decide, Decide(decision, workflow.now()))
        if reply.outcome is not Outcome.REFUSED:
            self._decided.append((decision, reply.revised.touched if reply.revised else ()))
        self._hinted = True
        return reply

    # Watching.

    async def _look(self) -> None:
        async with self._graph:
            known = self._view
            look = LookAtPlan(self._ref.plan_id, known.seq if known else 0)
            news: PlanView | None = await facts(Facts.look_at_plan, look)
        view = followed(known, news) if news else None
        if view is not None and (known is None or view.seq != known.seq):
            surface.show_plan(view)
        self._view = view
        self._loaded = True

    async def _pass_on(self) -> None:
        """Wake whom decisions concern: the tasks they were about, and the heartbeat that dispatches."""
        decided, self._decided = self._decided, []
        if not decided:
            return
        concerned = sorted({ordinal for each in decided for ordinal in self._concerned(*each)})
        if concerned:
            refs = [TaskRef(task_id(self._ref.plan_id, n), self._ref.plan_id, self._ref.owner) for n in concerned]
            order = EnsureTasks(tuple(refs), wake=True)
            await workflow.execute_activity_method(Dispatch.ensure_tasks, order, **options.TEMPORAL)
        await workflow.execute_activity_method(Dispatch.ensure_heartbeat, self._ref.owner, **options.TEMPORAL)

    def _concerned(self, decision: Decision, touched: tuple[int, ...]) -> list[int]:
        """The tasks that have to look at themselves because of a decision: those that a revision touched too."""
        if touched:
            return list(touched)
        if decision.ordinal is not None:
            return [decision.ordinal]
        if decision.kind is DecisionKind.CANCEL and self._view is not None:
            return [task.ordinal for task in self._view.tasks if task.id]
        return []

    async def _finish_decisions(self) -> None:
        """Let every handler end and pass on what it decided, with no chance for another to begin afterwards."""
        await workflow.wait_condition(workflow.all_handlers_finished)
        while self._decided:
            await self._pass_on()
            await workflow.wait_condition(workflow.all_handlers_finished)

    async def _over(self) -> bool:
        """Whether this workflow has nothing left to watch: the plan ended, or was never published."""
        if self._view is None:
            await self._rest_a_moment()
        elif not self._view.ended:
            return False
        await self._finish_decisions()
        return not self._hinted

    async def _rest_a_moment(self) -> None:
        """Give a publication the time to arrive at a workflow that was begun for it."""
        with suppress(TimeoutError):
            await workflow.wait_condition(lambda: self._hinted, timeout=options.UNPUBLISHED_GRACE)


def _require_plan(decision: Decision, ref: PlanRef) -> None:
    if decision.plan_id != ref.plan_id:
        message = f"a decision on {decision.plan_id} came to {ref.plan_id}"
        raise ApplicationError(message, type="InvalidDecision", non_retryable=True)
