"""Runs in the graph: begun once, spawned, ended once, and declared lost only when their lease has lapsed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, select

from domain.confinement import Confinement
from domain.duties import Actor
from domain.errors import Superseded, Unavailable
from domain.flow import run_to_continue
from domain.identity import plan_of_task, run_id
from domain.lifecycle import Move
from domain.metering import Metering
from domain.publication import AskAboutHost, BeginRun, HostVerdict
from domain.review import reviewer_of
from domain.run import EndKind, EvidenceKind, Outcome, Role, RunEnd, RunEvent, RunFacts, RunState
from domain.task import TaskFacts, TaskState
from domain.told import ToldUsage
from store import events
from store.columns import instant
from store.evidence import MAX_CONTENT, Observation, record, text_of
from store.leases import (
    SLOT_LEASE,
    Lease,
    Slot,
    grant_slot,
    lapsed_leases,
    load_lease,
    release_lease,
    renew_slot,
    take_lease,
)
from store.moves import lock_chain, move
from store.tables import briefs, runs
from store.tables import evidence as evidence_rows
from store.tasks import load_run, load_task

SKEW = timedelta(seconds=30)
"""How far two hosts' clocks may be apart before a lease means nothing."""

SAID = 2000
"""Characters of a run's last words that travel with its end; evidence holds more."""

_STEP_OF = {Role.AUTHOR: TaskState.WORKING, Role.CHECK: TaskState.CHECKING, Role.REVIEWER: TaskState.REVIEWING}

_ENDING = {
    RunState.FINISHED: RunEvent.FINISH,
    RunState.CRASHED: RunEvent.CRASH,
    RunState.STOPPED: RunEvent.STOP,
    RunState.REFUSED: RunEvent.REFUSE,
    RunState.LOST: RunEvent.LOSE,
}


@dataclass(frozen=True)
class Keeper:
    """The worker that looks after a run, and how long it may be silent."""

    worker: str
    host: str
    boot: str
    lease: timedelta


def begin(connection: Connection, order: BeginRun, keeper: Keeper, incarnation: int) -> RunFacts:
    """Write down that a run begins on the keeper's host, and take its lease; or answer the one that is there.

    Raises Superseded when the task is not at the step that such a run belongs to, Unavailable while
    another of its runs lives.
    """
    lock_chain(connection, plan_of_task(order.task_id))
    task = load_task(connection, order.task_id, order.at)
    if task.state is not _STEP_OF[order.role]:
        raise Superseded(f"task {task.id} is {task.state}; no {order.role} begins")
    if order.role is Role.CHECK and order.command not in task.checks[order.ordinal - 1 : order.ordinal]:
        raise Superseded(f"`{order.command}` is no check of this plan any more")
    there = run_to_continue(task, order.role, order.ordinal)
    if there is not None:
        return there
    for other in task.runs:
        if other.live:
            raise Unavailable(f"run {other.id} still lives")
    number = _next_number(connection, order)
    identity = run_id(task.id, order.role, number)
    facts = _first_facts(task, order, number, _host_for(task, order, keeper))
    key, cause = f"start:{identity}", f"run {number}"
    start = Move("run", identity, RunEvent.START, key, task.plan_id, cause, order.at, facts, by=Actor.WORKER)
    move(connection, start, incarnation=incarnation)
    run = load_run(connection, identity)
    _take(connection, run, keeper, order.at)
    return run


def spawned(
    connection: Connection,
    run: RunFacts,
    keeper: Keeper,
    how: Confinement,
    at: datetime,
    incarnation: int,
    cap_nano_usd: int | None = None,
    metering: str = "",
) -> None:
    """Note that the run's process starts now, how it is confined, and what an agent was told and may spend, and whether
    that is metered.

    A repeat changes nothing, and must be of the same confinement; an ended run raises Superseded.
    """
    _take(connection, run, keeper, at)
    running = run.state is RunState.RUNNING
    said = connection.scalar(select(briefs.c.digest).where(briefs.c.run_id == run.id))
    cap, metering, brief = (run.cap_nano_usd, run.metering, run.brief) if running else (cap_nano_usd, metering, said)
    around = f", {metering}" if metering == Metering.UNMETERED else ""
    facts = {"confinement": how, "cap_nano_usd": cap, "metering": metering, "brief": brief}
    spawn = Move(
        "run",
        run.id,
        RunEvent.SPAWN,
        f"spawn:{run.id}",
        run.plan_id,
        f"on host {run.host}, {how}{around}",
        at,
        {name: fact for name, fact in facts.items() if fact not in (None, "")},
        by=Actor.WORKER,
    )
    moved = move(connection, spawn, incarnation=incarnation)[0]
    if moved.refused:
        raise Superseded(f"run {run.id} is {moved.state}; it is not started")


