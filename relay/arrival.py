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

    async def json(self, limit: int) -> dict[str, Any]:
        """The body, which has to be a JSON object of at most `limit` bytes. Raises Refused."""
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise Refused(415, f"the body is compressed ({encoding[:40]}); send it as it is")
        raw = await self._body(limit)
        try:
            found = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise Refused(400, f"the body is no JSON: {error}") from error
        if not isinstance(found, dict):
            raise Refused(400, "the body is no JSON object")
        return found

    async def _body(self, limit: int) -> bytes:
        declared = self.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > limit:
            raise Refused(413, f"the body is larger than {limit} bytes")
        first = await self.receive()
        if first["type"] == "http.request" and not first.get("more_body"):
            whole: bytes = first.get("body", b"")
            return _within(whole, limit)
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await self._rest(first, limit)
        except TimeoutError as error:
            raise Refused(408, f"the body did not come within {BODY_SECONDS:.0f} seconds") from error

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
        self.begun = True
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
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


_Bytes = TypeVar("_Bytes", bytes, bytearray)


def _within(body: _Bytes, limit: int) -> _Bytes:
    if len(body) > limit:
        raise Refused(413, f"the body is larger than {limit} bytes")
    return body
