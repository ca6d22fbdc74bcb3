"""Following a plan from a cursor: what is new, what is missing, what waits, and the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from domain.errors import Unavailable
from domain.view import Happening, PlanView
from starter.hints import Waiting, waiting
from starter.until import Until

FIRST_PAUSE, LONGEST_PAUSE = 0.3, 2.0
"""Seconds between two looks: the first as long as something happens, the last when nothing does."""


@dataclass(frozen=True)
class Missing:
    """The receipts from `first` to `last` happened before what the plan's story still tells."""

    first: int
    last: int


@dataclass(frozen=True)
class Trouble:
    """The plan cannot be seen for now; empty when it can be seen again."""

    message: str


@dataclass(frozen=True)
class Over:
    """The last look: the plan has ended, or waits for a person."""

    view: PlanView


News = Happening | Missing | Trouble | Waiting | Over


async def follow(
    look: Callable[[], Awaitable[PlanView]],
    since: int,
    until: Until,
    pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> AsyncIterator[News]:
    """What is new since the receipt `since`, until the plan is over. The first look may raise.

    Later on, a Temporal that is away is waited for. Nothing is told twice: a look that lags behind an
    earlier one (a workflow's after the store's) has no news.
    """
    view: PlanView | None = None
    cursor, asked, wait, away = since, frozenset[Waiting](), FIRST_PAUSE, False
    while True:
        try:
            view = await look()
        except Unavailable as error:
            if view is None:
                raise
            if not away:
                yield Trouble(str(error))
            away = True
            await pause(LONGEST_PAUSE)
            continue
        if away:
            yield Trouble("")
            away = False
        news = _since(view, cursor)
        waits = waiting(view)
        for item in (*news, *(each for each in waits if each not in asked)):
            yield item
        cursor, asked = max(cursor, view.seq), frozenset(waits)
        if view.ended or (until is Until.PERSON and waits):
            yield Over(view)
            return
        wait = FIRST_PAUSE if news else min(wait * 1.5, LONGEST_PAUSE)
        await pause(wait)


def _since(view: PlanView, cursor: int) -> list[Happening | Missing]:
    new: list[Happening | Missing] = [line for line in view.story if line.seq > cursor]
    if view.story_starts_at > cursor + 1:
        new.insert(0, Missing(cursor + 1, view.story_starts_at - 1))
    return new
