"""`POST /events`: a batch of what happened in a run, as whoever runs it tells it. Each event is accepted once.

It is for runtimes of others: nothing of ours sends to it. What our hooks see lies in a file of the run's folder.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from domain.errors import Superseded, Unauthorized
from relay.answers import Refused, body_of
from relay.callers import Caller
from relay.graph import Graph
from store.words import say_events

MAX_BATCH = 200
"""Events of one batch: they are written in one transaction, and writes are short."""


class _Event(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: str = Field(min_length=1, max_length=100, pattern=r"^[\x21-\x7e]+$")
    kind: str = Field(min_length=1, max_length=100)
    at: str = Field(default="", max_length=40)
    data: dict[str, Any] = Field(default_factory=dict)


class _Batch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    events: list[_Event] = Field(max_length=MAX_BATCH)


async def take(graph: Graph, request: Request, caller: Caller, limit: int) -> Response:
    """Keep a batch: `{"events": [{"id", "kind", "at"?, "data"?}, …]}`; `at` is the sender's word.

    Answers how many were new and how many had been accepted before. A batch is kept whole or, with 4xx, not at all.
    """
    body = await body_of(request, limit)
    try:
        batch = _Batch.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise Refused(400, f"{where}: {first['msg']}; send at most {MAX_BATCH} events, each with an id") from error
    said = [(event.id, event.model_dump(exclude={"id"})) for event in batch.events]

    def keep(connection: Connection) -> int:
        return len(say_events(connection, caller.speaker, said, datetime.now(UTC)))

    try:
        fresh = await graph.write(keep)
    except (Superseded, Unauthorized) as error:
        raise Refused(403, str(error)) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise Refused(400, "an event holds what JSON has no place for, or is nested too deeply") from error
    return JSONResponse({"accepted": fresh, "known": len({id for id, _ in said}) - fresh}, 202)
