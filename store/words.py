"""What a run is told and what it says: its brief, and its decisions, questions, results and events.

These are words, no facts: nothing moves because of them until somebody acts on them. They are kept
once each, whoever repeats them, and only as long as the run that says them counts: it is live, and no
newer run of its task has begun. A result that comes too late is kept as well, as refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, Select, func, insert, select

from domain.errors import KeyReused, Superseded, Unauthorized
from domain.identity import digest
from domain.lifecycle import canonical
from domain.run import LIVE, Role, RunState
from store.database import insert_into
from store.plain import plain, plain_text
from store.tables import briefs, runs, tasks, words

MAX_WORDS = 5000
"""How many words are kept of one run. An agent in a loop must not fill the store."""

MAX_ASKED = 16_000
"""Characters of all that one run asks: a person reads it, and it stands in every history that the task is in."""


class WordKind(StrEnum):
    DECISION = "decision"
    QUESTION = "question"
    RESULT = "result"
    EVENT = "event"


@dataclass(frozen=True)
class Brief:
    """What a run is told: `text` is its whole prompt, `schema` the JSON Schema of its result (None: any).

    `revision` is the plan's, from which it was rendered; `digest` names text and schema.
    """

    run_id: str
    text: str
    schema: Any
    revision: int

    @property
    def digest(self) -> str:
        return digest(canonical([self.text, self.schema]))


@dataclass(frozen=True)
class Speaker:
    """A run as its capability names it. Everything in it has to agree with the graph."""

    owner: str
    plan: str
    task: str
    run: str
    epoch: int
    role: str


@dataclass(frozen=True)
class Word:
    """One thing that a run said. `n` counts them within the run; `refused` says why it does not count, or nothing.

    `id` begins with the kind, so that nothing said as one kind can take the place of another.
    """

    n: int
    id: str
    kind: WordKind
    at: datetime
    body: Any
    refused: str = ""


@dataclass(frozen=True)
class Result:
    """What a run came to, and the plan revision and the brief that it answers. `body` fits the brief's schema."""

    id: str
    at: datetime
    body: Any
    revision: int
    brief: str


def put_brief(connection: Connection, brief: Brief) -> None:
    """Keep what a run is told. A repeat changes nothing; KeyReused for another brief of the same run."""
    brief = Brief(brief.run_id, plain_text(brief.text), plain(brief.schema, floats=True), brief.revision)
    row = {**vars(brief), "digest": brief.digest}
    connection.execute(insert_into(connection, briefs).on_conflict_do_nothing(), row)
    if brief_of(connection, brief.run_id) != brief:
        raise KeyReused(f"run {brief.run_id} has another brief already; a run is told one thing")


def brief_of(connection: Connection, run_id: str) -> Brief | None:
    """What the run was told; None when nothing was kept for it."""
    query = select(briefs.c.run_id, briefs.c.text, briefs.c.schema, briefs.c.revision)
    row = connection.execute(query.where(briefs.c.run_id == run_id)).one_or_none()
    return None if row is None else Brief(*row)


