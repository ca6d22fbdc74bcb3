"""The provider's routes, to be mounted under `/models`, and those that set up what it says."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from rehearsal.faulty import DROP
from rehearsal.models import actor
from rehearsal.models.anthropic import ANTHROPIC
from rehearsal.models.api import Api, Event, Unreadable
from rehearsal.models.body import TooLarge, UnknownEncoding, received
from rehearsal.models.chat import CHAT
from rehearsal.models.conversation import Conversation
from rehearsal.models.ledger import Asked, Ledger, fingerprint
from rehearsal.models.responses import RESPONSES
from rehearsal.models.script import Fault, FaultKind, Script
from rehearsal.models.usage import Usage

PREFIX = "/models"
MODEL = "rehearsal"
"""The one model that is listed. Any other name is taken too: CLIs treat models by their names."""

_FLUSHED = 0.02
"""Seconds until what was sent has left: uvloop writes when its turn ends, and a cut loses what is not written."""


def mount(guard: Callable[[Request], Response | None]) -> Mount:
    """All of it. `guard` answers what a request to the set-up is refused with, or None."""
    ledger = Ledger()
    return Mount(
        PREFIX,
        routes=[
            Route("/anthropic/v1/messages", partial(_ask, ANTHROPIC, ledger), methods=["POST"]),
            Route("/anthropic/v1/messages/count_tokens", _count_tokens, methods=["POST"]),
            Route("/anthropic/v1/models", _anthropic_models),
            Route("/openai/v1/responses", partial(_ask, RESPONSES, ledger), methods=["POST"]),
            Route("/openai/v1/chat/completions", partial(_ask, CHAT, ledger), methods=["POST"]),
            Route("/openai/v1/models", _openai_models),
            *_setup(ledger, guard),
            Route("/{rest:path}", _unknown, methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]),
        ],
    )


async def _ask(api: Api, ledger: Ledger, request: Request) -> Response:
    try:
        body = await received(request.stream(), request.headers.get("content-encoding", ""))
        conversation = api.read(body)
    except (Unreadable, TooLarge, UnknownEncoding) as error:
        status = {TooLarge: 413, UnknownEncoding: 415}.get(type(error), 400)
        return _refused(api, status, str(error))
    token = fingerprint(_token(request))
    script = ledger.script(token)
    faults = script.strike() if conversation.main else {}
    status = faults[FaultKind.STATUS].status if FaultKind.STATUS in faults else 200
    messages = json.dumps(body.get("messages", body.get("input")))
    names = tuple(tool.name for tool in conversation.tools)
    ledger.keep(
        Asked(
            api.name, conversation.model, token, conversation.main, conversation.stream,
            names, status, tuple(faults), messages,
        )
    )  # fmt: skip
    if FaultKind.STATUS in faults:
        fault = faults[FaultKind.STATUS]
        return _refused(api, fault.status, fault.message, fault.retry_after)
    return await _reply(api, conversation, script, faults, request.scope["state"][DROP])


async def _reply(
    api: Api, conversation: Conversation, script: Script, faults: dict[FaultKind, Fault], drop: Callable[[], None]
) -> Response:
    reply = script.reply(conversation) or actor.reply(conversation)
    usage = None if FaultKind.NO_USAGE in faults else script.usage or Usage.of(conversation, reply)
    headers = {api.request_id: _request()}
    if conversation.stream:
        events = _broken(api, api.events(conversation, reply, usage), faults, drop)
        return StreamingResponse(
            events, headers=headers | {"cache-control": "no-cache"}, media_type="text/event-stream"
        )
    if FaultKind.DELAY in faults:
        await asyncio.sleep(faults[FaultKind.DELAY].seconds)
    if FaultKind.ERROR_EVENT in faults:
        return _refused(api, 500, faults[FaultKind.ERROR_EVENT].message)
    if FaultKind.HANG in faults:
        await asyncio.sleep(faults[FaultKind.HANG].seconds)
    if FaultKind.HANG in faults or FaultKind.DROP in faults:
        drop()
        # The server learns of it in its next turn, and then expects no answer any more.
        await asyncio.sleep(0)
    return JSONResponse(api.answer(conversation, reply, usage), headers=headers)


async def _broken(
    api: Api, events: Iterable[Event], faults: dict[FaultKind, Fault], drop: Callable[[], None]
) -> AsyncIterator[bytes]:
    """The events, with what the faults do to them. Of those that end a stream the earliest does."""
    delay = faults[FaultKind.DELAY].seconds if FaultKind.DELAY in faults else 0.0
    ends = [faults[kind] for kind in (FaultKind.DROP, FaultKind.ERROR_EVENT, FaultKind.HANG) if kind in faults]
    end = min(ends, key=lambda fault: fault.after, default=None)
    for sent, event in enumerate(events):
        if end is not None and sent >= end.after:
            break
        if delay:
            await asyncio.sleep(delay)
        yield event.encode()
    if end is None:
        return
    if end.kind is FaultKind.ERROR_EVENT:
        for event in api.failure(end.message):
            yield event.encode()
        return
    await asyncio.sleep(end.seconds if end.kind is FaultKind.HANG else _FLUSHED)
    drop()
    await asyncio.sleep(0)


def _refused(api: Api, status: int, message: str, retry_after: str = "") -> Response:
    request = _request()
    headers = {api.request_id: request} | ({"retry-after": retry_after} if retry_after else {})
    return JSONResponse(api.refusal(status, message, request), status, headers)


def _request() -> str:
    return f"req_{uuid.uuid4().hex[:24]}"


def _token(request: Request) -> str:
    """What the caller shows, as an API key or as a bearer token. All are good: there is nothing to pay."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    return request.headers.get("x-api-key") or (credentials.strip() if scheme.lower() == "bearer" else "")


