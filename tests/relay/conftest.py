"""A relay that listens, before a graph with one live run, and a provider behind it that is told what to say."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from sqlalchemy import select
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from domain.run import RunFacts
from pricing.prices import Prices, own_price
from relay.app import Door
from relay.bookkeeper import Bookkeeper
from relay.bookkeeping import Bookkeeping
from relay.graph import Graph as RelayGraph
from relay.metrics import Metrics
from relay.models import Limits
from relay.upstreams import PROVIDERS, Upstream, upstream
from signing.capabilities import USE, Grant
from signing.keys import Signer, open_or_make
from signing.minting import mint
from store.database import Store
from store.keys import keep_key
from store.tables import words
from store.words import Brief, put_brief
from tests.activities.conftest import OWNER, Graph
from tests.relay.books import Purse

LIMIT = 64 * 1024
MODEL = "a-model"
PRICES = Prices({MODEL: own_price(MODEL, "told 1", {"input": Decimal(2), "output": Decimal(10)})})
ASKED: dict[str, Any] = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}
"""A call that Anthropic's and OpenAI's APIs both take."""
MESSAGES = "/models/anthropic/v1/messages"
CHAT = "/models/openai/v1/chat/completions"
RESPONSES = "/models/openai/v1/responses"
GENERATE = f"/models/gemini/v1beta/models/{MODEL}:generateContent"
SCHEMA = {
    "type": "object",
    "required": ["summary"],
    "additionalProperties": False,
    "properties": {
        "summary": {"type": "string", "minLength": 3},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}},
    },
    "$defs": {"part": {"type": "integer"}},
}


@contextmanager
def serving(app: ASGIApp, drain: int = 30) -> Iterator[tuple[str, uvicorn.Server]]:
    """The app behind a real server in a thread of its own, and its address."""
    config = uvicorn.Config(
        app, "127.0.0.1", 0, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=drain
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", server
    finally:
        server.should_exit = True
        thread.join(40)
        assert not thread.is_alive()


@dataclass
class Provider:
    """A model provider: it notes what it is asked, and says `parts`, each but the first only once `goes_on` is set."""

    asked: list[dict[str, Any]] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=lambda: [b"data: one\n\n", b"data: two\n\n"])
    goes_on: threading.Event = field(default_factory=threading.Event)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    breaks_off: bool = False
    silent: bool = False
    hung_up: threading.Event = field(default_factory=threading.Event)
    said: int = 0

    def __post_init__(self) -> None:
        self.goes_on.set()

    def app(self) -> Starlette:
        methods = ["GET", "POST", "PUT", "DELETE"]
        return Starlette(routes=[Route("/models/{path:path}", self._answer, methods=methods)])

    async def _answer(self, request: Request) -> Response:
        self.asked.append(
            {
                "method": request.method,
                "path": request.scope["raw_path"].decode(),
                "query": request.url.query,
                "headers": dict(request.headers),
                "body": await request.body(),
            }
        )
        while self.silent:
            if await request.is_disconnected():
                self.hung_up.set()
                return Response(status_code=500)
            await asyncio.sleep(0.02)
        headers = {"content-type": "text/event-stream", "set-cookie": "a=b", **self.headers}
        return StreamingResponse(self._say(), self.status, headers)

    async def _say(self) -> AsyncIterator[bytes]:
        try:
            for part in self.parts:
                yield part
                self.said += 1
                while not self.goes_on.is_set():
                    await asyncio.sleep(0.02)
            if self.breaks_off:
                raise RuntimeError("broken off on purpose")
        except asyncio.CancelledError:
            self.hung_up.set()
            raise


@dataclass
class Relay:
    """The relay's address, the run that it is open to, and everything it takes to be somebody else."""

    url: str
    server: uvicorn.Server
    graph: Graph
    run: RunFacts
    signer: Signer
    provider: Provider
    client: httpx.Client
    metrics: Metrics
    provider_url: str
    books: Bookkeeping

    @property
    def grant(self) -> Grant:
        run = self.run
        return Grant(OWNER, run.plan_id, run.task_id, run.id, run.epoch, run.role, MODEL, 10**9)

    def token(self, signer: Signer | None = None, now: datetime | None = None, **other: Any) -> str:
        grant = replace(self.grant, **other)
        return mint(signer or self.signer, grant, now or datetime.now(UTC), timedelta(minutes=10))

    def headers(self, token: str | None = None) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token() if token is None else token}"}

    def post(self, path: str, token: str | None = None, **more: Any) -> httpx.Response:
        more.setdefault("headers", self.headers(token))
        return self.client.post(path, **more)

    def ask(self, path: str = MESSAGES, body: Any = None, **more: Any) -> httpx.Response:
        """Ask a model, by default what every API takes."""
        return self.post(path, json={**ASKED, **(body or {})}, **more)

    def stream(self, path: str, **body: Any) -> AbstractContextManager[httpx.Response]:
        return self.client.stream("POST", path, headers=self.headers(), json={**ASKED, "stream": True, **body})

    def end(self, event: str = "finish") -> None:
        self.graph.move(event, "run", self.run.id)

    def words(self) -> list[Any]:
        with self.graph.store.read() as connection:
            return list(connection.execute(select(words).order_by(words.c.n)))


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return open_or_make(tmp_path / "capability.pem")


