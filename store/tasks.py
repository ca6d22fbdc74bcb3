"""Reading tasks, with everything that their workflows decide from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, func, select

from domain.errors import NotFound
from domain.review import ReviewFacts
from domain.run import Outcome, Role, RunFacts, RunState
from domain.task import Question, QuestionKind, QuestionState, TaskFacts, TaskState
from store.reviews import reviews_of
from store.tables import plans, questions, runs, slots, tasks

_OPEN_QUESTION = (questions.c.id == tasks.c.question_id) & (questions.c.state == QuestionState.OPEN)
_LIVE_SLOT = (slots.c.task_id == tasks.c.id) & (slots.c.lease_until > bindparam("now", type_=slots.c.lease_until.type))

_TASK = (
    select(
        tasks,
        plans.c.repository, plans.c.base, plans.c.merge, plans.c.checks, plans.c.paths, plans.c.reviewers,
        plans.c.attempts, plans.c.judged,
        slots.c.task_id.is_not(None).label("has_slot"),
        questions.c.kind.label("question_kind"),
        questions.c.text.label("question_text"),
        questions.c.resume_at.label("question_resume_at"),
    )
    .select_from(
        tasks.join(plans, plans.c.id == tasks.c.plan_id)
        .outerjoin(slots, _LIVE_SLOT)
        .outerjoin(questions, _OPEN_QUESTION)
    )
)  # fmt: skip
# Every run that is begun raises the task's epoch, so epochs are the order of their start.
_RUNS = select(runs).order_by(runs.c.epoch, runs.c.ordinal, runs.c.number)
# Made once: to put a statement together takes as long as to execute it.
_ONE_TASK = _TASK.where(tasks.c.id == bindparam("task"))
_ITS_RUNS = _RUNS.where(runs.c.task_id == bindparam("task"))
_ONE_RUN = select(runs).where(runs.c.id == bindparam("run"))


def load_task(connection: Connection, task_id: str, now: datetime) -> TaskFacts:
    """The task's facts; `has_slot` says whether it holds a slot whose lease outlives `now`.

    Raises NotFound when there is no such task.
    """
    row = connection.execute(_ONE_TASK, {"task": task_id, "now": now}).mappings().one_or_none()
    if row is None:
        raise NotFound(f"there is no task {task_id}")
    own_runs = connection.execute(_ITS_RUNS, {"task": task_id}).mappings()
    given = reviews_of(connection, task_id=task_id) if row["reviewers"] else ()
    return _task(row, [_run(run) for run in own_runs], given)


def where_it_stands(connection: Connection, task_id: str) -> tuple[str, int]:
    """`(state, seq of its last receipt)`; NotFound when there is no such task."""
    row = connection.execute(select(tasks.c.state, tasks.c.receipt_seq).where(tasks.c.id == task_id)).one_or_none()
    if row is None:
        raise NotFound(f"there is no task {task_id}")
    return row.state, row.receipt_seq


def load_tasks(connection: Connection, plan_id: str, now: datetime) -> tuple[TaskFacts, ...]:
    """Every task of a plan in the order of its boxes, as `load_task` gives one."""
    query = _TASK.where(tasks.c.plan_id == plan_id).order_by(tasks.c.ordinal)
    rows = connection.execute(query, {"now": now}).mappings().all()
    by_task: dict[str, list[RunFacts]] = {}
    for run in map(_run, connection.execute(_RUNS.where(runs.c.plan_id == plan_id)).mappings()):
        by_task.setdefault(run.task_id, []).append(run)
    given: dict[str, list[ReviewFacts]] = {}
    for review in reviews_of(connection, plan_ids=[plan_id]) if rows and rows[0]["reviewers"] else ():
        given.setdefault(review.task_id, []).append(review)
    return tuple(_task(row, by_task.get(row["id"], []), given.get(row["id"], ())) for row in rows)


def load_run(connection: Connection, run_id: str) -> RunFacts:
    """One run; NotFound when there is none."""
    row = connection.execute(_ONE_RUN, {"run": run_id}).mappings().one_or_none()
    if row is None:
        raise NotFound(f"there is no run {run_id}")
    return _run(row)


def load_question(connection: Connection, question_id: str) -> Question:
    """One question, open or not; NotFound when there is none."""
    row = connection.execute(select(questions).where(questions.c.id == question_id)).one_or_none()
    if row is None:
        raise NotFound(f"there is no question {question_id}")
    return Question(
        row.id,
        row.task_id,
        QuestionKind(row.kind),
        row.text,
        TaskState(row.resume_at),
        QuestionState(row.state),
        row.answer,
    )


def _task(row: RowMapping, all_runs: list[RunFacts], given: Sequence[ReviewFacts]) -> TaskFacts:
    authors = [run for run in all_runs if run.role is Role.AUTHOR]
    values: dict[str, Any] = {
        **row,
        "state": TaskState(row["state"]),
        "seq": row["receipt_seq"],
        "checks": tuple(row["checks"]),
        "paths": tuple(row["paths"]),
        "reviewers": tuple(row["reviewers"]),
        "question": _open_question(row),
        "runs": tuple(run for run in all_runs if run.live or run.round == row["round"]),
        "reviews": tuple(given),
        "epoch": max((run.epoch for run in all_runs), default=0),
        "latest_work": next((run.head_sha for run in reversed(authors) if run.head_sha), ""),
        "runs_begun": len(authors),
        # What another CLI remembers is of no use to this one, and what one remembers of another text misleads it.
        "session": next((run.session for run in reversed(authors) if run.session and _goes_on(run, row)), ""),
        "revised": bool(authors) and authors[-1].revision != row["revision"],
    }
    return TaskFacts(**{name: values[name] for name in TaskFacts.__dataclass_fields__})


def _goes_on(run: RunFacts, row: RowMapping) -> bool:
    return (run.runtime, run.revision) == (row["runtime"], row["revision"])


def _open_question(row: RowMapping) -> Question | None:
    if row["question_kind"] is None:
        return None
    return Question(
        row["question_id"],
        row["id"],
        QuestionKind(row["question_kind"]),
        row["question_text"],
        TaskState(row["question_resume_at"]),
    )


def _run(row: RowMapping) -> RunFacts:
    values: dict[str, Any] = {**row, "role": Role(row["role"]), "state": RunState(row["state"])}
    return RunFacts(**{name: values[name] for name in RunFacts.__dataclass_fields__})


def memories_left(connection: Connection, run: RunFacts) -> int:
    """How many memories of its CLI were given up before this run began: each is one in which no turn would begin.

    The same at every call: how a run ended is written once, and those before this one have.
    """
    same = (runs.c.task_id == run.task_id, runs.c.role == run.role, runs.c.runtime == run.runtime)
    turnless = (runs.c.outcome == Outcome.CRASHED, runs.c.session == "")
    query = select(func.count()).where(*same, *turnless, runs.c.epoch < run.epoch)
    return connection.scalar(query) or 0


def is_made_by_a_run(connection: Connection, task_id: str, sha: str) -> bool:
    """Whether this commit was made of what a run of the task did; one that it began at and left as it was is not."""
    query = select(runs.c.id).where(runs.c.task_id == task_id, runs.c.head_sha == sha, runs.c.start_sha != sha)
    return bool(sha) and connection.scalar(query.limit(1)) is not None
