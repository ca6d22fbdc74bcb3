"""A rehearsal: one plan taken to its end against stand-ins, and told as it goes."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

from domain.agents import AGENTS
from domain.decision import Decision, DecisionKind, Outcome, Reply
from domain.errors import NotFound
from domain.identity import plan_id
from domain.plan import PlanSpec
from domain.publication import Publish
from domain.review import reviewer_of
from domain.task import TaskState
from domain.view import PlanView
from runtimes.agent import mend_of
from starter.client import Temporal
from starter.exits import CommandFailed, Exit
from starter.following import Over, follow
from starter.hints import Waiting
from starter.looking import Lookout
from starter.output import note, say
from starter.replies import who
from starter.reporting.giving import load_report, show_report, write_report
from starter.settings import require_owner
from starter.sources import require_source, uncommitted
from starter.stage import Stage, stage
from starter.until import Until
from starter.watching import exit_of, tell_person


def rehearse(
    file: Path, text: str, spec: PlanSpec, source: Path, owner: str, *, keep: bool, page: Path | None = None
) -> Exit:
    """Rehearse one plan on a copy of `source`; the exit code says whether everything was merged.

    Its report is written to `page` as well, where one is named: the store that it is made from goes with the rehearsal.
    """
    return asyncio.run(_rehearse(file, text, spec, source, owner, keep, page))


async def _rehearse(
    file: Path, text: str, spec: PlanSpec, source: Path, owner: str, keep: bool, page: Path | None
) -> Exit:
    require_owner("--owner", owner)
    require_source(source)
    if uncommitted(source):
        note(f"{source} has changes that are not committed; they are not part of the rehearsal")
    _require_agents(spec)
    if page is not None and not page.parent.is_dir():
        raise NotFound(f"--html: {page.parent} is no directory; make it first, so that the report is not lost")
    if page is not None and (page.is_dir() or not os.access(page.parent, os.W_OK)):
        raise NotFound(f"--html: {page} cannot be written; name a file in a directory of yours")
    say(f"Setting up Temporal, a stand-in GitHub, a worker, the webhooks door and the relay for {spec.slug} …")
    async with stage(owner, spec.repository, source, note) as up:
        _tell_addresses(up)
        view = await perform(up, file, text, spec, patient=keep)
        say()
        show_report(load_report(up.settings, view.plan_id))
        if page is not None:
            write_report(up.settings, view.plan_id, page)
        if keep:
            _tell_addresses(up)
            home = up.settings.home
            say(f"To look around in another terminal: export WATCHBILL_HOME={home} WATCHBILL_OWNER={owner}")
            say("Ctrl-C ends it, and nothing of it stays.")
            await up.local.wait()
        else:
            say("The rehearsal is over. Its models were a stand-in's: what they cost was reckoned, and nobody pays it.")
            say("All of it goes, what the addresses show too; --keep would leave it up.")
        return exit_of(view)


def _require_agents(spec: PlanSpec) -> None:
    """Raises NotFound where an agent that the plan names is not installed here: nothing has been begun yet."""
    authors = {task.runtime for task in spec.tasks if not task.starts_nothing} & AGENTS.keys()
    reviewers = {reviewer_of(each).runtime for each in spec.reviewers}
    for what, clis in (("done", authors), ("reviewed", reviewers)):
        for cli in sorted(clis):
            if shutil.which(cli) is None:
                raise NotFound(f"{spec.slug} is {what} by {cli}, which is not on the PATH; install it: {mend_of(cli)}")


async def perform(up: Stage, file: Path, text: str, spec: PlanSpec, *, patient: bool) -> PlanView:
    """Publish, confirm and follow the plan; the last view of it.

    Where it is merged by hand, the hand is ours. A question is not ours to answer, so it ends the
    rehearsal, unless somebody `patient` answers it from another terminal.
    """
    owner, by = up.settings.owner, who()
    temporal = await Temporal.connect(up.settings)
    plan = plan_id(owner, spec.slug)
    _carried_out(await temporal.publish(plan, Publish(owner, text, spec.repository, spec.base, file.name, by)))
    _carried_out(await temporal.decide(Decision(DecisionKind.CONFIRM, plan, names=spec.digest, by=by), owner))
    lookout = Lookout(up.settings, plan, temporal)
    async for news in follow(lookout.look, 0, Until.ENDED):
        if isinstance(news, Over):
            return news.view
        tell_person(news)
        if isinstance(news, Waiting) and news.task is not None:
            view = await lookout.look()
            if not await _merged_by_us(temporal, view, news.task) and not patient:
                return view
    raise AssertionError("following a plan ends with its end")


async def _merged_by_us(temporal: Temporal, view: PlanView, ordinal: int) -> bool:
    """Approve a task that waits to be merged by hand; False when it asks a question instead."""
    task = next(each for each in view.tasks if each.ordinal == ordinal)
    if task.question_id:
        return False
    if task.state == TaskState.IN_REVIEW:
        approval = Decision(DecisionKind.APPROVE, view.plan_id, ordinal, task.head_sha, by="the rehearsal")
        await temporal.decide(approval, view.owner)
    return True


def _carried_out(reply: Reply) -> None:
    if reply.outcome is Outcome.REFUSED:
        raise CommandFailed(Exit.REFUSED, reply.message)


def _tell_addresses(up: Stage) -> None:
    say(f"Temporal's UI   {up.addresses.ui}")
    say(f"stand-in        {up.addresses.github}")