def why_void(connection: Connection, speaker: Speaker) -> str:
    """Why this run's word counts no more, in one sentence; empty while it does.

    Raises Unauthorized when the run is not what the speaker says that it is.
    """
    newest = select(func.max(runs.c.epoch)).where(runs.c.task_id == speaker.task).scalar_subquery()
    query = (
        select(
            runs.c.state,
            runs.c.revision,
            tasks.c.revision,
            runs.c.plan_id,
            runs.c.task_id,
            runs.c.epoch,
            runs.c.role,
            tasks.c.owner,
            newest,
        )
        .select_from(runs.join(tasks, tasks.c.id == runs.c.task_id))
        .where(runs.c.id == speaker.run)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        raise Unauthorized(f"there is no run {speaker.run}")
    state, made_for, revision, *there, newest_epoch = row
    if there != [speaker.plan, speaker.task, speaker.epoch, speaker.role, speaker.owner]:
        raise Unauthorized(f"run {speaker.run} is not the one that the capability was made for")
    if state not in LIVE:
        return f"run {speaker.run} is {state}; nothing that it says counts any more"
    if speaker.epoch != newest_epoch:
        return f"a newer run of task {speaker.task} has begun; nothing that run {speaker.run} says counts any more"
    if made_for != revision:
        return (
            f"revision {revision} of the plan has changed task {speaker.task} since run {speaker.run} began; nothing "
            "that it says about the text before counts any more"
        )
    return ""


def say(
    connection: Connection,
    speaker: Speaker,
    kind: WordKind,
    body: Any,
    at: datetime,
    *,
    id: str = "",
    refused: str = "",
) -> Word:
    """Keep one word, and answer it as it is kept: said before, it is the row that is there, and changes nothing.

    Without an `id` it is derived from what is said. `refused` is the caller's reason why it does not
    count. Raises Superseded when the run's word counts no more, except for a result, which is kept and
    refused for that reason; ValueError or TypeError for a body that is no JSON.
    """
    body = _plain_body(body)
    _lock(connection, speaker.run)
    void = why_void(connection, speaker)
    standing = _standing_result(connection, speaker.run) if kind is WordKind.RESULT else None
    if standing is not None and not id and standing.body == body:
        return standing
    if void and kind is not WordKind.RESULT:
        raise Superseded(void)
    # A result that differs from the one that stands takes its place, also when it has been said before that one.
    identity = f"{kind}:{id or digest(canonical([body, standing.id if standing else '']))[:32]}"
    there = connection.execute(_words().where(words.c.run_id == speaker.run, words.c.id == identity)).one_or_none()
    if there is not None:
        return _of_row(there)
    word = Word(_next_number(connection, speaker.run), identity, kind, at, body, refused or void)
    _insert(connection, speaker.run, [word])
    return word


def say_events(connection: Connection, speaker: Speaker, events: Sequence[tuple[str, Any]], at: datetime) -> set[str]:
    """Keep a batch of events, given as (id, body), and answer the ids of those that are new.

    What is said under an id first stays. Raises as `say` does; then none of the batch is kept.
    """
    bodies: dict[str, Any] = {}
    for id, body in events:
        bodies.setdefault(f"{WordKind.EVENT}:{id}", _plain_body(body))
    _lock(connection, speaker.run)
    void = why_void(connection, speaker)
    if void:
        raise Superseded(void)
    there = set(connection.scalars(select(words.c.id).where(words.c.run_id == speaker.run, words.c.id.in_(bodies))))
    fresh = [id for id in bodies if id not in there]
    if fresh:
        n = _next_number(connection, speaker.run, len(fresh))
        said = [Word(n + i, id, WordKind.EVENT, at, bodies[id]) for i, id in enumerate(fresh)]
        _insert(connection, speaker.run, said)
    return {id.removeprefix(f"{WordKind.EVENT}:") for id in fresh}


def result_of(connection: Connection, run_id: str) -> Result | None:
    """The last result of the run that was accepted; None when there is none."""
    word = _standing_result(connection, run_id)
    if word is None:
        return None
    return Result(word.id, word.at, word.body["result"], word.body["revision"], word.body["brief"])


def last_result(connection: Connection, task_id: str) -> Result | None:
    """What the author of a task last came to: the result of its last run that finished; None when there is none."""
    finished = (runs.c.task_id == task_id) & (runs.c.role == Role.AUTHOR) & (runs.c.state == RunState.FINISHED)
    run_id = connection.scalar(select(runs.c.id).where(finished).order_by(runs.c.number.desc()).limit(1))
    return None if run_id is None else result_of(connection, run_id)


def ask(connection: Connection, speaker: Speaker, body: Any, at: datetime) -> bool:
    """Keep a question to a person, unless the run asks too much with it; whether it is kept. Raises as `say` does."""
    _lock(connection, speaker.run)
    before = [word.body for word in _said(connection, speaker.run, WordKind.QUESTION)]
    if body not in before and sum(len(each["question"]) for each in [*before, body]) > MAX_ASKED:
        return False
    say(connection, speaker, WordKind.QUESTION, body, at)
    return True


def question_of(connection: Connection, run_id: str) -> str:
    """Everything that the run asked a person, in its order and as one text; empty when it asked nothing."""
    asked = _said(connection, run_id, WordKind.QUESTION)
    return "\n\n".join(word.body["question"] for word in asked)


def decisions_of(connection: Connection, run_id: str) -> tuple[Word, ...]:
    """What the run decided, in its order; a body has `title` and `text`."""
    return _said(connection, run_id, WordKind.DECISION)


def events_after(connection: Connection, run_id: str, after: int = 0, limit: int = 1000) -> tuple[Word, ...]:
    """The run's events with an `n` above `after`, in their order; at most `limit`."""
    return _said(connection, run_id, WordKind.EVENT, after, limit)


def _said(
    connection: Connection, run_id: str, kind: WordKind, after: int = 0, limit: int = MAX_WORDS
) -> tuple[Word, ...]:
    query = (
        _words()
        .where(words.c.run_id == run_id, words.c.kind == kind, words.c.n > after, words.c.refused == "")
        .order_by(words.c.n)
        .limit(limit)
    )
    return tuple(map(_of_row, connection.execute(query)))


def _standing_result(connection: Connection, run_id: str) -> Word | None:
    accepted = (words.c.run_id == run_id) & (words.c.kind == WordKind.RESULT) & (words.c.refused == "")
    row = connection.execute(_words().where(accepted).order_by(words.c.n.desc()).limit(1)).one_or_none()
    return None if row is None else _of_row(row)


def _words() -> Select[Any]:
    return select(words.c.n, words.c.id, words.c.kind, words.c.at, words.c.body, words.c.refused)


def _of_row(row: Row[Any]) -> Word:
    return Word(row.n, row.id, WordKind(row.kind), row.at, row.body, row.refused)


def _lock(connection: Connection, run_id: str) -> None:
    """Hold back every move and every other word of the run, and every move of its task.

    So it cannot end, nor its task become another, between look and word. On SQLite the transaction itself does
    that. The locks leave rows free that refer to the run.
    """
    connection.execute(select(runs.c.id).where(runs.c.id == run_id).with_for_update(key_share=True))
    of_run = select(runs.c.task_id).where(runs.c.id == run_id).scalar_subquery()
    connection.execute(select(tasks.c.id).where(tasks.c.id == of_run).with_for_update(read=True))


def _next_number(connection: Connection, run_id: str, count: int = 1) -> int:
    last = connection.scalar(select(func.max(words.c.n)).where(words.c.run_id == run_id)) or 0
    if last + count > MAX_WORDS:
        raise Superseded(f"run {run_id} has said {last} things, and {MAX_WORDS} are kept of a run; end your turn")
    return last + 1


def _insert(connection: Connection, run_id: str, said: Sequence[Word]) -> None:
    rows = [{"run_id": run_id, **vars(word)} for word in said]
    connection.execute(insert(words), rows)


def _plain_body(body: Any) -> Any:
    """The body as it comes back from the graph. TypeError for a number that JSON does not have."""
    return plain(body, floats=True)
