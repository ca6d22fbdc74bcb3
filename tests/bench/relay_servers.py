"""What the relay is measured with: a provider, two bare pass-throughs, and the relay itself; each a process.

python relay_servers.py provider|aiohttp|httpx|relay PORT PROVIDER FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

MODEL = "claude-sonnet-4-6"
PATH = "/models/anthropic/v1/messages"
EVENTS = 200
_USAGE = b'{"input_tokens":300,"cache_read_input_tokens":20,"output_tokens":90}'
_JSON = (
    b'{"id":"m","type":"message","model":"claude-sonnet-4-6","content":[{"type":"text","text":"%s"}],"usage":%s}'
    % (
        b"x" * 800,
        _USAGE,
    )
)
_DELTA = b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a few words more"}}'
_STREAM = [
    b'event: message_start\ndata: {"type":"message_start","message":{"usage":%s}}\n\n' % _USAGE,
    *[b"event: content_block_delta\ndata: %s\n\n" % _DELTA] * (EVENTS - 3),
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":%s}\n\n' % _USAGE,
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
]


async def provider(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers a request for a stream with 200 events, and any other with a kilobyte of JSON."""
    if scope["type"] != "http":
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    pieces, kind = ([_JSON], b"application/json") if b'"stream":true' not in body else (_STREAM, b"text/event-stream")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
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


def relay(url: str, folder: Path) -> ASGIApp:
    """The door with its books in memory; a capability for it is left in the folder."""
    from pricing.prices import Prices
    from relay.app import Door
    from relay.graph import Graph
    from relay.models import Limits
    from relay.upstreams import Upstream
    from signing.capabilities import USE, Grant
    from signing.keys import open_or_make
    from signing.minting import mint
    from store.database import migrate, open_store
    from store.keys import keep_key
    from telemetry.logs import configure
    from tests.relay.books import Purse

    configure()
    address = f"sqlite:///{folder / 'relay.db'}"
    migrate(address)
    store, signer, now = open_store(address), open_or_make(folder / "capability.pem"), datetime.now(UTC)
    with store.write() as connection:
        keep_key(connection, signer.kid, signer.public, USE, now)
    grant = Grant("ada", "a-plan", "a-task", "a-run", 1, "author", MODEL, 10**12)
    (folder / "token").write_text(mint(signer, grant, now, timedelta(hours=2)))
    upstreams = {"anthropic": Upstream(f"{url}/models/anthropic", "x-api-key", "a-key")}
    return Door(Graph(store), Purse(), Prices(), upstreams, 1 << 20, Limits(1 << 25)).app()


def main() -> None:
    kind, port, url, folder = sys.argv[1:]
    made: dict[str, Any] = {
        "provider": lambda: provider,
        "aiohttp": lambda: bare_aiohttp(url),
        "httpx": lambda: bare_httpx(url),
        "relay": lambda: relay(url, Path(folder)),
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
    )
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main()
