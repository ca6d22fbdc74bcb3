"""The door as an ASGI app: its addresses, and what is asked of every caller at each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog
from sqlalchemy import text
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from domain.errors import Unavailable
from relay import events
from relay.answers import Refused, refusal
from relay.callers import Callers
from relay.gate import Gate
from relay.graph import Graph
from relay.models import Models
from relay.protocol import Protocol
from store.database import Store

log = structlog.get_logger("relay")

_ANY = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True)
class Door:
    """`names` is what the door may be called, `models` the provider's address, limits are bytes of a body."""

    store: Store
    models: str
    limit: int
    models_limit: int
    names: Collection[str] = ()

    def app(self) -> Starlette:
        graph = Graph(self.store)
        callers = Callers(graph)
        protocol = Protocol(graph, self.limit)
        models = Models(self.models, self.models_limit)

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            async with protocol.running():
                yield
            await models.close()

        async def speak(request: Request) -> Response:
            # Whether the run is live each tool asks in the transaction in which it acts: a result of a
            # run that is over is kept, as refused.
            return await protocol.answer(request, await callers.caller(request.headers))

        async def hear(request: Request) -> Response:
            caller = await callers.caller(request.headers)
            return await events.take(graph, request, caller, self.limit)

        async def think(request: Request) -> Response:
            caller = await callers.caller(request.headers, api_key=True)
            await callers.require_live(caller)
            return await models.answer(request, caller)

        async def ready(_: Request) -> Response:
            await graph.read(lambda connection: connection.execute(text("SELECT 1")))
            return JSONResponse({"status": "ready"})

        app = Starlette(
            routes=[
                Route("/healthz", _health, methods=["GET"]),
                Route("/readyz", ready, methods=["GET"]),
                Route("/mcp", speak, methods=["POST"]),
                Route("/events", hear, methods=["POST"]),
                Route("/models/{path:path}", think, methods=_ANY),
            ],
            middleware=[Middleware(Gate, self.names)],
            exception_handlers={Refused: _refused, Unavailable: _away, HTTPException: _http, Exception: _broken},
            lifespan=lifespan,
        )
        app.router.redirect_slashes = False
        return app


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    log.info("refused", path=request.url.path, status=error.status, why=str(error))
    return refusal(error.status, str(error))


async def _away(request: Request, error: Exception) -> Response:
    log.warning("the store is away", path=request.url.path, error=str(error))
    return refusal(503, "the store did not answer; try again")


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refusal(error.status_code, f"{error.detail}: see /mcp, /events and /models", error.headers)


async def _broken(_: Request, __: Exception) -> Response:
    return refusal(500, "the relay failed at this; its log says why")
