"""Model calls from many connections at once, and what they took of the servers that answered them."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import orjson

from starter.local import ports
from starter.local.service import leashed
from tests.bench.processes import cpu_of, memory_of
from tests.store.spending import MODEL

CONNECTIONS = 32
PATH = "/models/anthropic/v1/messages"
ROOT = Path(__file__).parents[2]

_START_SECONDS = 180.0


@dataclass(frozen=True)
class Taken:
    """What calls took: how many of them a second, milliseconds of the servers' CPU each, and until the answer."""

    rate: float
    cpu: float
    latency: float


@dataclass(frozen=True)
class Server:
    """A process that listens, and what its caller shows at which path."""

    port: int
    pid: int
    path: str = PATH
    token: str = ""

    @property
    def memory(self) -> float:
        """MB that it has held at most."""
        return memory_of(self.pid)

    def request(self, *, stream: bool) -> bytes:
        """A question of a kilobyte."""
        asked = [{"role": "user", "content": "x" * 900}]
        body = orjson.dumps({"model": MODEL, "max_tokens": 1000, "stream": stream, "messages": asked})
        lines = [f"POST {self.path} HTTP/1.1", "host: localhost", f"authorization: Bearer {self.token}"]
        lines += ["content-type: application/json", "anthropic-version: 2023-06-01", f"content-length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode() + body


async def measure(
    servers: Sequence[Server], calls: int, *, stream: bool = False, connections: int = CONNECTIONS
) -> Taken:
    """So many calls by so many connections, which the servers share."""
    each = max(1, calls // connections)
    times: list[float] = []
    pids = [server.pid for server in servers]

    async def caller(server: Server) -> None:
        request = server.request(stream=stream)
        async with _connected(server) as (reader, writer):
            for _ in range(each):
                since = time.perf_counter()
                status, said = await _ask(reader, writer, request)
                assert status == 200, f"{server.path} answered {status}: {said[:500]!r}"
                times.append(time.perf_counter() - since)

    began, cpu = time.perf_counter(), cpu_of(pids)
    await asyncio.gather(*(caller(servers[n % len(servers)]) for n in range(connections)))
    seconds, used = time.perf_counter() - began, cpu_of(pids) - cpu
    return Taken(len(times) / seconds, 1000 * used / len(times), 1000 * median(times))


async def exhaust(servers: Sequence[Server]) -> int:
    """Ask by every connection until it is told that there is no money left; how many calls were answered."""

    async def caller(server: Server) -> int:
        request, answered = server.request(stream=False), 0
        async with _connected(server) as (reader, writer):
            while (answer := await _ask(reader, writer, request))[0] == 200:
                answered += 1
        assert answer[0] == 402, f"{server.path} answered {answer[0]}: {answer[1][:500]!r}"
        return answered

    return sum(await asyncio.gather(*(caller(servers[n % len(servers)]) for n in range(CONNECTIONS))))


@asynccontextmanager
async def serving(
    name: str, command: Sequence[str], port: int, folder: Path, told: Mapping[str, str] | None = None
) -> AsyncIterator[int]:
    """The command as a process that listens, and its id. RuntimeError, with its last words, where it does not."""
    log = folder / f"{name}.log"
    with log.open("wb") as said:
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **(told or {})}
        process = await asyncio.create_subprocess_exec(
            *leashed(command), env=environment, cwd=folder, stdout=said, stderr=said
        )
    try:
        until = time.monotonic() + _START_SECONDS
        while not ports.listening(port):
            if process.returncode is not None or time.monotonic() > until:
                raise RuntimeError(f"{name} did not start: {log.read_text(errors='replace')[-2000:]}")
            await asyncio.sleep(0.05)
        yield process.pid
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def script(name: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a script beside this one."""
    return (sys.executable, str(Path(__file__).with_name(name)), *arguments)


@asynccontextmanager
async def _connected(server: Server) -> AsyncIterator[tuple[StreamReader, StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 20)
    try:
        yield reader, writer
    finally:
        writer.close()


_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)


async def _ask(reader: StreamReader, writer: StreamWriter, request: bytes) -> tuple[int, bytes]:
    """The status of the answer and its body, once the whole of it is there."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    if length := _LENGTH.search(head):
        body = await reader.readexactly(int(length[1]))
    else:
        body = await reader.readuntil(b"\r\n0\r\n\r\n")
    return int(head.split(b" ", 2)[1]), body
