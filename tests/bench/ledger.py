"""What it costs to hold money for a call and to settle it, against the way in which one would write it first.

Thirty-two callers ask and settle without pause, all of one task. The naive way has a transaction of its own for
each, on an async engine, and one hot row; ours has four ceilings, and a commit for whatever has come together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from relay.bookkeeper import Bookkeeper
from store.database import Store, migrate, open_store
from tests.bench.figures import Figure
from tests.bench.postgres import postgres
from tests.store.spending import Spender, spent

CALLERS = 32
CENTS = 0.0001
GOAL = 15

_naive = sa.MetaData()
_hot = sa.Table(
    "hot",
    _naive,
    sa.Column("id", sa.Text, primary_key=True),
    *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("cap", "held", "settled")),
)
_calls = sa.Table(
    "calls",
    _naive,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("held", "settled")),
)

Pair = Callable[[], Awaitable[None]]


def ledger(folder: Path, rounds: int, seconds: float) -> list[Figure]:
    """Pairs of holding and settling a second, on each engine."""
    figures = [_figure("SQLite FULL", f"sqlite:///{folder / 'ledger.db'}", folder, rounds, seconds)]
    with postgres() as url:
        figures.append(_figure("PostgreSQL", url, folder, rounds, seconds))
    return figures


def _figure(engine: str, url: str, folder: Path, rounds: int, seconds: float) -> Figure:
    migrate(url)
    store = open_store(url)
    spender = Spender(plan_cents=None, task_cents=(None,))
    spender.begin(store)
    naive = url if url.startswith("postgresql") else f"sqlite+aiosqlite:///{folder / 'naive.db'}"
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(asyncio.run(_measure_naive(naive, seconds)))
        ours.append(asyncio.run(_measure_ours(store, spender, seconds)))
    store.close()
    what = f"hold and settle, {CALLERS} at once, {engine} / naive async SQLAlchemy"
    return Figure(what, "/s", median(ours), median(theirs), least=GOAL)


async def _measure_ours(store: Store, spender: Spender, seconds: float) -> float:
    books = Bookkeeper(store)
    books.start()

    async def pair() -> None:
        ask = spender.ask(CENTS, id=uuid4().hex)
        await books.admit(ask)
        books.settle(spent(ask.id, CENTS, input=1000, output=100))

    def finish() -> None:
        books.close()

    return await _rate(pair, seconds, finish)


async def _measure_naive(url: str, seconds: float) -> float:
    engine = create_async_engine(url, pool_size=CALLERS, max_overflow=0, connect_args=_patience(url))
    if url.startswith("sqlite"):
        _begin_immediately(engine)
    async with engine.begin() as connection:
        await connection.run_sync(_naive.drop_all)
        await connection.run_sync(_naive.create_all)
        await connection.execute(sa.insert(_hot), {"id": "task", "cap": 10**15, "held": 0, "settled": 0})

    async def pair() -> None:
        id = uuid4().hex
        async with engine.begin() as connection:
            room = _hot.c.held + _hot.c.settled + 1000 <= _hot.c.cap
            taken = sa.update(_hot).where(_hot.c.id == "task", room).values(held=_hot.c.held + 1000)
            assert (await connection.execute(taken)).rowcount == 1
            await connection.execute(sa.insert(_calls), {"id": id, "state": "held", "held": 1000, "settled": 0})
        async with engine.begin() as connection:
            own = sa.update(_calls).where(_calls.c.id == id, _calls.c.state == "held")
            assert (await connection.execute(own.values(state="settled", settled=900))).rowcount == 1
            after = {"held": _hot.c.held - 1000, "settled": _hot.c.settled + 900}
            await connection.execute(sa.update(_hot).where(_hot.c.id == "task").values(after))

    took = await _rate(pair, seconds)
    await engine.dispose()
    return took


async def _rate(pair: Pair, seconds: float, finish: Callable[[], None] = lambda: None) -> float:
    """Pairs a second; what still has to be written at the end is waited for."""
    done = 0
    began = time.perf_counter()

    async def caller() -> None:
        nonlocal done
        while time.perf_counter() - began < seconds:
            await pair()
            done += 1

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    finish()
    return done / (time.perf_counter() - began)


def _patience(url: str) -> dict[str, int]:
    return {"timeout": 60} if url.startswith("sqlite") else {}


def _begin_immediately(engine: AsyncEngine) -> None:
    """With the same promise as ours: a commit that was acknowledged outlives a power cut."""

    def configure(connection: Any, _record: object) -> None:
        connection.isolation_level = None
        for setting in ("journal_mode = WAL", "synchronous = FULL"):
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA {setting}")
            cursor.close()

    event.listen(engine.sync_engine, "connect", configure)
    event.listen(engine.sync_engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