@pytest.fixture(scope="session")
def listening() -> Iterator[tuple[Provider, str]]:
    """A provider that listens, one a session, and its address; `provider` makes it as good as new."""
    provider = Provider()
    with serving(provider.app()) as (url, _):
        yield provider, f"{url}/models"


@pytest.fixture
def provider(listening: tuple[Provider, str]) -> Provider:
    vars(listening[0]).update(vars(Provider()))
    return listening[0]


def upstreams(models: str) -> dict[str, Upstream]:
    found = {name: upstream(name, "", None, models) for name in PROVIDERS}
    return {name: each for name, each in found.items() if each is not None}


@contextmanager
def bookkeeper(store: Store) -> Iterator[Bookkeeper]:
    """The ledger's own, at work."""
    books = Bookkeeper(store)
    books.start()
    try:
        yield books
    finally:
        books.close()


def door(
    store: Store,
    models: str,
    books: Bookkeeping,
    limit: int = LIMIT,
    metrics: Metrics | None = None,
    providers: dict[str, Upstream] | None = None,
    patience: float = 0,
) -> Door:
    """The door over a store, to the provider at `models`; nobody waits for money where `patience` is not told."""
    graph = RelayGraph(store)
    found = upstreams(models) if providers is None else providers
    limits = Limits(4 * limit, patience=patience)
    return Door(graph, books, PRICES, found, limit, limits, metrics or Metrics(), {"relay.example"})


def opened(
    store: Store,
    signer: Signer,
    provider: Provider,
    models: str,
    schema: Any = SCHEMA,
    books: Bookkeeping | None = None,
    limit: int = LIMIT,
    model: str = MODEL,
    **front: str,
) -> Iterator[Relay]:
    """A relay over the store, with a run under way that was told to answer by the schema. `front` is its plan's."""
    graph = Graph(store)
    graph.confirm(runtime="claude", model=model, **front)
    run = graph.begin()
    with store.write() as connection:
        keep_key(connection, signer.kid, signer.public, USE, datetime.now(UTC))
        put_brief(connection, Brief(run.id, "# Make it\n", schema, 1))
    metrics = Metrics()
    with ExitStack() as stack:
        kept = books or stack.enter_context(bookkeeper(store))
        app = door(store, models, kept, limit, metrics).app()
        url, server = stack.enter_context(serving(app))
        client = stack.enter_context(httpx.Client(base_url=url, timeout=30))
        yield Relay(url, server, graph, run, signer, provider, client, metrics, models, kept)


@pytest.fixture
def purse() -> Purse:
    return Purse()


@pytest.fixture
def metered(
    sqlite_store: Store, signer: Signer, provider: Provider, listening: tuple[Provider, str], purse: Purse
) -> Iterator[Relay]:
    """A relay whose books are the purse."""
    yield from opened(sqlite_store, signer, provider, listening[1], books=purse)


@pytest.fixture
def relay(sqlite_store: Store, signer: Signer, provider: Provider, listening: tuple[Provider, str]) -> Iterator[Relay]:
    """A relay over SQLite, for tests to which the engine does not matter."""
    yield from opened(sqlite_store, signer, provider, listening[1])


@pytest.fixture
def relay_on_both(store: Store, signer: Signer, provider: Provider, listening: tuple[Provider, str]) -> Iterator[Relay]:
    """A relay over each engine."""
    yield from opened(store, signer, provider, listening[1])
