"""`python -m tests.relay.moments PORT`: a provider whose answers come to a halt where they are told to.

What a request says is where: see `MOMENTS`. It prints each as it comes. `POST /go` lets those go on that wait.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from starter.local import ports
from tests.relay.test_metering import ANTHROPIC, sse

STREAM = sse(*ANTHROPIC)
MOMENTS: dict[str, tuple[bytes, ...]] = {
    "asked": (),
    "headers": (b"",),
    "begun": (STREAM[:500],),
    "told": (STREAM,),
    "waits": (STREAM[:500], STREAM[500:]),
    "whole": (STREAM,),
}
"""What is said of a stream: before `waits` has its second part, it is told to go on. `whole` alone ends besides."""


def app() -> Starlette:
    goes_on = asyncio.Event()

    async def go(_: Request) -> Response:
        goes_on.set()
        return Response()

    async def answer(request: Request) -> Response:
        body = await request.json()
        moment = body["messages"][0]["content"]
        sys.stdout.write(f"{moment}\n")
        sys.stdout.flush()
        while moment == "asked" and not await request.is_disconnected():
            await asyncio.sleep(0.02)
        return StreamingResponse(say(moment), media_type="text/event-stream")

    async def say(moment: str) -> AsyncIterator[bytes]:
        first, *others = MOMENTS[moment]
        yield first
        if moment != "whole":
            await (goes_on.wait() if others else asyncio.Event().wait())
        for other in others:
            yield other

    return Starlette(routes=[Route("/go", go, methods=["POST"]), Route("/{path:path}", answer, methods=["POST"])])


@contextmanager
def provider() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """One that listens, and its address."""
    (port,) = ports.choose((0,))
    argv = [sys.executable, "-m", "tests.relay.moments", str(port)]
    process = subprocess.Popen(argv, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True)
    try:
        while not ports.listening(port):
            assert process.poll() is None
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


if __name__ == "__main__":
    uvicorn.run(app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
