"""Evidence: content-addressed facts that decisions rest on, with a receipt like everything else."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from domain.duties import Actor
from domain.errors import Damaged, NotFound
from domain.identity import digest
from domain.lifecycle import Move, canonical
from domain.run import EvidenceKind
from store import contents
from store.moves import lock_chain
from store.tables import evidence

MAX_CONTENT = 64 * 1024
"""How many bytes one piece of evidence may hold."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What was seen, and of what: by which run of which epoch, at which commit, by which command with which exit.

    `seen_by` names the worker that saw it; `truncated` says that `content` is a part of what there was.
    """

    plan_id: str
    kind: EvidenceKind
    content: bytes
    task_id: str | None = None
    run_id: str | None = None
    epoch: int = 0
    commit_sha: str = ""
    command: str = ""
    exit_code: int | None = None
    truncated: bool = False
    seen_by: str = ""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A piece of evidence as the graph keeps it; `content` gives the bytes that `digest` names."""

    id: str
    plan_id: str
    task_id: str | None
    run_id: str | None
    epoch: int
    kind: EvidenceKind
    commit_sha: str
    command: str
    exit_code: int | None
    digest: str
    size: int
    truncated: bool
    seen_by: str


def record(connection: Connection, seen: Observation, cause: str, at: datetime) -> Move:
    """Keep the content, and answer the move that makes evidence of it, for the caller to make.

    The move's key is made of everything that was seen: the same observation is one piece of evidence.
    Raises ValueError for content above `MAX_CONTENT`.
    """
    if len(seen.content) > MAX_CONTENT:
        raise ValueError(f"{len(seen.content)} bytes of evidence are more than {MAX_CONTENT}")
    # Equal content is one row for all plans. Always taken after the chain, it cannot dead-lock two writers.
    lock_chain(connection, seen.plan_id)
    name = contents.keep(connection, seen.content)
    facts: dict[str, Any] = {**asdict(seen), "digest": name, "size": len(seen.content)}
    del facts["content"]
    about = seen.run_id or seen.task_id or seen.plan_id
    subject = f"{about}-{seen.kind}-{digest(canonical(facts))[:16]}"
    return Move("evidence", subject, "record", f"record:{subject}", seen.plan_id, cause, at, facts, by=Actor.WORKER)


def evidence_of(
    connection: Connection, *, plan_id: str | None = None, task_id: str | None = None, limit: int = 1000
) -> tuple[Evidence, ...]:
    """The evidence of a plan or of a task, in the order in which it was recorded."""
    query = select(*(evidence.c[name] for name in Evidence.__dataclass_fields__))
    if plan_id is not None:
        query = query.where(evidence.c.plan_id == plan_id)
    if task_id is not None:
        query = query.where(evidence.c.task_id == task_id)
    rows = connection.execute(query.order_by(evidence.c.receipt_seq).limit(limit)).mappings()
    return tuple(Evidence(**{**row, "kind": EvidenceKind(row["kind"])}) for row in rows)


def content(connection: Connection, name: str) -> bytes:
    """The bytes with this digest; NotFound where nobody has them, Damaged where they are not those any more."""
    return contents.read(connection, name)


def text_of(connection: Connection, name: str) -> str:
    """The text of this digest; where it is no more what was seen that is said, and holds up no task."""
    try:
        return content(connection, name).decode(errors="replace")
    except (NotFound, Damaged) as error:
        return f"[Its last words are kept no more: {error}.]"
