"""What a brief is rendered from, as the graph has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, select

from domain.brief import Artifact, Attempt, BriefFacts, Delivered, summary_in
from domain.errors import Damaged, NotFound
from domain.rules import Policy
from domain.run import EvidenceKind, Role, RunFacts, RunState
from domain.task import TaskFacts
from domain.view import TaskView
from store import notes
from store.evidence import Evidence, content, evidence_of
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
        run.role,
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
        seen = _at_its_head(connection, box)
        found.append(
            Delivered(
                ordinal, box.title, box.state, box.proof, box.pull_url, box.head_sha, summary,
                _files(connection, seen), tuple(_artifacts(ordinal, seen)),
            )
        )  # fmt: skip
    return tuple(found)


def artifacts_for(connection: Connection, task_id: str) -> tuple[Artifact, ...]:
    """What a run of this task is given of those that it follows."""
    return tuple(artifact for task in delivered_to(connection, task_id) for artifact in task.artifacts)


def _at_its_head(connection: Connection, box: TaskView) -> Sequence[Evidence]:
    """What was seen of the commit that a task came to: the newest list of what it changed, and every check."""
    if not box.id or not box.head_sha:
        return ()
    seen = [one for one in evidence_of(connection, task_id=box.id) if one.commit_sha == box.head_sha]
    changed = [one for one in seen if one.kind is EvidenceKind.CHANGES]
    return (*changed[-1:], *(one for one in seen if one.kind is EvidenceKind.CHECK))


def _artifacts(ordinal: int, seen: Iterable[Evidence]) -> Iterator[Artifact]:
    checks = 0
    for one in seen:
        if one.kind is EvidenceKind.CHANGES:
            yield Artifact(f"{ordinal}/changes", one.digest, "the paths that it changed")
        else:
            checks += 1
            about = f"the last of what `{one.command}` said, which exited {one.exit_code}"
            yield Artifact(f"{ordinal}/check-{checks}", one.digest, about)


def _files(connection: Connection, seen: Iterable[Evidence]) -> tuple[str, ...]:
    """The paths that a commit changed; none where what was seen of them is no longer what it was."""
    for one in seen:
        if one.kind is EvidenceKind.CHANGES:
            with suppress(NotFound, Damaged):
                return tuple(content(connection, one.digest).decode("utf-8", "replace").splitlines())
    return ()


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