def why_to_stop(connection: Connection, run: RunFacts, now: datetime) -> str:
    """Why a run is wanted no more, or nothing. A read.

    An agent is stopped only because the graph says so: the task has left the step that it works on.
    """
    current = load_run(connection, run.id)
    if not current.live:
        return f"the run is {current.state}"
    task = load_task(connection, run.task_id, now)
    return "" if _is_wanted(run, task) else f"the task is {task.state}"


def keep(connection: Connection, run: RunFacts, keeper: Keeper, now: datetime) -> str:
    """Renew the run's lease and its task's slot, or answer why the run has to stop."""
    stop = why_to_stop(connection, run, now)
    if stop:
        return stop
    _take(connection, run, keeper, now)
    if not renew_slot(connection, run.task_id, now + SLOT_LEASE):
        # It lapsed while nobody could say that the run goes on; the process is there, so the slot is in use.
        owner = load_task(connection, run.task_id, now).owner
        grant_slot(connection, Slot(run.task_id, run.plan_id, owner, now, now + SLOT_LEASE))
    return ""


def verdict_on_host(
    connection: Connection, question: AskAboutHost, keeper: Keeper, now: datetime, incarnation: int
) -> HostVerdict:
    """Whether a step should go on waiting for a host that does not answer.

    A worker never gives up its own host: it is there to answer, so its queue is polled again.
    """
    lock_chain(connection, plan_of_task(question.task_id))
    task = load_task(connection, question.task_id, now)
    if (task.state, task.round) != (question.state, question.round):
        return HostVerdict.MOVED_ON
    run = load_run(connection, question.run_id) if question.run_id else None
    if keeper.host == (run.host if run else task.host):
        return HostVerdict.WAIT
    if run is None:
        return HostVerdict.GONE if question.patience_over else HostVerdict.WAIT
    if run.live and _has_lapsed(connection, run, now):
        _lose(connection, run, "its lease lapsed", now, incarnation)
        return HostVerdict.GONE
    if not run.live and run.state is not RunState.LOST and question.patience_over:
        _lose(connection, run, "what it left is on a host that is gone", now, incarnation)
        return HostVerdict.GONE
    return HostVerdict.GONE if run.state is RunState.LOST else HostVerdict.WAIT


def lose_lapsed(connection: Connection, identity: str, keeper: Keeper, now: datetime, incarnation: int) -> bool:
    """Declare a live run lost that nobody looks after; whether it is lost now.

    A run of the asking worker's own host is lost only when its task has left it behind.
    """
    run = load_run(connection, identity)
    lock_chain(connection, run.plan_id)
    run = load_run(connection, identity)
    wanted = run.host == keeper.host and _is_wanted(run, load_task(connection, run.task_id, now))
    if not run.live:
        release_lease(connection, identity)
    elif not wanted and _has_lapsed(connection, run, now):
        _lose(connection, run, "its lease lapsed", now, incarnation)
        return True
    return False


def lapsed(connection: Connection, now: datetime) -> list[str]:
    """The runs whose leases have lapsed for good."""
    return [lease.run_id for lease in lapsed_leases(connection, now - SKEW)]


def _has_lapsed(connection: Connection, run: RunFacts, now: datetime) -> bool:
    lease = load_lease(connection, run.id)
    return lease is not None and lease.lease_until + SKEW <= now


def _is_wanted(run: RunFacts, task: TaskFacts) -> bool:
    """Whether the task is at the step, and in the round, that the run was begun for."""
    return task.state is _STEP_OF[run.role] and task.round == run.round


def _lose(connection: Connection, run: RunFacts, cause: str, at: datetime, incarnation: int) -> None:
    facts = {"reason": f"host {run.host} fell silent"}
    lose = Move("run", run.id, RunEvent.LOSE, f"lose:{run.id}", run.plan_id, cause, at, facts, by=Actor.WORKER)
    move(connection, lose, incarnation=incarnation)
    release_lease(connection, run.id)


def end(
    connection: Connection,
    run: RunFacts,
    how: RunEnd,
    story: Iterable[events.Event],
    seen_by: str,
    at: datetime,
    incarnation: int,
    told: ToldUsage | None = None,
) -> RunEnd:
    """Record how a run ended, with the evidence that its end is. The first end that is recorded holds.

    `told` is what its CLI says that it used, where nobody counts that: it is kept beside, as the word that it is.
    """
    lock_chain(connection, run.plan_id)
    events.append(connection, run.id, story, events.MOST_EVENTS + events.FOR_ITS_END)
    ending = Move(
        "run", run.id, _ENDING[how.state], f"end:{run.id}", run.plan_id, how.reason or how.kind, at,
        {"exit_code": how.exit_code, "reason": how.reason, "outcome": how.outcome, "session": how.session,
         "asked": how.question}, by=Actor.WORKER,
    )  # fmt: skip
    proof = (*_proof(connection, run, how, seen_by, at), *_word(connection, run, told, seen_by, at))
    if load_run(connection, run.id).live:
        move(connection, ending, *proof, incarnation=incarnation)
    release_lease(connection, run.id)
    return recorded_end(connection, load_run(connection, run.id), how.kind)


