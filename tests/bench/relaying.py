"""What the relay adds to a model call, against pass-throughs that ask, reckon and read nothing."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import orjson

from starter.local import ports
from starter.local.service import leashed
from tests.bench.figures import Figure
from tests.bench.processes import cpu_of
from tests.bench.relay_servers import EVENTS, MODEL, PATH

CONNECTIONS = 32
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Server:
    """One that listens. `token` is what it is shown."""

    port: int
    process: Process
    token: str = ""

    async def measure(self, calls: int, *, stream: bool) -> tuple[float, float]:
        """Seconds, and those of its CPU, that a call takes, of as many at once as there are connections."""
        text = "x" * 900
        body = {"model": MODEL, "max_tokens": 1000, "stream": stream, "messages": [{"role": "user", "content": text}]}
        raw = orjson.dumps(body)
        lines = [f"POST {PATH} HTTP/1.1", "host: localhost", f"authorization: Bearer {self.token}"]
        request = "\r\n".join([*lines, "content-type: application/json", f"content-length: {len(raw)}", "", ""])
        each = max(1, calls // CONNECTIONS)
        began, cpu = time.perf_counter(), cpu_of([self.process.pid])
        await asyncio.gather(*(self._ask(request.encode() + raw, each) for _ in range(CONNECTIONS)))
        done = each * CONNECTIONS
        return (time.perf_counter() - began) / done, (cpu_of([self.process.pid]) - cpu) / done

    async def _ask(self, request: bytes, times: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        for _ in range(times):
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            # All of them answer in chunks.
            await reader.readuntil(b"\r\n0\r\n\r\n")
        writer.close()


async def relaying(folder: Path, rounds: int, calls: int) -> list[Figure]:
    """Calls of a kilobyte, and streams of events, by turns through each; medians."""
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(_serving("provider", "", folder))
        url = f"http://127.0.0.1:{provider.port}"
        names = ("relay", "aiohttp", "httpx")
        servers = {name: await stack.enter_async_context(_serving(name, url, folder)) for name in names}
        json: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        events: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        for turn in range(rounds + 1):
            for name, server in servers.items():
                part = calls // 4 if name == "httpx" else calls
                found = await server.measure(part, stream=False), await server.measure(part // 8, stream=True)
                # The first turn warms everything up.
                if turn:
                    json[name].append(found[0])
                    events[name].append(found[1])
    return _figures(json, events)


def _figures(json: dict[str, list[tuple[float, float]]], events: dict[str, list[tuple[float, float]]]) -> list[Figure]:
    def middle(times: list[tuple[float, float]], which: int) -> float:
        # In milliseconds, for the table's sake.
        return 1000 * median(each[which] for each in times)

    relay, bare, httpx = (json[name] for name in ("relay", "aiohttp", "httpx"))
    ours, theirs = (middle(events[name], 1) for name in ("relay", "aiohttp"))
    what = f"relay, books in memory: 1 KB of JSON at {CONNECTIONS} connections"
    stream = f"relay, books in memory: a stream of {EVENTS} events"
    return [
        Figure(f"{what}, a call / bare aiohttp", "ms", middle(relay, 0), middle(bare, 0), most=2),
        Figure(f"{what}, CPU / bare aiohttp", "ms", middle(relay, 1), middle(bare, 1), most=2),
        Figure(f"{what}, a call / bare httpx", "ms", middle(relay, 0), middle(httpx, 0), most=0.2),
        Figure(f"{stream}, CPU / bare aiohttp", "ms", ours, theirs, most=1.2),
    ]


@asynccontextmanager
async def _serving(kind: str, url: str, folder: Path) -> AsyncIterator[Server]:
    (port,) = ports.choose((0,))
    place = folder / f"relaying-{kind}"
    place.mkdir()
    script = str(Path(__file__).with_name("relay_servers.py"))
    command = leashed((sys.executable, script, kind, str(port), url, str(place)))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (place / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=log, stderr=log)
    try:
        while not ports.listening(port):
            assert process.returncode is None, (place / "log").read_text()
            await asyncio.sleep(0.05)
        token = (place / "token").read_text() if kind == "relay" else ""
        yield Server(port, process, token)
    finally:
        process.terminate()
        await process.wait()
