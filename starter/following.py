"""Following a plan from a cursor: what is new, missing, waits or is tried again, and the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from domain.errors import Unavailable
from domain.view import Happening, PlanView
from starter.hints import Waiting, waiting
from starter.retrying import Retry
from starter.until import Until

FIRST_PAUSE, LONGEST_PAUSE = 0.3, 2.0
"""Seconds between two looks: the first as long as something happens, the last when nothing does."""


QUIET = 8
"""After so many looks without news, and then again, it is asked what is tried again: about every 15 seconds."""


@dataclass(frozen=True)
class Missing:
    """The receipts from `first` to `last` happened before what the plan's story still tells."""

    first: int
    last: int


@dataclass(frozen=True)
class Trouble:
    """Why the plan cannot be seen for now, or not where it is led; empty when it can be again."""

    message: str


@dataclass(frozen=True)
class Over:
    """The last look: the plan has ended, or waits for a person."""

    view: PlanView


News = Happening | Missing | Trouble | Waiting | Retry | Over


async def nothing(_view: PlanView) -> Sequence[Retry]:
    return ()


async def follow(
    look: Callable[[], Awaitable[PlanView]],
    since: int,
    until: Until,
    pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    retried: Callable[[PlanView], Awaitable[Sequence[Retry]]] = nothing,
    aside: Callable[[], str] = lambda: "",
) -> AsyncIterator[News]:
    """What is new since the receipt `since`, until the plan is over. The first look may raise.

    Later on, a Temporal that is away is waited for. `aside` says of the last look why it was not at the plan's
    workflow, where that is so: what the store says is told then, and why nothing moves. Nothing is told twice: a
    look that lags behind an earlier one (a workflow's after the store's) has no news; and a step that is tried
    again is told once, however often it fails in the same way.
    """
    view: PlanView | None = None
    cursor, asked, wait, away = since, frozenset[Waiting](), FIRST_PAUSE, ""
    quiet, known = 0, frozenset[tuple[int, str, str]]()
    while True:
        try:
            view = await look()
        except Unavailable as error:
            if view is None:
                raise
            if not away:
                yield Trouble(str(error))
            away = str(error)
            await pause(LONGEST_PAUSE)
            continue
        if away and not aside():
            yield Trouble("")
            away = ""
        news = _since(view, cursor)
        waits = waiting(view)
        for item in (*news, *(each for each in waits if each not in asked)):
            yield item
        cursor, asked = max(cursor, view.seq), frozenset(waits)
        if view.ended or (until is Until.PERSON and waits):
            yield Over(view)
            return
        if aside() != away:
            away = aside()
            yield Trouble(away)
        quiet = 0 if news else quiet + 1
        if quiet and quiet % QUIET == 0:
            failing = {(each.task, each.step, each.failure): each for each in await retried(view)}
            for key, each in failing.items():
                if key not in known:
                    yield each
            known = frozenset(failing)
        wait = FIRST_PAUSE if news else min(wait * 1.5, LONGEST_PAUSE)
        await pause(wait)


def _since(view: PlanView, cursor: int) -> list[Happening | Missing]:
    new: list[Happening | Missing] = [line for line in view.story if line.seq > cursor]
    if view.story_starts_at > cursor + 1:
        new.insert(0, Missing(cursor + 1, view.story_starts_at - 1))
    return new
