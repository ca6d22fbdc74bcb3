"""What model calls came to since the relay began, as Prometheus reads it.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress

_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = 5.0
_LONGEST_HEAD = 8192

_Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counters by owner and model, which are those of signed capabilities alone and so are few."""

    def __init__(self) -> None:
        self._calls: dict[_Labels, int] = defaultdict(int)
        self._seconds: dict[_Labels, float] = defaultdict(float)
        self._tokens: dict[_Labels, int] = defaultdict(int)
        self._spent: dict[_Labels, int] = defaultdict(int)
        self.under_way = 0

    def call(self, owner: str, model: str, endpoint: str, outcome: str, seconds: float) -> None:
        """A call that is over. `outcome` is one of few words."""
        who = (("owner", owner), ("model", model), ("endpoint", endpoint))
        self._calls[(*who, ("outcome", outcome))] += 1
        self._seconds[who] += seconds

    def used(self, owner: str, model: str, nano_usd: int, tokens: Mapping[str, int]) -> None:
        who = (("owner", owner), ("model", model))
        self._spent[who] += nano_usd
        for kind, number in tokens.items():
            if number:
                self._tokens[(*who, ("kind", kind))] += number

    def text(self) -> str:
        named = (
            ("calls_total", "counter", "Model calls that are over.", self._calls.items()),
            ("call_seconds_total", "counter", "Seconds from a call's first byte to its last.", self._seconds.items()),
            ("tokens_total", "counter", "Tokens, by what they cost.", self._tokens.items()),
            ("nano_usd_total", "counter", "Nano-dollars that metered calls came to.", self._spent.items()),
            ("calls_under_way", "gauge", "Model calls that are under way.", [((), self.under_way)]),
        )
        return "".join(line for name, kind, told, values in named for line in _lines(name, kind, told, values))


def _lines(name: str, kind: str, told: str, values: Iterable[tuple[_Labels, float]]) -> Iterator[str]:
    yield f"# HELP watchbill_relay_{name} {told}\n# TYPE watchbill_relay_{name} {kind}\n"
    for labels, value in values:
        shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
        yield f"watchbill_relay_{name}{f'{{{shown}}}' if shown else ''} {value}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@asynccontextmanager
async def shown(metrics: Metrics, host: str, port: int) -> AsyncIterator[int]:
    """Serve `GET /metrics` on an address of its own, which no agent is given; yields the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                found = head.startswith(b"GET /metrics ")
                body = metrics.text().encode() if found else b"see /metrics\n"
                status = "200 OK" if found else "404 Not Found"
                told = f"HTTP/1.1 {status}\r\nContent-Type: {_TYPE}\r\nContent-Length: {len(body)}\r\n"
                writer.write(f"{told}Connection: close\r\n\r\n".encode() + body)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, host, port, limit=_LONGEST_HEAD)
    async with server:
        yield server.sockets[0].getsockname()[1]
