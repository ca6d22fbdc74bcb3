"""Reading and moving facts in the work graph. Short and idempotent, so they run as local activities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sqlalchemy import Connection
from temporalio import activity

from domain.decision import Reply
from domain.document import parse
from domain.heartbeat import HeartbeatPolicy
from domain.notes import EditContext
from domain.publication import (
    AskAboutHost,
    Beat,
    BeatReply,
    BeginRun,
    Decide,
    HostVerdict,
    LookAtPlan,
    Moves,
    MovesReply,
    PlanRef,
    PublishTo,
)
from domain.raising import SetDay
from domain.run import RunEnd, RunFacts
from domain.task import TaskFacts
from domain.view import PlanView
from signing.keys import Signer
from signing.seals import Head, seal
from store import (
    budgets,
    closing,
    decisions,
    dispatch,
    ledger,
    moves,
    notes,
    publication,
    receipts,
    runs,
    seals,
    tasks,
    views,
)
from store.database import Store

whole = activity.defn(no_thread_cancel_exception=True)
"""An activity in a thread that is never broken off. When one is given up, the SDK would raise an exception at
whatever its thread is doing; between taking the store's lock and holding it, that leaves the lock taken for good.
Nobody waits for what it answers then, and a repeat finds what it wrote."""


@dataclass(frozen=True)
class Facts:
    """The work graph as workflows see it.

    `keeper` is this worker, `policy` what its heartbeats are set to, `incarnation` its
    Temporal's number, `signer` what seals a chain's head.
    """

    store: Store
    keeper: runs.Keeper
    policy: HeartbeatPolicy
    incarnation: int
    signer: Signer

    @whole
    def publish(self, order: PublishTo) -> Reply:
        """Write a document down as a proposed revision. The same text again answers that it is there."""
        spec = parse(order.publish.text, file_name=order.publish.file_name)
        with self.store.write() as connection:
            return publication.publish(connection, order, spec, self.incarnation)

    @whole
    def decide(self, order: Decide) -> Reply:
        """Write a person's decision down and make its moves. Repeated, it answers the first receipt."""
        with self.store.write() as connection:
            return decisions.decide(connection, order.decision, order.at, self.incarnation)

    @whole
    def look_at_plan(self, look: LookAtPlan) -> PlanView | None:
        """The plan as it stands, completed if its last box has ended; None if it was never published.

        Completing is a move keyed by the plan's last receipt, so a repeat finds it made. What has ended is
        sealed; a repeat seals only what was moved since.
        """
        view, sealed = self._seen(look)
        if view and view.every_box_has_ended:
            with self.store.write() as connection:
                views.complete(connection, look.plan_id, activity.info().scheduled_time, self.incarnation)
            view, sealed = self._seen(look)
        if view and not sealed:
            token = seal(self.signer, Head(view.plan_id, view.seq, view.head))
            with self.store.write() as connection:
                seals.keep_seal(connection, view.plan_id, view.seq, token)
        return view

    def _seen(self, look: LookAtPlan) -> tuple[PlanView | None, bool]:
        """The plan as it stands, and whether there is nothing of it to seal."""
        with self.store.read() as connection:
            view = views.plan_view(connection, look.plan_id, look.seen)
            return view, not view or not view.ended or seals.newest_seal(connection, view.plan_id)[0] == view.seq

    @whole
    def load_task(self, task_id: str) -> TaskFacts:
        """Everything a task's workflow goes by. A read."""
        with self.store.read() as connection:
            return _facts_of(connection, task_id)

    @whole
    def begin_run(self, order: BeginRun) -> RunFacts:
        """Write down that a run begins, on this host. Its number comes from the graph.

        A repeat, or a second caller, is answered with the run that is there already.
        """
        order = replace(order, at=activity.info().current_attempt_scheduled_time)
        with self.store.write() as connection:
            return runs.begin(connection, order, self.keeper, self.incarnation)

    @whole
    def recorded_end(self, run_id: str) -> RunEnd:
        """How a run ended, as the graph has it. A read."""
        with self.store.read() as connection:
            return runs.recorded_end(connection, tasks.load_run(connection, run_id))

    @whole
    def ask_about_host(self, question: AskAboutHost) -> HostVerdict:
        """Whether to go on waiting for a silent host; a run whose lease has lapsed is declared lost.

        A repeat finds it lost. A crash before leaves a lapsed lease for the next caller.
        """
        with self.store.write() as connection:
            return runs.verdict_on_host(connection, question, self.keeper, datetime.now(UTC), self.incarnation)

    @whole
    def lose_lapsed_runs(self, _: None) -> int:
        """Declare every run lost whose lease has lapsed for good. A repeat finds none left."""
        with self.store.read() as connection:
            lapsed = runs.lapsed(connection, datetime.now(UTC))
        lost = 0
        for run in lapsed:
            with self.store.write() as connection:
                lost += runs.lose_lapsed(connection, run, self.keeper, datetime.now(UTC), self.incarnation)
        return lost

    @whole
    def expire_reservations(self, _: None) -> int:
        """Let what is held for calls that no relay answers for any more count as spent. A repeat finds none left."""
        expired = 0
        while True:
            with self.store.write() as connection:
                count = ledger.expire(connection, datetime.now(UTC) - runs.SKEW)
            expired += count
            if count < ledger.AT_ONCE:
                return expired

    @whole
    def set_day(self, order: SetDay) -> Reply:
        """Write down what an owner's runs may cost a day. Repeated, it answers the first receipt."""
        with self.store.write() as connection:
            return budgets.set_day(connection, order, activity.info().scheduled_time, self.incarnation)

    @whole
    def edit_context(self, order: EditContext) -> Reply:
        """Write down what a person changed of what is known of a plan or a repository. A repeat finds it changed."""
        with self.store.write() as connection:
            return notes.edit(connection, order, activity.info().scheduled_time, self.incarnation)

    @whole
    def move(self, order: Moves) -> MovesReply:
        """Make a task's moves together, if it still stands where they were judged.

        A repeat answers the first receipt; the reply is the state that holds. Judged from facts that
        have changed since, they are not made, and the caller looks again. What says that a commit is proven, and
        is not borne out by the evidence, is made without saying so.
        """
        wishes = [sent.arrived() for sent in order.moves]
        task, first = wishes[0].subject, wishes[0]
        with self.store.write() as connection:
            moves.lock_chain(connection, first.chain)
            state, seq = tasks.where_it_stands(connection, task)
            if seq != order.seen and not receipts.seq_of_key(connection, first.chain, first.key):
                return MovesReply(state=state, fresh=False)
            wishes = [closing.as_borne_out(connection, wish) for wish in wishes]
            moved = moves.move(connection, *wishes, incarnation=self.incarnation)
            after = _facts_of(connection, task) if moved[0].fresh else None
        # Of a group that was refused, the one answer is the refusal; its subject may be another than the first.
        last = moved[-1]
        if last.refused:
            return MovesReply(state="", fresh=False, refused=last.refused)
        return MovesReply(state=moved[0].state or "", fresh=moved[0].fresh, task=after)

    @whole
    def owners_with_work(self, _: None) -> list[str]:
        """Owners whose confirmed plans are not done, or for whom hints wait unhandled. A read."""
        with self.store.read() as connection:
            return dispatch.owners_with_work(connection)

    @whole
    def plans_awaiting(self, _: None) -> list[PlanRef]:
        """The plans that are published and wait to be confirmed. A read."""
        with self.store.read() as connection:
            return dispatch.plans_awaiting(connection)

    @whole
    def beat(self, order: Beat) -> BeatReply:
        """Reconcile the owner's confirmed plans with what is: grant slots, begin tasks, say whom to wake.

        A repeat finds the slots granted and the tasks begun, and names the same tasks to be woken. Should
        no reply come through at all, the next whole beat keeps them alive.
        """
        return dispatch.beat(self.store, order, self.policy, self.incarnation)


def _facts_of(connection: Connection, task_id: str) -> TaskFacts:
    """The task, without its text: that is for the run, and need not go through the history at every turn."""
    now = activity.info().current_attempt_scheduled_time
    return replace(tasks.load_task(connection, task_id, now), body="")
