"""Putting the rooms together: which activities and workflows a worker serves, on which queue."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Worker

from activities.commissions import Commissions
from activities.dispatch import Dispatch
from activities.facts import Facts
from activities.landing import Landing
from activities.supervision import Supervision
from activities.workspaces import Workspaces
from domain.identity import TASK_QUEUE, host_queue
from forge.port import Forge
from runtimes.confiner import Confiner
from runtimes.registry import RUNTIMES
from signing.keys import Signer
from store.database import Store
from store.runs import Keeper
from worker.settings import WorkerSettings
from workflows.heartbeat import HeartbeatWorkflow
from workflows.plan import PlanWorkflow
from workflows.sweep import SweepWorkflow
from workflows.task import TaskWorkflow

WORKFLOWS = [PlanWorkflow, TaskWorkflow, HeartbeatWorkflow, SweepWorkflow]

_HEARTBEAT_THROTTLE = timedelta(seconds=2)
"""How long a cancel may take to reach an activity; the SDK's own answer is half a minute."""

_MANY = 60
"""More than can be under way on one host: what limits runs are the slots that the graph grants."""

_GRACE = timedelta(seconds=5)


@dataclass(frozen=True)
class Ports:
    """What the activities of this worker reach the world through."""

    client: Client
    store: Store
    forge: Forge
    keeper: Keeper
    incarnation: int
    signer: Signer
    minter: Signer


def shared_worker(ports: Ports, settings: WorkerSettings, threads: ThreadPoolExecutor) -> Worker:
    """Workflows, facts and the forge: any worker can do these."""
    facts = Facts(ports.store, ports.keeper, settings.policy, ports.incarnation, ports.signer)
    landing = Landing(ports.store, ports.forge, ports.incarnation, ports.signer)
    dispatch = Dispatch(ports.client)
    return Worker(
        ports.client,
        task_queue=TASK_QUEUE,
        workflows=WORKFLOWS,
        activities=[
            facts.publish, facts.decide, facts.look_at_plan, facts.load_task, facts.begin_run, facts.recorded_end,
            facts.ask_about_host, facts.lose_lapsed_runs, facts.move, facts.owners_with_work,
            facts.plans_awaiting, facts.beat, facts.expire_reservations, facts.set_day, facts.edit_context,
            landing.find_repository, landing.open_pull_request, landing.open_draft, landing.look_at_pull_request,
            landing.merge_pull_request, landing.follow_forge, landing.close_pull_request,
            dispatch.ensure_tasks, dispatch.ensure_plans, dispatch.ensure_heartbeat, dispatch.wake,
        ],
        activity_executor=threads,
        graceful_shutdown_timeout=_GRACE,
    )  # fmt: skip


def host_worker(ports: Ports, settings: WorkerSettings, threads: ThreadPoolExecutor) -> Worker:
    """What lies on this host's disk: workspaces and processes. Only this host polls its queue."""
    workspaces = Workspaces(ports.store, ports.forge, settings.folder, ports.incarnation, ports.keeper.worker)
    supervision = Supervision(
        ports.store,
        settings.folder,
        RUNTIMES,
        ports.keeper,
        settings.agent_path,
        ports.incarnation,
        Commissions(ports.store, ports.forge, settings.folder, settings.relay, ports.minter, settings.own_logins),
        Confiner(settings.confine, settings.hidden, settings.readable),
        Dispatch(ports.client).wake,
    )
    return Worker(
        ports.client,
        task_queue=host_queue(ports.keeper.host),
        activities=[
            workspaces.prepare_workspace, workspaces.collect_work, workspaces.collect_review,
            workspaces.push_branch, workspaces.clear_away,
            supervision.supervise,
        ],
        activity_executor=threads,
        # Slots are granted in the graph; here nothing may wait behind a run that takes all night.
        max_concurrent_activities=_MANY,
        max_heartbeat_throttle_interval=_HEARTBEAT_THROTTLE,
        default_heartbeat_throttle_interval=_HEARTBEAT_THROTTLE,
        graceful_shutdown_timeout=_GRACE,
    )  # fmt: skip
