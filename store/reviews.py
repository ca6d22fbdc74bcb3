"""Reviews in the graph: one for each reviewer's run that ended, with the evidence that it rests on.

What a reviewer answered is a word; it becomes a fact here, in one group of moves with the whole answer as
evidence. What it may not be - of the author's maker, or of a commit that the reviewer changed - is looked up
in the graph, and the lifecycle refuses it whoever asks.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from domain.duties import Actor
from domain.errors import IllegalMove
from domain.lifecycle import Move, canonical
from domain.review import EVENT_OF, Judgment, Reviewer, ReviewEvent, ReviewFacts, ReviewState, judgment_in, told
from domain.run import EvidenceKind, Outcome, RunFacts
from store.closing import makers_of
from store.evidence import MAX_CONTENT, Observation, record
from store.moves import lock_chain, move
from store.plain import plain_text
from store.tables import reviews
from store.words import result_of

_COLUMNS = [reviews.c[name] for name in ReviewFacts.__dataclass_fields__]


@dataclass(frozen=True)
class Ending:
    """How a reviewer's run ended. `tampered` says what it changed of the commit, empty where nothing."""

    run: RunFacts
    tampered: str
    seen_by: str
    at: datetime


def reviews_of(connection: Connection, *, plan_ids: Collection[str] = (), task_id: str = "") -> tuple[ReviewFacts, ...]:
    """The reviews of plans or of a task, each plan's in the order in which they were given."""
    query = select(*_COLUMNS).order_by(reviews.c.plan_id, reviews.c.receipt_seq)
    query = query.where(reviews.c.task_id == task_id) if task_id else query.where(reviews.c.plan_id.in_(plan_ids))
    return tuple(_facts(row) for row in connection.execute(query))


def give(connection: Connection, ending: Ending, incarnation: int) -> ReviewFacts:
    """Write down what a reviewer's run amounts to. A repeat answers the review that is there."""
    run = ending.run
    lock_chain(connection, run.plan_id)
    there = connection.execute(select(*_COLUMNS).where(reviews.c.run_id == run.id)).one_or_none()
    if there is not None:
        return _facts(there)
    result = result_of(connection, run.id)
    judgment, void = _judged(run, result.body if result else None, ending.tampered)
    first = _move(connection, ending, judgment, void)
    proof = Observation(
        plan_id=run.plan_id,
        task_id=run.task_id,
        run_id=run.id,
        epoch=run.epoch,
        kind=EvidenceKind.REVIEW,
        content=canonical({"void": void, "answer": result.body if result else None}).encode()[:MAX_CONTENT],
        commit_sha=run.start_sha,
        command=str(Reviewer(run.runtime, run.model)),
        seen_by=ending.seen_by,
    )
    moved = move(connection, first, record(connection, proof, first.cause, ending.at), incarnation=incarnation)
    if moved[-1].refused:
        # What the lifecycle refuses is recorded as refused, and counts for nothing.
        again = _move(connection, ending, None, moved[-1].refused)
        moved = move(connection, again, record(connection, proof, again.cause, ending.at), incarnation=incarnation)
    row = connection.execute(select(*_COLUMNS).where(reviews.c.run_id == run.id)).one_or_none()
    if row is None:
        raise IllegalMove("review", None, first.event, moved[-1].refused)
    return _facts(row)


def _judged(run: RunFacts, answer: object, tampered: str) -> tuple[Judgment | None, str]:
    """The judgment, or why there is none that counts."""
    if tampered:
        return None, f"it changed what it was to judge: {tampered}"
    if run.outcome != Outcome.DONE:
        return None, run.reason or f"its run ended as {run.outcome or run.state}"
    if answer is None:
        return None, "it ended without a verdict"
    try:
        return judgment_in(answer), ""
    except ValueError as error:
        return None, str(error)


def _move(connection: Connection, ending: Ending, judgment: Judgment | None, void: str) -> Move:
    run = ending.run
    reviewer = Reviewer(run.runtime, run.model)
    event = EVENT_OF[judgment.verdict] if judgment else ReviewEvent.VOID
    facts = {
        "plan_id": run.plan_id,
        "task_id": run.task_id,
        "run_id": run.id,
        "commit_sha": run.start_sha,
        "reviewer": str(reviewer),
        "vendor": reviewer.vendor,
        "author_vendors": makers_of(connection, run.task_id),
        "summary": judgment.summary if judgment else "",
        "findings": told(judgment) if judgment else "",
        "why": void,
    }
    cause = f"{reviewer} on {run.start_sha[:12]}" + (f": {plain_text(void)[:200]}" if void else "")
    # The event is part of the key: what was refused as an approval is written down as void.
    key = f"review:{run.id}:{event}"
    # A judgment is the run's own, whatever that run is; that it counts for nothing is ours to say.
    by = run.role.actor if judgment else Actor.WORKER
    return Move("review", f"{run.id}-review", event, key, run.plan_id, cause, ending.at, facts, by=by)


def _facts(row: Row[Any]) -> ReviewFacts:
    return ReviewFacts(**{**row._asdict(), "state": ReviewState(row.state)})
