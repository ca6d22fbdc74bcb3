"""The layer around everything that clients talk to: it lets faults strike and writes down each request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rehearsal import faults, limits
from rehearsal.answers import Refused, encode
from rehearsal.auth import ANONYMOUS
from rehearsal.faults import IN_REQUESTS, Fault, FaultKind
from rehearsal.state import State

DROP = "drop_connection"
"""The server puts a function of this name into a request's state: it cuts the connection at once."""

_BEFORE = (FaultKind.ERROR_BEFORE, FaultKind.LOST_BEFORE, FaultKind.SECONDARY_LIMIT, FaultKind.PRIMARY_LIMIT)
_LOST = (FaultKind.LOST_BEFORE, FaultKind.LOST_AFTER)


class Faulty:
    def __init__(self, app: ASGIApp, state: State, untouched: Iterable[str]) -> None:
        """Paths that begin with one of `untouched` belong to the set-up: no faults, no records."""
        self._app = app
        self._state = state
        self._untouched = tuple(untouched)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(self._untouched):
            await self._app(scope, receive, send)
            return
        fault = await self._strike(scope["method"], scope["path"])

        async def recorded(message: Message) -> None:
            # First the record, then the answer: who has the answer and asks again finds the record.
            if message["type"] == "http.response.start":
                await run_in_threadpool(self._record, scope, message["status"], fault)
            await send(message)

        if fault is None:
            await self._app(scope, receive, recorded)
        else:
            await self._fail(fault, scope, receive, recorded)

    async def _strike(self, method: str, path: str) -> Fault | None:
        slow, fault = await run_in_threadpool(self._struck, method, path)
        if slow is not None:
            await asyncio.sleep(float(slow.options.get("seconds", 1)))
        return fault or slow

    def _struck(self, method: str, path: str) -> tuple[Fault | None, Fault | None]:
        slow = faults.strike(self._state, (FaultKind.SLOW,), method, path)
        return slow, faults.strike(self._state, IN_REQUESTS, method, path)

    async def _fail(self, fault: Fault, scope: Scope, receive: Receive, send: Send) -> None:
        if fault.kind is FaultKind.SLOW:
            await self._app(scope, receive, send)
            return
        if fault.kind not in _BEFORE:
            await self._app(scope, receive, _unheard)
        if fault.kind in _LOST:
            await run_in_threadpool(self._record, scope, 0, fault)
            scope["state"][DROP]()
            # The server learns of it in its next turn, and then expects no answer any more.
            await asyncio.sleep(0)
            return
        refused = _refusal(fault)
        response = Response(encode(refused.body), refused.status, refused.headers, "application/json; charset=utf-8")
        await response(scope, receive, send)

    def _record(self, scope: Scope, status: int, fault: Fault | None) -> None:
        query = scope["query_string"].decode("latin-1")
        self._state.run(
            "INSERT INTO request (at, holder, method, path, status, fault) VALUES (?, ?, ?, ?, ?, ?)",
            time.time(), scope.get("state", {}).get("holder", ANONYMOUS.holder), scope["method"],
            scope["path"] + (f"?{query}" if query else ""), status, fault.kind if fault else None,
        )  # fmt: skip


async def _unheard(message: Message) -> None:
    """Where the answer goes that nobody is to receive."""


def _refusal(fault: Fault) -> Refused:
    if fault.kind is FaultKind.SECONDARY_LIMIT:
        wait = fault.options.get("retry_after")
        return limits.secondary(int(fault.options.get("status", 403)), None if wait is None else str(wait))
    if fault.kind is FaultKind.PRIMARY_LIMIT:
        return limits.primary(ANONYMOUS, float(fault.options.get("reset_in", 60)))
    return Refused(int(fault.options.get("status", 500)), "Server Error")
