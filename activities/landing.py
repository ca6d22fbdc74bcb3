"""What is done at the forge: find the repository, open the pull request, follow it, merge it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from temporalio import activity

from activities.redaction import publishable
from domain import confinement, metering
from domain.agents import AGENTS
from domain.brief import summary_in
from domain.errors import NotFound
from domain.identity import branch_of
from domain.publication import FindRepository, MergeOrder
from domain.pull import Merge, MergeKind, Opened, PullRequest, Repository
from domain.review import ReviewFacts
from domain.run import EvidenceKind
from domain.task import TaskFacts, TaskState
from forge import text
from forge.port import Forge
from signing.keys import Signer
from signing.seals import Head, seal
from store import closing, dispatch, evidence, inbox, receipts, seals, tasks, views, words
from store.database import Store

_PROOF = (EvidenceKind.CHECK, EvidenceKind.REVIEW)
"""The evidence of a commit that its pull request shows."""


@dataclass(frozen=True)
class Landing:
    store: Store
    forge: Forge
    incarnation: int
    signer: Signer

    @activity.defn
    async def find_repository(self, order: FindRepository) -> Repository:
        """The repository as the forge has it, with the base known to be there. A read."""
        repository = await self.forge.repository(order.name)
        base = order.base or repository.default_branch
        if await self.forge.branch_head(order.name, base) is None:
            raise NotFound(f"{order.name} has no branch {base}; name one that exists as `base` in the plan")
        return repository

    @activity.defn
    async def open_pull_request(self, task_id: str) -> Opened:
        """Find or make the one pull request of this task's branch.

        A repeat, or a response that was lost, finds the pull request by its exact head and base. A draft that
        was opened for this task before is made ready. One of a task that a revision has changed says what is asked
        for now.
        """
        task, title, body = await asyncio.to_thread(self._text, task_id)
        return await self.forge.open_pull_request(
            task.repository,
            branch=branch_of(task.id),
            base=task.base,
            title=title,
            body=body,
            renew=bool(task.revision),
        )

    @activity.defn
    async def open_draft(self, task_id: str) -> Opened:
        """Find or make the draft in which unfinished work of this task is shown.

        A repeat finds it by its exact head and base, and says the same in it again.
        """
        task, title, body = await asyncio.to_thread(self._text, task_id, unfinished=True)
        return await self.forge.open_pull_request(
            task.repository, branch=branch_of(task.id), base=task.base, title=title, body=body, draft=True
        )

    @activity.defn
    async def look_at_pull_request(self, task_id: str) -> PullRequest | None:
        """Read the task's pull request, or find out that its branch has none yet.

        What was hinted at before the read began counts as handled.

        A repeat reads again, and settles what came in between as well.
        """
        began = activity.info().current_attempt_scheduled_time
        task = await asyncio.to_thread(self._load, task_id)
        pull = await self._pull_of(task)
        await asyncio.to_thread(self._hints_handled, task_id, began)
        return pull

    @activity.defn
    async def merge_pull_request(self, order: MergeOrder) -> Merge:
        """Ask the forge to merge exactly this commit. A repeat finds it merged; a newer head is not merged.

        Whatever the task's row says, the graph is asked once more for the evidence of this very commit.
        """
        task, missing = await asyncio.to_thread(self._to_merge, order)
        if missing:
            return Merge(MergeKind.UNPROVEN, reason=f"it is not proven: {'; '.join(missing)}")
        return await self.forge.merge_pull_request(
            task.repository,
            order.number,
            sha=order.sha,
            title=text.title(task.title),
            message=text.message(f"Task {task.ordinal} of plan {task.plan_id}."),
        )

    @activity.defn
    async def follow_forge(self, task_id: str) -> bool:
        """Let the forge's fact about a task's pull request move the task; whether it moved.

        For tasks that no workflow watches. The move is keyed by the fact, so it is made once.
        """
        began = activity.info().current_attempt_scheduled_time
        task = await asyncio.to_thread(self._load, task_id)
        # A merge is for ever: what the forge says now cannot matter any more.
        pull = None if task.state is TaskState.MERGED else await self._pull_of(task)
        return await asyncio.to_thread(self._settle, task_id, pull, began)

    @activity.defn
    async def close_pull_request(self, task_id: str) -> None:
        """Close the pull request of a task that will not be merged, if it has one. A repeat finds it closed."""
        task = await asyncio.to_thread(self._load, task_id)
        pull = await self._pull_of(task)
        if pull is not None and pull.open:
            await self.forge.close_pull_request(task.repository, pull.number)

    async def _pull_of(self, task: TaskFacts) -> PullRequest | None:
        if task.pull_number is not None:
            return await self.forge.read_pull_request(task.repository, task.pull_number)
        return await self.forge.find_pull_request(task.repository, branch=branch_of(task.id), base=task.base)

    def _load(self, task_id: str) -> TaskFacts:
        with self.store.read() as connection:
            return tasks.load_task(connection, task_id, activity.info().scheduled_time)

    def _to_merge(self, order: MergeOrder) -> tuple[TaskFacts, tuple[str, ...]]:
        """The task, and what is missing of its proof, unless a person has approved this very commit."""
        with self.store.read() as connection:
            task = tasks.load_task(connection, order.task_id, activity.info().scheduled_time)
            by_hand = order.sha == task.approved_sha
            return task, () if by_hand else closing.missing(connection, task.id, order.sha)

    def _text(self, task_id: str, *, unfinished: bool = False) -> tuple[TaskFacts, str, str]:
        with self.store.read() as connection:
            task = tasks.load_task(connection, task_id, activity.info().scheduled_time)
            seen = evidence.evidence_of(connection, task_id=task_id)
            result = words.last_result(connection, task_id) if task.runtime in AGENTS else None
            head = Head(task.plan_id, *receipts.head_of(connection, task.plan_id))
            kept = views.confinement_of(connection, plan_id=task.plan_id, task_id=task.id)
            around = views.metering_of(connection, plan_id=task.plan_id, task_id=task.id)
        token = seal(self.signer, head)
        with self.store.write() as connection:
            seals.keep_seal(connection, head.chain, head.seq, token)
        given = {review.run_id: review for review in task.reviews}
        proof = [
            _row(one, given.get(one.run_id or ""))
            for one in seen
            if one.commit_sha == task.head_sha and one.kind in _PROOF
        ]
        how = f"{confinement.sentence(kept)} {metering.sentence(around)}".rstrip()
        chain = f"Receipt {head.seq} of plan `{head.chain}`, chain head `{head.hash}`. {how}"
        asked = f"{task.title}\n\n{task.body}"
        said = publishable(summary_in(result.body)) if result else ""
        body = text.body(
            task_id=task.id, asked=asked, said=said, evidence=proof, chain=chain, seal=token, unfinished=unfinished
        )
        return task, text.title(task.title), body

    def _hints_handled(self, task_id: str, before: datetime) -> None:
        with self.store.write() as connection:
            inbox.mark_handled(connection, task_id, before=before, at=before)

    def _settle(self, task_id: str, pull: PullRequest | None, began: datetime) -> bool:
        with self.store.write() as connection:
            moved = pull is not None and dispatch.follow_forge(connection, task_id, pull, began, self.incarnation)
            inbox.mark_handled(connection, task_id, before=began, at=began)
            return moved


def _row(seen: evidence.Evidence, review: ReviewFacts | None) -> text.Evidence:
    if seen.kind is EvidenceKind.REVIEW:
        told = f"{review.state.replace('_', ' ')}: {publishable(review.summary)}" if review else "void"
        return text.Evidence(f"review by `{seen.command}`", told, f"{seen.commit_sha[:12]}, sha256 {seen.digest[:16]}")
    result = "passed" if seen.exit_code == 0 else f"exit {seen.exit_code}"
    return text.Evidence(f"`{seen.command}`", result, f"{seen.commit_sha[:12]}, sha256 {seen.digest[:16]}")
