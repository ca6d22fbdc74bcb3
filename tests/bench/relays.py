"""The product's relay over a store with a plan under way: four ceilings, and somebody who makes moves meanwhile.

`python relays.py URL` is that somebody: it says `moving`, and makes a move `EVERY` so many seconds until it is killed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from sqlalchemy import select

from domain.ledger import CeilingKind, ceiling_id
from domain.raising import SetDay
from signing.capabilities import USE, Grant
from signing.keys import open_or_make
from signing.minting import mint
from starter.local import ports
from starter.local.service import leashed, module
from store.budgets import set_day
from store.database import Store, migrate, open_store
from store.keys import keep_key
from store.tables import ceilings
from tests.bench.load import Server, script, serving
from tests.store.spending import MODEL, Spender, nano

EVERY = 0.02
"""Seconds between two moves: a task makes some tens of them in all."""

PLENTY_CENTS = 10**8
SCANT_CENTS = 100

_PLENTY, _SCANT = 1, 2
"""The plan's tasks, by what may be spent on them."""


@dataclass(frozen=True)
class World:
    """A store whose plan is under way, and what its runs show at the relay."""

    store: Store
    spender: Spender
    plenty: str
    scant: str

    def scant_used(self) -> tuple[int, int]:
        """Nano-dollars that are held and spent of the task that has few."""
        id = ceiling_id(CeilingKind.TASK, self.spender.task(_SCANT))
        with self.store.read() as connection:
            row = connection.execute(select(ceilings.c.held, ceilings.c.settled).where(ceilings.c.id == id)).first()
        return (row.held, row.settled) if row else (0, 0)


def world(url: str, folder: Path) -> World:
    """A new store at the URL. Its runs have a budget, their tasks, their plan and their owner's day too."""
    migrate(url)
    store, now = open_store(url), datetime.now(UTC)
    spender = Spender("measured", "bench", PLENTY_CENTS, (PLENTY_CENTS, SCANT_CENTS))
    spender.begin(store)
    signer = open_or_make(folder / "capability.pem")
    with store.write() as connection:
        set_day(connection, SetDay(spender.owner, nano(PLENTY_CENTS)), now, 1)
        keep_key(connection, signer.kid, signer.public, USE, now)

    def token(ordinal: int) -> str:
        task, run = spender.task(ordinal), spender.run(ordinal)
        grant = Grant(spender.owner, spender.plan, task, run, 1, "author", MODEL, nano(PLENTY_CENTS) or 0)
        return mint(signer, grant, now, timedelta(hours=2))

    return World(store, spender, token(_PLENTY), token(_SCANT))


@asynccontextmanager
async def relay(name: str, world: World, provider: str, folder: Path) -> AsyncIterator[Server]:
    """`python -m relay` before a provider at this URL."""
    (port,) = ports.choose((0,))
    key = folder / "key"
    key.write_text("a-key\n")
    told = {
        "WATCHBILL_HOME": str(folder / name),
        "WATCHBILL_STORE_URL": world.store.url,
        "WATCHBILL_ANTHROPIC_URL": f"{provider}/models/anthropic",
        "WATCHBILL_ANTHROPIC_KEY_FILE": str(key),
        "WATCHBILL_RELAY_PORT": str(port),
    }
    async with serving(name, module("relay"), port, folder, told) as pid:
        yield Server(port, pid, token=world.plenty)


def scant(server: Server, world: World) -> Server:
    """The same server, for a caller whose task has little money."""
    return replace(server, token=world.scant)


@asynccontextmanager
async def moves(world: World) -> AsyncIterator[None]:
    """With another process that makes moves of another plan."""
    process = await asyncio.create_subprocess_exec(*leashed(script("relays.py", world.store.url)), stdout=PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"moving\n", "nobody makes moves"
    try:
        yield
        assert process.returncode is None, "whoever made moves has ended"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _move_on(url: str) -> None:
    store = open_store(url)
    mover = Spender("moved", "bench", None, (None,))
    mover.begin(store)
    print("moving", flush=True)
    due = time.monotonic()
    for number in count(2):
        run = mover.run(1, number)
        for event in ("start", "spawn", "finish"):
            due = max(due + EVERY, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
            if event == "start":
                mover.begin_run(store, number=number)
            else:
                mover.go(store, mover.wish("run", run, event))


if __name__ == "__main__":
    _move_on(sys.argv[1])
