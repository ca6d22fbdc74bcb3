"""Model calls: passed on to the provider, and its answer passed back as it comes.

This is the whole of what happens to a call behind the door. What meters, caps and prices calls takes
the place of `Models` and answers the same question: a request and who makes it in, a response out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any
from urllib.parse import unquote

import httpx
import structlog
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from relay.answers import Refused, body_of
from relay.callers import Caller

log = structlog.get_logger("relay")

# The run's capability is for us alone: what a provider is shown is put in its place.
_PASSED_ON = (
    "accept",
    "accept-encoding",
    "anthropic-beta",
    "anthropic-version",
    "content-encoding",
    "content-type",
    "openai-beta",
    "user-agent",
)
_PASSED_BACK = (
    "content-encoding",
    "content-length",
    "content-type",
    "request-id",
    "retry-after",
    "x-request-id",
    "x-should-retry",
)

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 600.0
"""How long a provider may say nothing: as long as its own clients wait."""


class Models:
    """A provider at `address`, which stands for `/models`; nothing is passed on while it is empty."""

    def __init__(self, address: str, limit: int) -> None:
        self._address, self._limit = address.rstrip("/"), limit
        timeout = httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
        # Without a bound on connections no stream waits for the end of another. No proxy of the
        # environment's: the address that is set is the one that is called.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        self._client = httpx.AsyncClient(timeout=timeout, limits=limits, trust_env=False, follow_redirects=False)

    async def answer(self, request: Request, caller: Caller) -> Response:
        """The provider's answer. Raises Refused for what is not passed on, and when there is no provider to ask."""
        if not self._address:
            raise Refused(403, "this relay has no model provider; set WATCHBILL_MODELS")
        path = request.scope["raw_path"].decode("latin-1").partition("/models")[2]
        if ".." in unquote(unquote(path)).split("/"):
            raise Refused(400, "the path leads out of the provider's")
        query = request.scope["query_string"].decode("ascii")
        asked = self._client.build_request(
            request.method,
            f"{self._address}{path}{'?' if query else ''}{query}",
            headers=self._headers(request, caller),
            content=await body_of(request, self._limit),
        )
        began = time.monotonic()
        try:
            answer = await _unless_left(request, self._client.send(asked, stream=True))
        except httpx.HTTPError as error:
            log.warning("the model provider did not answer", run=caller.grant.run, error=repr(error))
            raise Refused(502, "the model provider did not answer") from error
        return _Passed(answer, caller, began)

    async def close(self) -> None:
        await self._client.aclose()

    def _headers(self, request: Request, caller: Caller) -> dict[str, str]:
        passed = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        # Who asks for no compression gets none; and the stand-in tells runs apart by their names.
        return {"accept-encoding": "identity", **passed, "authorization": f"Bearer {caller.grant.run}"}


async def _unless_left(request: Request, asking: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
    """The answer's beginning, which may take minutes. Nobody is asked any longer for a caller that hung up."""
    answer = asyncio.create_task(asking)
    left = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({answer, left}, return_when=asyncio.FIRST_COMPLETED)
        # The body has been read, so the one message that is left is that the caller has gone.
        if not answer.done():
            raise Refused(400, "the caller hung up")
        return await answer
    finally:
        left.cancel()
        answer.cancel()


class _Passed(StreamingResponse):
    """The provider's bytes as they come, in its own encoding. Whoever hangs up ends the call at the provider."""

    def __init__(self, answer: httpx.Response, caller: Caller, began: float) -> None:
        headers = {name: answer.headers[name] for name in _PASSED_BACK if name in answer.headers}
        super().__init__(self._bytes(answer), answer.status_code, headers)
        self._answer, self._caller, self._began = answer, caller, began

    async def stream_response(self, send: Send) -> None:
        ended = "hung up"
        try:
            await super().stream_response(send)
            ended = "whole"
        except httpx.HTTPError as error:
            # Without a last message the server breaks the connection off: the agent has to see a stream
            # that was dropped, and not one that looks whole.
            ended = f"dropped: {type(error).__name__}"
        finally:
            log.info(
                "a model call",
                run=self._caller.grant.run,
                capability=self._caller.fingerprint,
                path=self._answer.request.url.path,
                status=self.status_code,
                seconds=round(time.monotonic() - self._began, 3),
                ended=ended,
            )

    async def _bytes(self, answer: httpx.Response) -> AsyncIterator[bytes]:
        try:
            async for chunk in answer.aiter_raw():
                yield chunk
        finally:
            await answer.aclose()
