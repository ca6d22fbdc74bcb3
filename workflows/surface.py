"""What workflows show and whom they wake. Nothing here is a fact, and nothing depends on it arriving.

A wake-up that finds nobody is dropped: who should live is started by the heartbeat and the sweep.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from activities.dispatch import Dispatch
    from domain import confinement, metering
    from domain.agents import AGENTS
    from domain.identity import heartbeat_workflow_id, plan_workflow_id
    from domain.publication import BeatReply, TaskRef
    from domain.task import TaskFacts
    from domain.view import PlanView, to_markdown
    from domain.wording import counted
    from workflows.calls import facts, failure_of

OWNER = SearchAttributeKey.for_keyword("WatchbillOwner")
PLAN = SearchAttributeKey.for_keyword("WatchbillPlan")
STATE = SearchAttributeKey.for_keyword("WatchbillState")
NEEDS_PERSON = SearchAttributeKey.for_bool("WatchbillNeedsPerson")


def show_plan(view: PlanView) -> None:
    """The plan's state, findable by search attribute and readable as Markdown in the Temporal UI."""
    _show(view.owner, view.plan_id, view.state, view.needs_person, to_markdown(view))


def show_task(ref: TaskRef, task: TaskFacts) -> None:
    """As `show_plan`, for one task: what it is doing, or what it asks."""
    asks = task.question is not None and task.ended is False
    lines = [f"**{task.state}** · round {task.round} · {task.runs_begun} of {counted(task.allowed_runs, 'run')}"]
    if task.question is not None and asks:
        lines.append(f"Waits for a person (`{task.question.id}`): {task.question.text}")
    if task.pull_url:
        lines.append(f"[pull request {task.pull_number}]({task.pull_url})")
    if task.reason:
        lines.append(task.reason)
    kept = confinement.of_runs(run.confinement for run in task.runs)
    around = metering.of_runs(run.metering for run in task.runs if run.runtime in AGENTS and run.confinement)
    if kept:
        lines.append(f"{confinement.sentence(kept)} {metering.sentence(around)}".rstrip())
    _show(ref.owner, ref.plan_id, task.state, asks, "\n\n".join(lines))


def show_heartbeat(owner: str, beat: BeatReply) -> None:
    if workflow.info().typed_search_attributes.get(OWNER) != owner:
        workflow.upsert_search_attributes([OWNER.value_set(owner)])
    workflow.set_current_details(f"Last beat woke {counted(len(beat.wake), 'task')}. {beat.closed_gate}".strip())


def _show(owner: str, plan: str, state: str, needs_person: bool, details: str) -> None:
    shown = workflow.info().typed_search_attributes
    wanted: dict[SearchAttributeKey[Any], object] = {
        OWNER: owner,
        PLAN: plan,
        STATE: state,
        NEEDS_PERSON: needs_person,
    }
    # Every upsert is an event and a write to Temporal's index, so what stands there already is left out.
    changed = [key.value_set(value) for key, value in wanted.items() if shown.get(key) != value]
    if changed:
        workflow.upsert_search_attributes(changed)
    workflow.set_current_details(details)


async def wake_plan(ref: TaskRef) -> None:
    await _wake(plan_workflow_id(ref.plan_id))


async def nudge_heartbeat(owner: str) -> None:
    await _wake(heartbeat_workflow_id(owner))


async def _wake(workflow_id: str) -> None:
    """By a local activity: a signal of the workflow's own would cost it a turn of its own at the server."""
    try:
        await facts(Dispatch.wake, workflow_id)
    except ActivityError as error:
        workflow.logger.info("could not wake", extra={"workflow_id": workflow_id, "reason": failure_of(error)})
