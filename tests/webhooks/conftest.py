"""A webhooks door over a store with one task, and deliveries as GitHub signs them."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from sqlalchemy import select
from starlette.applications import Starlette

from domain.identity import branch_of
from store.database import Store
from store.tables import inbox
from tests.activities.conftest import OWNER, Graph
from webhooks.app import Door

SECRET = b"a secret that GitHub knows"
LIMIT = 64 * 1024
GRAPH = Graph.task
BRANCH = branch_of(GRAPH)


def signed(body: bytes, secret: bytes = SECRET) -> str:
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


def headers(body: bytes, delivery: str = "d1", event: str = "pull_request", **other: str) -> dict[str, str]:
    return {
        "X-GitHub-Delivery": delivery,
        "X-GitHub-Event": event,
        "X-Hub-Signature-256": signed(body),
        "Content-Type": "application/json",
        **other,
    }


def pull_request(action: str = "closed", branch: str = BRANCH, repository: str = "acme/shop", **head: Any) -> bytes:
    """A delivery about a pull request, as much of it as matters."""
    payload = {
        "action": action,
        "number": 7,
        "pull_request": {"number": 7, "head": {"ref": branch, "repo": {"full_name": repository}, **head}},
        "repository": {"full_name": repository},
    }
    return json.dumps(payload).encode()


@dataclass
class Doorway:
    """The door, whom it woke, and what it kept."""

    store: Store
    woken: list[str] = field(default_factory=list)
    nudge: Callable[[str], Awaitable[None]] | None = None

    @property
    def app(self) -> Starlette:
        return Door(self.store, SECRET, LIMIT, self.nudge or self._wake).app()

    async def _wake(self, owner: str) -> None:
        self.woken.append(owner)

    async def post(self, body: bytes, told: dict[str, str] | None = None) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://door") as client:
            return await client.post("/webhooks/github", content=body, headers=headers(body) if told is None else told)

    def rows(self) -> list[Any]:
        with self.store.read() as connection:
            return list(connection.execute(select(inbox).order_by(inbox.c.delivery)))


@pytest.fixture
def graph(sqlite_store: Store) -> Graph:
    graph = Graph(sqlite_store)
    graph.confirm()
    return graph


@pytest.fixture
def doorway(graph: Graph) -> Doorway:
    return Doorway(graph.store)


__all__ = ["OWNER"]
