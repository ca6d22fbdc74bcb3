"""A check that has passed, as everything that makes it count: its run, the run's end, and what was seen of it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, func, select

from domain.duties import Actor
from domain.identity import run_id
from domain.lifecycle import Move
from domain.run import EvidenceKind
from store.evidence import Observation, record
from store.moves import move
from store.tables import runs


def passed(connection: Connection, plan: str, task: str, command: str, sha: str, at: datetime) -> None:
    """The command has run on this commit of the task and exited with 0."""
    epoch = 1 + (connection.scalar(select(func.max(runs.c.epoch)).where(runs.c.task_id == task)) or 0)
    numbers = select(func.max(runs.c.number)).where(runs.c.task_id == task, runs.c.role == "check")
    number = 1 + (connection.scalar(numbers) or 0)
    run = run_id(task, "check", number)
    first = {
        "plan_id": plan, "task_id": task, "role": "check", "number": number, "epoch": epoch, "runtime": "check",
        "command": command, "start_sha": sha,
    }  # fmt: skip
    seen = Observation(
        plan_id=plan, task_id=task, run_id=run, epoch=epoch, kind=EvidenceKind.CHECK, content=b"passed",
        commit_sha=sha, command=command, exit_code=0, seen_by="a test",
    )  # fmt: skip
    by, ended = Actor.WORKER, {"exit_code": 0, "outcome": "done"}
    start = Move("run", run, "start", f"start:{run}", plan, "a test", at, first, by=by)
    finish = Move("run", run, "finish", f"end:{run}", plan, "a test", at, ended, by=by)
    assert not move(connection, start, finish, record(connection, seen, "a test", at))[-1].refused
