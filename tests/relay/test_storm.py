"""However many call at once, at however many doors over one store, no more goes out than can be paid for in full."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from sqlalchemy import func, select

from domain.budget import format_usd
from domain.raising import SetDay
from relay.shapes import SHAPES
from signing.keys import Signer
from store.audit import audit
from store.budgets import set_day
from store.database import Store
from store.tables import ceilings, reservations, usage
from tests.activities.conftest import OWNER, Graph
from tests.relay.conftest import ASKED, MESSAGES, PRICES, Provider, opened
from tests.relay.processes import doors, told_of
from tests.relay.test_bookkeeper import watched
from tests.relay.test_metering import ANTHROPIC, SPENT, sse

BODY: dict[str, Any] = {**ASKED, "stream": True}
STREAM = sse(*ANTHROPIC)
_PRICE = PRICES.of("anthropic", ASKED["model"], datetime.now(UTC))
_WISH = SHAPES[0].read(orjson.loads(orjson.dumps(BODY)), "", ASKED["max_tokens"])
_WISH.encode()
assert _PRICE is not None
COST = _PRICE.cost(SPENT)
MOST = _PRICE.most(_WISH.content, _WISH.output)
"""What a call may cost at most. Its cap of 100 tokens is less than makes sense, so none is cut to what is left."""
ROOM = 3 * MOST + MOST // 2
PLENTY = 10**12


def leave_room_for_three(ceiling: str, graph: Graph, spent: int) -> int:
    """Of this ceiling; all others have plenty. What a run's capability says of its cap.

    They come in the order of `STORMS`, as of a task's and a plan's budget there can only be more.
    """
    match ceiling:
        case "plan":
            graph.move("raised", budget_nano_usd=PLENTY)
            graph.move("raised", "plan", graph.plan, budget_nano_usd=spent + ROOM)
        case "day":
            graph.move("raised", "plan", graph.plan, budget_nano_usd=PLENTY)
            say(graph, spent + ROOM)
        case "run":
            say(graph, PLENTY)
            return spent + ROOM
    return PLENTY


def say(graph: Graph, nano_usd: int) -> None:
    with graph.store.write() as connection:
        set_day(connection, SetDay(OWNER, nano_usd), datetime.now(UTC), 1)


STORMS = {"task": 200, "plan": 32, "day": 200, "run": 32}
"""How many call at once, by whose budget is short."""
SHORT = {name: f"the budget of {name} ".encode() for name in STORMS} | {"day": b"today's budget of "}


async def ask(session: aiohttp.ClientSession, port: int, token: str) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {token}"}
    async with session.post(f"http://127.0.0.1:{port}{MESSAGES}", headers=headers, json=BODY) as answer:
        return answer.status, await answer.read()


def sums(store: Store) -> set[tuple[int, int]]:
    """What is held and what is settled of every ceiling: one pair, as all of it is one run's."""
    with store.read() as connection:
        rows = connection.execute(select(ceilings.c.held, ceilings.c.settled)).all()
    assert len(rows) == 4
    return {(row.held, row.settled) for row in rows}


async def until_settled(store: Store) -> None:
    while any(held for held, _ in sums(store)):
        await asyncio.sleep(0.02)


async def test_of_a_storm_at_two_doors_just_as_many_calls_reach_the_provider_as_there_is_money_for(
    store: Store, signer: Signer, provider: Provider, listening: tuple[Provider, str], tmp_path: Path
) -> None:
    provider.parts = [STREAM[:500], STREAM[500:]]
    told, spent = told_of(store, listening[1], tmp_path), 0
    budget = format_usd(ROOM)
    with (
        contextmanager(opened)(store, signer, provider, listening[1], budget=budget) as relay,
        doors(2, tmp_path / "home", told) as both,
        watched(store, 0.02) as seen,
    ):
        for ceiling, count in STORMS.items():
            cap = leave_room_for_three(ceiling, relay.graph, spent)
            provider.asked.clear()
            provider.goes_on.clear()
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
                token = relay.token(max_budget_nano_usd=cap)
                calls = [asyncio.create_task(ask(session, both[n % 2][0], token)) for n in range(count)]
                while sum(call.done() for call in calls) + len(provider.asked) < count:
                    await asyncio.sleep(0.02)
                refused = [call.result() for call in calls if call.done()]
                assert {status for status, _ in refused} == {402}
                assert all(SHORT[ceiling] in why for _, why in refused)
                assert len(provider.asked) == 3
                assert sums(store) == {(3 * MOST, spent)}
                provider.goes_on.set()
                answers = await asyncio.gather(*calls)
            assert [answer for answer in answers if answer[0] != 402] == [(200, STREAM)] * 3
            await until_settled(store)
            spent += 3 * COST
            assert sums(store) == {(0, spent)}
            assert len(provider.asked) == 3
    assert seen == []
    with store.read() as connection:
        assert connection.execute(select(usage.c.nano_usd, usage.c.measured)).all() == [(COST, True)] * 12
        assert connection.scalar(select(func.count()).select_from(reservations)) == 12
        assert audit(connection) == ()
