"""How a call waits for its money: as long as what is short is held for others, and its caller is there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from relay.arrival import Arrival
from relay.asking import LEASE
from relay.bookkeeping import Bookkeeping
from store.ledger import Ask, Held, Short, Void

SOONEST, LATEST = 0.1, 1.0
"""Seconds between two asks for the same call: the first is soon, and each later one less so."""


class Gone(Exception):
    """The caller has hung up, and nothing was asked for it yet."""


async def admitted(books: Bookkeeping, ask: Ask, patience: float) -> Held | Short | Void:
    """The answer of the books, which are asked again for `patience` seconds while money may come back.

    Whoever waits holds nothing meanwhile, and whoever stops waiting neither.
    """
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + patience, SOONEST
    while True:
        answer = await books.admit(ask)
        left = until - loop.time()
        if not isinstance(answer, Short) or not answer.passing or left <= 0:
            return answer
        await asyncio.sleep(min(pause, left))
        pause = min(LATEST, pause * 1.5)
        at = datetime.now(UTC)
        ask = replace(ask, at=at, lease_until=at + LEASE)


@contextmanager
def unless_gone(arrival: Arrival) -> Iterator[None]:
    """Raises Gone, in place of whatever is awaited within, as soon as the caller hangs up."""
    task, leaving = asyncio.current_task(), arrival.leaving()
    assert task is not None
    gone = False

    def leave(_: object) -> None:
        nonlocal gone
        gone = True
        task.cancel()

    leaving.add_done_callback(leave)
    try:
        yield
    except asyncio.CancelledError as error:
        if not gone or task.uncancel() > 0:
            raise
        raise Gone from error
    finally:
        leaving.remove_done_callback(leave)
