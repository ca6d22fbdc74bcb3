"""What a brief is rendered from, as the graph has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from domain.brief import Attempt, BriefFacts, Delivered, summary_in
from domain.rules import Policy
from domain.run import Role, RunFacts, RunState
from domain.task import TaskFacts
from store import notes
from store.plans import load_plan
from store.runs import recorded_end
from store.tables import runs, tasks
from store.tasks import load_run
from store.views import plan_view
from store.words import last_result, result_of


def facts_of(
    connection: Connection,
    run: RunFacts,
    task: TaskFacts,
    *,
    note: str,
    policy: Policy,
    schema: Mapping[str, Any] | None = None,
) -> BriefFacts:
    """Everything that this run of the task is to know. `policy` is what is in force for it."""
    plan = load_plan(connection, run.plan_id)
    space = notes.of_plan(connection, plan)
    return BriefFacts(
        task,
        plan.spec,
        space.notes,
        space.around,
        delivered_to(connection, task.id),
        last_attempt(connection, run),
        note,
        policy,
        schema,
    )


def delivered_to(connection: Connection, task_id: str) -> tuple[Delivered, ...]:
    """What the tasks came to that this one follows, in the order in which its box names them."""
    row = connection.execute(select(tasks.c.plan_id, tasks.c.after).where(tasks.c.id == task_id)).one()
    view = plan_view(connection, row.plan_id) if row.after else None
    boxes = {task.ordinal: task for task in view.tasks} if view else {}
    found = []
    for ordinal in row.after:
        box = boxes.get(ordinal)
        if box is None:
            continue
        result = last_result(connection, box.id) if box.id else None
        summary = summary_in(result.body) if result else ""
        found.append(Delivered(ordinal, box.title, box.state, box.proof, box.pull_url, box.head_sha, summary))
    return tuple(found)


def last_attempt(connection: Connection, run: RunFacts) -> Attempt | None:
    """The author's run before this one at the same task, in whichever round; None for the first."""
    before = (runs.c.task_id == run.task_id) & (runs.c.role == Role.AUTHOR) & (runs.c.epoch < run.epoch)
    identity = connection.scalar(select(runs.c.id).where(before).order_by(runs.c.epoch.desc()).limit(1))
    if identity is None:
        return None
    last = load_run(connection, identity)
    end, result = recorded_end(connection, last), result_of(connection, identity)
    # What crashed said nothing but its last words.
    said = summary_in(result.body) if result else end.tail if last.state is RunState.CRASHED else ""
    return Attempt(last.number, last.outcome or last.state, end.reason, said.strip(), end.question, end.refused)
