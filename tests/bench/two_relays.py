"""Two relay processes over one PostgreSQL, against one: the same calls, and a budget that both of them spend."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import orjson

from pricing.prices import Prices
from relay.shapes.anthropic import Messages
from tests.bench.figures import Figure
from tests.bench.load import CONNECTIONS, Server, exhaust, measure
from tests.bench.peers import ANSWER
from tests.bench.postgres import postgres
from tests.bench.relaying import peer
from tests.bench.relays import SCANT_CENTS, World, moves, relay, scant, world
from tests.store.spending import MODEL

_LOOK_SECONDS = 0.02


async def two_relays(folder: Path, rounds: int, calls: int) -> list[Figure]:
    """By turns through one and through both, then a task's money until there is none left; medians."""
    async with AsyncExitStack() as stack:
        here = world(stack.enter_context(postgres()), folder)
        upstream = await stack.enter_async_context(peer("provider", "", folder))
        url = f"http://127.0.0.1:{upstream.port}"
        both = [await stack.enter_async_context(relay(name, here, url, folder)) for name in ("one", "two")]
        await stack.enter_async_context(moves(here))
        one: list[float] = []
        two: list[float] = []
        for turn in range(rounds + 1):
            found = [(await measure(servers, calls)).rate for servers in (both[:1], both)]
            # The first turn warms everything up.
            if turn:
                one.append(found[0])
                two.append(found[1])
        most = await _most_used(here, [scant(server, here) for server in both])
    what = f"relay, PostgreSQL: 1 KB of JSON at {CONNECTIONS} connections, two processes"
    return [
        Figure(f"{what}, calls / one", "/s", median(two), median(one), least=1),
        Figure(
            f"{what}, all that was ever held and spent of a task / its budget", "USD",
            most / 10**9, SCANT_CENTS / 100, most=1,
        ),
    ]  # fmt: skip


async def _most_used(here: World, servers: Sequence[Server]) -> int:
    """Nano-dollars that the ledger had held and spent of it at the most, while calls were made until none was paid for.

    AssertionError where the calls that were answered cost something else than the ledger says in the end.
    """
    asking = asyncio.create_task(exhaust(servers))
    held, settled, most = 0, 0, 0
    while not asking.done() or held:
        await asyncio.sleep(_LOOK_SECONDS)
        held, settled = await asyncio.to_thread(here.scant_used)
        most = max(most, held + settled)
    cost = asking.result() * _cost()
    assert settled == cost, f"calls for {cost} nano-dollars were answered, and {settled} are written down"
    return most


def _cost() -> int:
    """Nano-dollars that one of the provider's answers costs."""
    usage, price = Messages().used(orjson.loads(ANSWER)), Prices().of("anthropic", MODEL, datetime.now(UTC))
    assert usage is not None
    assert price is not None
    return price.cost(usage)