async def _count_tokens(request: Request) -> Response:
    try:
        body = await received(request.stream(), request.headers.get("content-encoding", ""))
        # A count is asked for without the limit that a message needs.
        return JSONResponse({"input_tokens": ANTHROPIC.read({"max_tokens": 1, **body}).size.tokens})
    except (Unreadable, TooLarge, UnknownEncoding) as error:
        return _refused(ANTHROPIC, 413 if isinstance(error, TooLarge) else 400, str(error))


async def _anthropic_models(_: Request) -> Response:
    model = {"type": "model", "id": MODEL, "display_name": "Rehearsal", "created_at": "2026-01-01T00:00:00Z"}
    return JSONResponse({"data": [model], "has_more": False, "first_id": MODEL, "last_id": MODEL})


async def _openai_models(_: Request) -> Response:
    model = {"id": MODEL, "object": "model", "created": 1_767_225_600, "owned_by": "watchbill"}
    return JSONResponse({"object": "list", "data": [model]})


async def _unknown(request: Request) -> Response:
    api = ANTHROPIC if request.url.path.startswith(f"{PREFIX}/anthropic/") else RESPONSES
    return _refused(api, 404, f"there is no {request.method} {request.url.path}")


def _setup(ledger: Ledger, guard: Callable[[Request], Response | None]) -> list[Route]:
    async def script(request: Request) -> Response:
        refused = guard(request)
        if refused is not None:
            return refused
        try:
            given = await received(request.stream(), request.headers.get("content-encoding", ""))
            token = fingerprint(str(given.pop("token", "")))
            ledger.set_script(token, Script.scripted(given))
        except (ValueError, TypeError, KeyError) as error:
            return JSONResponse({"message": str(error)}, 422)
        return JSONResponse({"token": token})

    async def requests(request: Request) -> Response:
        refused = guard(request)
        if refused is not None:
            return refused
        if request.method == "DELETE":
            ledger.forget()
        return JSONResponse([asked.shown() for asked in ledger.asked()])

    return [
        Route("/script", script, methods=["POST"]),
        Route("/requests", requests, methods=["GET", "DELETE"]),
    ]
