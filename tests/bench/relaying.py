"""What the relay adds to a model call, against pass-throughs that ask and reckon nothing, and against another gateway.

Over SQLite as the product opens it (`synchronous = FULL`), with all four ceilings, while another process makes moves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median

from starter.local import ports
from tests.bench import gateway
from tests.bench.figures import Figure, Row, Skipped
from tests.bench.load import CONNECTIONS, Server, Taken, measure, script, serving
from tests.bench.peers import EVENTS
from tests.bench.relays import moves, relay, world

_SLOWNESS = {"httpx": 4, "litellm": 40}
"""How much fewer calls are measured of those that take long."""


async def relaying(folder: Path, rounds: int, calls: int, *, litellm: Path | Skipped) -> list[Row]:
    """Calls of a kilobyte, and streams of events, by turns through each; medians.

    `litellm` is the gateway's program, or why there is none.
    """
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(peer("provider", "", folder))
        url = f"http://127.0.0.1:{upstream.port}"
        here = world(f"sqlite:///{folder / 'relaying.db'}", folder)
        servers = {"relay": await stack.enter_async_context(relay("relay", here, url, folder))}
        for name in ("aiohttp", "httpx"):
            servers[name] = await stack.enter_async_context(peer(name, url, folder))
        if isinstance(litellm, Path):
            servers["litellm"] = await stack.enter_async_context(gateway.serving_litellm(litellm, url, folder))
        await stack.enter_async_context(moves(here))
        json: dict[str, list[Taken]] = {name: [] for name in servers}
        events: dict[str, list[Taken]] = {name: [] for name in ("relay", "aiohttp")}
        for turn in range(rounds + 1):
            for name, server in servers.items():
                found = await measure([server], calls // _SLOWNESS.get(name, 1))
                # The first turn warms everything up.
                if turn:
                    json[name].append(found)
            for name, taken in events.items():
                streamed = await measure([servers[name]], calls // 16, stream=True)
                if turn:
                    taken.append(streamed)
        figures: list[Row] = [*_figures(json, events)]
        if isinstance(litellm, Skipped):
            return [*figures, litellm]
        alone = await _alone({"provider": upstream, "relay": servers["relay"], "litellm": servers["litellm"]}, rounds)
        return [*figures, *_against_litellm(json, alone, servers)]


@asynccontextmanager
async def peer(kind: str, url: str, folder: Path) -> AsyncIterator[Server]:
    (port,) = ports.choose((0,))
    async with serving(kind, script("peers.py", kind, str(port), url), port, folder) as pid:
        yield Server(port, pid)


async def _alone(servers: dict[str, Server], rounds: int) -> dict[str, float]:
    """The milliseconds of a call that has the server for itself."""
    times: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name, server in servers.items():
            times[name].append((await measure([server], 50, connections=1)).latency)
    return {name: median(each) for name, each in times.items()}


def _figures(json: dict[str, list[Taken]], events: dict[str, list[Taken]]) -> list[Figure]:
    rate = {name: median(each.rate for each in taken) for name, taken in json.items()}
    cpu = {name: median(each.cpu for each in taken) for name, taken in json.items()}
    stream = {name: median(each.cpu for each in taken) for name, taken in events.items()}
    what = f"relay, SQLite FULL: 1 KB of JSON at {CONNECTIONS} connections"
    return [
        Figure(f"{what}, calls / bare aiohttp", "/s", rate["relay"], rate["aiohttp"], least=0.5),
        Figure(f"{what}, CPU / bare aiohttp", "ms", cpu["relay"], cpu["aiohttp"], most=2),
        Figure(f"{what}, calls / bare httpx", "/s", rate["relay"], rate["httpx"], least=5),
        Figure(
            f"relay, SQLite FULL: a stream of {EVENTS} events, CPU / bare aiohttp", "ms",
            stream["relay"], stream["aiohttp"], most=1.2,
        ),
    ]  # fmt: skip


def _against_litellm(json: dict[str, list[Taken]], alone: dict[str, float], servers: dict[str, Server]) -> list[Figure]:
    ours, theirs = (median(each.rate for each in json[name]) for name in ("relay", "litellm"))
    added = {name: alone[name] - alone["provider"] for name in ("relay", "litellm")}
    held = {name: servers[name].memory for name in ("relay", "litellm")}
    what = f"relay / LiteLLM {gateway.VERSION} with a budget"
    return [
        Figure(f"{what}: calls at {CONNECTIONS} connections", "/s", ours, theirs, least=25),
        Figure(f"{what}: what a call takes longer by, alone", "ms", added["relay"], added["litellm"], most=1 / 8),
        Figure(f"{what}: memory", "MB", held["relay"], held["litellm"], most=1 / 6),
    ]