def recorded_end(connection: Connection, run: RunFacts, kind: EndKind = EndKind.EXITED) -> RunEnd:
    """How a run ended, as the graph has it, with the last of what it said."""
    kept = connection.scalar(
        select(evidence_rows.c.digest)
        .where(
            evidence_rows.c.run_id == run.id,
            evidence_rows.c.kind.in_((EvidenceKind.CHECK, EvidenceKind.AGENT_CRASH)),
        )
        .limit(1)
    )
    tail = text_of(connection, kept) if kept else ""
    outcome = Outcome(run.outcome) if run.outcome else Outcome.STOPPED
    return RunEnd(
        run.id, run.state, kind, run.exit_code, run.reason, tail[-SAID:], outcome, run.asked, run.session,
        events.last_refusal(connection, run.id),
    )  # fmt: skip


def _next_number(connection: Connection, order: BeginRun) -> int:
    same = select(runs.c.number).where(runs.c.task_id == order.task_id, runs.c.role == order.role)
    return max(connection.scalars(same), default=0) + 1


def _host_for(task: TaskFacts, order: BeginRun, keeper: Keeper) -> str:
    """Checks and reviewers run where the commit lies, unless that host has just lost one of them."""
    if order.role is Role.AUTHOR or not task.host:
        return keeper.host
    lost = any(run.state is RunState.LOST and run.host == task.host for run in task.runs)
    return keeper.host if lost else task.host


def _first_facts(task: TaskFacts, order: BeginRun, number: int, host: str) -> dict[str, Any]:
    runtime, model = _who(task, order)
    return {
        "plan_id": task.plan_id,
        "task_id": task.id,
        "role": order.role,
        "number": number,
        "round": task.round,
        "epoch": task.epoch + 1,
        "ordinal": order.ordinal,
        "runtime": runtime,
        "model": model,
        "command": order.command,
        "host": host,
        "start_sha": task.head_sha if order.role.judges else "",
        "started_at": instant(order.at),
        "confinement": "",
        "revision": task.revision,
    }


def _who(task: TaskFacts, order: BeginRun) -> tuple[str, str]:
    """The runtime and the model of a run; a check's runtime is called as its role."""
    match order.role:
        case Role.AUTHOR:
            return task.runtime, task.model
        case Role.REVIEWER:
            reviewer = reviewer_of(task.reviewers[order.ordinal - 1])
            return reviewer.runtime, reviewer.model
        case Role.CHECK:
            return order.role, ""


def _take(connection: Connection, run: RunFacts, keeper: Keeper, now: datetime) -> None:
    lease = Lease(run.id, run.task_id, keeper.worker, run.host, keeper.boot, run.epoch, now + keeper.lease)
    # On the run's own host a restarted worker takes over at once: the run's folder is locked by its
    # supervisor, so no second process can come of it. Another host has to wait for the lapse.
    allowed = now + keeper.lease * 2 if keeper.host == run.host else now - SKEW
    take_lease(connection, lease, allowed)


def _proof(connection: Connection, run: RunFacts, how: RunEnd, seen_by: str, at: datetime) -> tuple[Move, ...]:
    """The evidence that a run's end is: a check's outcome, or the last words of what crashed."""
    if run.role is Role.CHECK and how.state is RunState.FINISHED:
        kind = EvidenceKind.CHECK
    elif how.state is RunState.CRASHED:
        kind = EvidenceKind.AGENT_CRASH
    else:
        return ()
    seen = Observation(
        plan_id=run.plan_id,
        task_id=run.task_id,
        run_id=run.id,
        epoch=run.epoch,
        kind=kind,
        content=how.tail.encode(errors="replace")[-MAX_CONTENT:],
        commit_sha=run.start_sha if run.role.judges else "",
        command=run.command,
        exit_code=how.exit_code,
        seen_by=seen_by,
    )
    return (record(connection, seen, how.reason or how.kind, at),)


def _word(
    connection: Connection, run: RunFacts, told: ToldUsage | None, heard_by: str, at: datetime
) -> tuple[Move, ...]:
    if told is None:
        return ()
    heard = Observation(
        plan_id=run.plan_id,
        task_id=run.task_id,
        run_id=run.id,
        epoch=run.epoch,
        kind=EvidenceKind.USAGE,
        content=told.content,
        command=told.by,
        seen_by=heard_by,
    )
    return (record(connection, heard, f"{told.by} says so of itself, unverified", at),)
