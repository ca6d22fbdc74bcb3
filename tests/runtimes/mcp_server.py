"""A server of tools over MCP as small as one can be: it tells who asked, and what was handed in."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

RESULT = {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}
_TOOL = {"name": "submit_result", "description": "Hand in the result.", "inputSchema": RESULT}


@dataclass
class Tools:
    """`authorizations` are the headers that came, `calls` the arguments of each use of `submit_result`.

    `taken` is the file that says that a result has been taken.
    """

    taken: Path
    url: str = ""
    authorizations: set[str | None] = field(default_factory=set)
    calls: list[Any] = field(default_factory=list)

    def answer(self, asked: Any) -> Any:
        match asked.get("method"):
            case "initialize":
                version = asked["params"]["protocolVersion"]
                server = {"name": "tools", "version": "1"}
                return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
            case "tools/list":
                return {"tools": [_TOOL]}
            case "tools/call":
                self.calls.append(asked["params"]["arguments"])
                self.taken.touch()
                return {"content": [{"type": "text", "text": "taken"}]}
            case _:
                return None


@contextmanager
def serving(taken: Path) -> Iterator[Tools]:
    """Served by threads while the context is entered."""
    tools = Tools(taken)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            tools.authorizations.add(self.headers.get("authorization"))
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "id" not in asked:
                self._send(202, b"")
                return
            result = tools.answer(asked)
            error = {"code": -32601, "message": "there is no such method"}
            told = {"error": error} if result is None else {"result": result}
            self._send(200, json.dumps({"jsonrpc": "2.0", "id": asked["id"], **told}).encode())

        def do_GET(self) -> None:
            self._send(405, b"")

        def do_DELETE(self) -> None:
            self._send(405, b"")

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    tools.url = f"http://127.0.0.1:{server.server_port}/mcp"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield tools
    finally:
        server.shutdown()
        server.server_close()
