"""A model call as it arrives: ASGI without a framework between, and its one answer.

https://asgi.readthedocs.io/en/latest/specs/www.html
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import orjson
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from relay.answers import Refused
from relay.room import Room

BODY_SECONDS = 120.0
"""How long a caller may take to send what it asks."""


class Arrival:
    """One request. `path` is what stands behind `/models/`, as it was sent: nothing in it is decoded."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path = bytes(scope["raw_path"]).decode("latin-1").partition("/models/")[2]
        self.headers = Headers(scope=scope)
        self.receive, self.send = receive, send
        self.begun = False
        self._leaving: asyncio.Future[Message] | None = None
        self._query: bytes = scope["query_string"]

    @property
    def query(self) -> Mapping[str, str]:
        return dict(parse_qsl(self._query.decode("latin-1")))

    async def json(self, limit: int, room: Room) -> dict[str, Any]:
        """The body, which has to be a JSON object of at most `limit` bytes. Raises Refused."""
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise Refused(415, f"the body is compressed ({encoding[:40]}); send it as it is")
        async with room.taken(self._size(limit)):
            return _an_object(await self._body(limit))

    def _size(self, limit: int) -> int:
        """How many bytes come at the most."""
        declared = self.headers.get("content-length", "")
        if not declared.isdecimal():
            return limit
        if int(declared) > limit:
            raise Refused(413, f"the body is larger than {limit} bytes")
        return int(declared)

    async def _body(self, limit: int) -> bytes:
        body = b""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await self.receive()
                if message["type"] == "http.request" and not message.get("more_body"):
                    body = message.get("body", b"")
                else:
                    body = await self._rest(message, limit)
        except TimeoutError as error:
            raise Refused(408, f"the body did not come within {BODY_SECONDS:.0f} seconds") from error
        return _within(body, limit)

    async def _rest(self, message: Mapping[str, Any], limit: int) -> bytes:
        body = bytearray()
        while True:
            if message["type"] != "http.request":
                raise Refused(400, "the body was broken off")
            body += message.get("body", b"")
            _within(body, limit)
            if not message.get("more_body"):
                return bytes(body)
            message = await self.receive()

    def leaving(self) -> asyncio.Future[Message]:
        """Done once the caller has gone. To be asked for only when the body was read."""
        if self._leaving is None:
            self._leaving = asyncio.ensure_future(self.receive())
        return self._leaving

    def close(self) -> None:
        """Nobody cares any more whether the caller is there."""
        if self._leaving is not None:
            self._leaving.cancel()

    def head(self, status: int, headers: Mapping[str, str]) -> Message:
        """The head of the answer, to be sent. `begun` says from now on that there can be no other."""
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        self.begun = True
        return {"type": "http.response.start", "status": status, "headers": raw}

    async def end(self, body: bytes) -> None:
        """The last of the answer."""
        await self.send({"type": "http.response.body", "body": body, "more_body": False})

    async def whole(self, status: int, content: Any, headers: Mapping[str, str] | None = None) -> None:
        """Answer with JSON."""
        body = orjson.dumps(content)
        told = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
        await self.send(self.head(status, told))
        await self.end(body)


def _an_object(raw: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Refused(400, f"the body is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise Refused(400, "the body is no JSON object")
    return found


_Bytes = TypeVar("_Bytes", bytes, bytearray)


def _within(body: _Bytes, limit: int) -> _Bytes:
    if len(body) > limit:
        raise Refused(413, f"the body is larger than {limit} bytes")
    return body
