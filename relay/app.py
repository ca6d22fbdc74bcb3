"""The door as an ASGI app: its addresses, and what is asked of every caller at each of them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog
from sqlalchemy import text
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from domain.errors import Unavailable
from pricing.prices import Prices
from relay import events
from relay.answers import Refused, refusal
from relay.bookkeeping import Bookkeeping
from relay.callers import Caller, Callers
from relay.gate import Gate
from relay.graph import Graph
from relay.metrics import Metrics
from relay.models import Limits, Models
from relay.protocol import Protocol
from relay.upstreams import Upstream

log = structlog.get_logger("relay")

MODELS = "/models/"
PROBES = frozenset({"/healthz", "/readyz"})


@dataclass(frozen=True)
class Door:
    """`names` is what the door may be called, `limit` the bytes of a body that is no model call.

    `upstreams` are the model providers by name. `books` keeps the money that calls may cost.
    """

    graph: Graph
    books: Bookkeeping
    prices: Prices
    upstreams: Mapping[str, Upstream]
    limit: int
    limits: Limits
    metrics: Metrics = field(default_factory=Metrics)
    names: Collection[str] = ()

    def app(self) -> ASGIApp:
        graph = self.graph
        callers = Callers(graph)
        protocol = Protocol(graph, self.limit)
        models = Models(callers, self.books, self.prices, self.upstreams, self.limits, self.metrics)

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            async with protocol.running(), models.running():
                yield

        async def let_in(request: Request) -> Caller:
            caller = request.state.caller = await callers.caller(request.headers)
            return caller

        async def speak(request: Request) -> Response:
            # Whether the run is live each tool asks in the transaction in which it acts: a result of a
            # run that is over is kept, as refused.
            return await protocol.answer(request, await let_in(request))

        async def hear(request: Request) -> Response:
            return await events.take(graph, request, await let_in(request), self.limit)

        async def ready(_: Request) -> Response:
            await graph.read(lambda connection: connection.execute(text("SELECT 1")))
            if not self.books.at_work:
                raise Refused(503, "nobody keeps the ledger any more; start this relay anew")
            return JSONResponse({"status": "ready"})

        app = Starlette(
            routes=[
                Route("/healthz", _health, methods=["GET"]),
                Route("/readyz", ready, methods=["GET"]),
                Route("/mcp", speak, methods=["POST"]),
                Route("/events", hear, methods=["POST"]),
            ],
            exception_handlers={Refused: _refused, Unavailable: _away, HTTPException: _http, Exception: _broken},
            lifespan=lifespan,
        )
        app.router.redirect_slashes = False
        return Gate(_Parted(models, _Noted(app)), self.names)


class _Noted:
    """A line in the log for every request but the probes, as there is one for every model call."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0
        state = scope["state"] = dict(scope.get("state", {}))

        async def noting(message: Message) -> None:
            nonlocal status
            status = int(message.get("status", status))
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            caller: Caller | None = state.get("caller")
            log.info(
                "a request",
                path=scope["path"][:100],
                run=caller.grant.run if caller else None,
                capability=caller.fingerprint if caller else None,
                status=status,
                why=state.get("why"),
                seconds=round(time.monotonic() - began, 3),
            )


class _Parted:
    """Model calls go straight to where they are answered, past whatever the other addresses need."""

    def __init__(self, models: ASGIApp, others: ASGIApp) -> None:
        self._models, self._others = models, others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_call = scope["type"] == "http" and scope["path"].startswith(MODELS)
        await (self._models if is_call else self._others)(scope, receive, send)


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    request.state.why = str(error)
    return refusal(error.status, str(error))


async def _away(request: Request, error: Exception) -> Response:
    log.warning("the store is away", path=request.url.path, error=str(error))
    return refusal(503, "the store did not answer; try again")


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refusal(error.status_code, f"{error.detail}: see /mcp, /events and /models", error.headers)


async def _broken(_: Request, __: Exception) -> Response:
    return refusal(500, "the relay failed at this; its log says why")
