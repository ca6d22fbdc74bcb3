"""What the relay is measured with: a provider that answers at once, and two bare pass-throughs; each a process.

python peers.py provider|aiohttp|httpx PORT PROVIDER
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

EVENTS = 200
PAUSE = 0.005
"""Seconds between two events of a stream."""
_USAGE = b'{"input_tokens":300,"cache_read_input_tokens":20,"output_tokens":90}'
ANSWER = (
    b'{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-4-6","stop_reason":"end_turn",'
    b'"content":[{"type":"text","text":"%s"}],"usage":%s}' % (b"x" * 800, _USAGE)
)
_DELTA = b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a few words more"}}'
_STREAM = [
    b'event: message_start\ndata: {"type":"message_start","message":{"usage":%s}}\n\n' % _USAGE,
    *[b"event: content_block_delta\ndata: %s\n\n" % _DELTA] * (EVENTS - 3),
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":%s}\n\n' % _USAGE,
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
]


async def provider(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers a request for a stream with 200 events, one by one, and any other with a kilobyte of JSON."""
    if scope["type"] != "http":
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    pieces, kind = ([ANSWER], b"application/json") if b'"stream":true' not in body else (_STREAM, b"text/event-stream")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        if pieces is _STREAM:
            # Models speak word by word: without pauses, many events would come as one piece.
            await asyncio.sleep(PAUSE)
    await send({"type": "http.response.body", "body": b""})


def bare_aiohttp(url: str) -> ASGIApp:
    """As little as a pass-through can be made of with Starlette and aiohttp."""
    sessions: list[aiohttp.ClientSession] = []

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            sessions.append(session)
            yield

    async def answer(request: Request) -> Response:
        found = await sessions[0].post(f"{url}{request.url.path}", data=await request.body())

        async def pieces() -> AsyncIterator[bytes]:
            async with found:
                async for piece in found.content.iter_any():
                    yield piece

        return StreamingResponse(pieces(), found.status, {"content-type": found.headers["content-type"]})

    return Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])], lifespan=lifespan)


def bare_httpx(url: str) -> ASGIApp:
    client = httpx.AsyncClient(limits=httpx.Limits(max_connections=None), trust_env=False, timeout=60)

    async def answer(request: Request) -> Response:
        asked = client.build_request("POST", f"{url}{request.url.path}", content=await request.body())
        found = await client.send(asked, stream=True)

        async def pieces() -> AsyncIterator[bytes]:
            async for piece in found.aiter_raw():
                yield piece
            await found.aclose()

        return StreamingResponse(pieces(), found.status_code, {"content-type": found.headers["content-type"]})

    return Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])


def main() -> None:
    kind, port, url = sys.argv[1:]
    made: dict[str, Any] = {
        "provider": lambda: provider,
        "aiohttp": lambda: bare_aiohttp(url),
        "httpx": lambda: bare_httpx(url),
    }
    config = uvicorn.Config(
        made[kind](),
        "127.0.0.1",
        int(port),
        loop="uvloop",
        http="httptools",
        lifespan="off" if kind == "provider" else "on",
        access_log=False,
        log_level="warning",
        # As providers do: connections outlive the time that the others are measured for.
        timeout_keep_alive=600,
    )
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main()
