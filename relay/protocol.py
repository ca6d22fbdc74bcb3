"""The tools over the Model Context Protocol: streamable HTTP, and no session, so that any process can answer any call.

https://modelcontextprotocol.io/specification/latest/basic/transports
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_REQUEST,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from mcp_types import Tool as OfferedTool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from domain.errors import WatchbillError
from relay import tools
from relay.answers import body_of
from relay.callers import Caller
from relay.graph import Graph

_INSTRUCTIONS = (
    "Watchbill runs you. Read the topic `task` with read_brief when you have lost what you are to do; "
    "hand in with submit_result when it is done."
)


class Protocol:
    """Answers `POST /mcp`. `limit` is the bytes of the largest message."""

    def __init__(self, graph: Graph, limit: int) -> None:
        self._graph, self._limit = graph, limit
        server: Server[Any] = Server(
            "watchbill",
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
            # No argument of ours travels as a header, so nothing has to be looked up for each call.
            get_tool_input_schema=lambda _: None,
        )
        # Who calls and from where is judged before a message comes here.
        self._manager = StreamableHTTPSessionManager(
            server, stateless=True, json_response=True, max_request_body_size=limit
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._manager.run():
            yield

    async def answer(self, request: Request, caller: Caller) -> Response:
        """Raises Refused for a message that is too large. `caller` is whom the tools work for."""
        return _Answered(self._manager, await body_of(request, self._limit), caller)

    async def _list(self, context: ServerRequestContext[Any], _: PaginatedRequestParams | None) -> ListToolsResult:
        try:
            offered = await tools.offered(self._graph, _caller(context))
        except WatchbillError as error:
            raise MCPError(INVALID_REQUEST, str(error)) from error
        return ListToolsResult(
            tools=[
                OfferedTool(name=tool.name, description=tool.description, input_schema=dict(tool.schema))
                for tool in offered
            ]
        )

    async def _call(self, context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        answer = await tools.call(self._graph, _caller(context), params.name, params.arguments or {})
        return CallToolResult(content=[TextContent(type="text", text=answer.text)], is_error=answer.is_error)


class _Answered(Response):
    """A message that was read whole, handed to the SDK with its caller beside it."""

    def __init__(self, manager: StreamableHTTPSessionManager, body: bytes, caller: Caller) -> None:
        super().__init__()
        self._manager, self._message, self._caller = manager, body, caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        unread = [self._message]

        async def replay() -> Message:
            if unread:
                return {"type": "http.request", "body": unread.pop(), "more_body": False}
            return await receive()

        state = {**scope.get("state", {}), "caller": self._caller}
        await self._manager.handle_request({**scope, "state": state}, replay, send)


def _caller(context: ServerRequestContext[Any]) -> Caller:
    assert isinstance(context.request, Request)
    caller: Caller = context.request.state.caller
    return caller
