"""What is asked of every request before anything else: that it means this door, and does not come from a web page."""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from relay.answers import refusal

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Gate:
    """Lets through what names the door by one of `names` or as this machine.

    A web page that is open beside an agent could else reach a door on the loopback, under a name of its
    own that leads there. No header of ours ever allows a page to read an answer.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app = app
        self._names = LOOPBACK | {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if _host(headers.get("host", "")) not in self._names:
                await refusal(421, "this door has another name; use the address that the run was given")(
                    scope, receive, send
                )
                return
            if "origin" in headers:
                await refusal(403, "web pages have no business here")(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _host(header: str) -> str:
    """The name in a Host header, without its port: `localhost:8271`, `[::1]:8271`."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()
