"""Showing where plans stand, and telling what happens in one."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from types import FrameType

from domain.view import Happening, PlanView
from starter import listing
from starter import settings as settings_
from starter.cursors import Cursor
from starter.exits import Exit
from starter.following import Missing, News, Over, Trouble, follow
from starter.hints import Waiting, all_merged, waiting
from starter.looking import Lookout
from starter.names import plan_named
from starter.output import in_full, note, one_line, say, say_json
from starter.retrying import Retry, retries
from starter.settings import Settings
from starter.until import Until


def status(name: str, *, wait: bool, json: bool) -> Exit:
    """Show one plan; after its end, or once a person is needed, where `wait` says so."""
    settings = settings_.load()
    return asyncio.run(_status(settings, plan_named(name, settings.owner), wait, json))


def list_plans(*, json: bool) -> Exit:
    """List the owner's plans, the newest first."""
    return asyncio.run(_list(settings_.load(), json))


async def _list(settings: Settings, json: bool) -> Exit:
    listed = await listing.list_plans(settings)
    _note_trouble(listed.trouble)
    if json:
        say_json(listed.plans)
    elif listed.plans:
        from starter.tables import show_plans

        show_plans(listed.plans)
    else:
        say(f"{settings.owner} has no plans {listed.where}; publish one with `watchbill submit FILE`")
    return Exit.DONE


async def _status(settings: Settings, plan_id: str, wait: bool, json: bool) -> Exit:
    lookout = Lookout(settings, plan_id)
    view = await _over(lookout) if wait else await lookout.look()
    if not wait:
        _note_trouble(lookout.trouble)
    show(view, json, await _retries(lookout, view))
    return exit_of(view) if wait else Exit.DONE


def _note_trouble(trouble: str) -> None:
    if trouble:
        note(f"{trouble}. This is what the store says:")


async def _over(lookout: Lookout) -> PlanView:
    async for news in follow(lookout.look, 0, Until.PERSON, aside=lambda: lookout.trouble):
        if isinstance(news, Trouble):
            tell_person(news)
        elif isinstance(news, Over):
            return news.view
    raise AssertionError("following a plan ends with its end")


async def _retries(lookout: Lookout, view: PlanView) -> Sequence[Retry]:
    if lookout.temporal is None:
        return ()
    return await retries(lookout.temporal, view)


def show(view: PlanView, json: bool, retrying: Sequence[Retry] = ()) -> None:
    """A plan, for whoever asked, with what is tried again in it."""
    if json:
        derived = {"needs_person": view.needs_person, "ended": view.ended, "waiting": waiting(view)}
        say_json({**asdict(view), **derived, "retrying": retrying})
    else:
        from starter.tables import show_plan

        show_plan(view, retrying)


def watch(name: str, since: int | None, until: Until, *, json: bool) -> Exit:
    """Tell the news of a plan after a receipt, or from where it was last watched."""
    settings = settings_.load()
    plan_id = plan_named(name, settings.owner)
    cursor = Cursor(settings.home, plan_id)
    start = cursor.read() if since is None else since
    return asyncio.run(_watch(Lookout(settings, plan_id), cursor, start, until, json))


class _CtrlC:
    """Ends the process at once, but not between telling something and keeping that it was told.

    Watching changes nothing, so it may end anywhere else. As a cancellation, Ctrl-C can get lost on its
    way through an answer that comes at the same moment.
    """

    def __init__(self) -> None:
        self._busy = self._came = False
        signal.signal(signal.SIGINT, self._come)

    def _come(self, _signal: int, _frame: FrameType | None) -> None:
        self._came = True
        if not self._busy:
            os._exit(Exit.INTERRUPTED)

    def __enter__(self) -> None:
        self._busy = True

    def __exit__(self, *_: object) -> None:
        self._busy = False
        if self._came:
            os._exit(Exit.INTERRUPTED)


async def _watch(lookout: Lookout, cursor: Cursor, since: int, until: Until, json: bool) -> Exit:
    """Tell the news of a plan as they come, and keep the cursor. The exit code says how it ended."""
    ctrl_c = _CtrlC()
    retried = partial(_retries, lookout)
    async for news in follow(lookout.look, since, until, retried=retried, aside=lambda: lookout.trouble):
        with ctrl_c:
            _tell_machine(news) if json else tell_person(news)
            if isinstance(news, Happening):
                cursor.write(news.seq)
            elif isinstance(news, Over):
                cursor.write(max(news.view.seq, cursor.read()))
        if isinstance(news, Over):
            return exit_of(news.view)
    raise AssertionError("following a plan ends with its end")


def tell_person(news: News) -> None:
    match news:
        case Happening():
            say(f"{news.seq:5}  {news.at}  {one_line(news.text)}")
        case Missing():
            which = f"receipts {news.first} to {news.last} are" if news.first < news.last else f"receipt {news.last} is"
            note(f"{which} not told here; `watchbill receipts` has them all")
        case Waiting():
            whom = "the plan" if news.task is None else f"task {news.task}"
            named = f" ({news.question_id})" if news.question_id else ""
            for line in in_full(f"       {whom} waits for a person{named}: {news.text}", indent=" " * 9):
                say(line)
            for command in news.commands:
                say(f"           {command}")
        case Retry():
            say(f"       task {news.task} waits: {news.text}")
        case Trouble():
            note(f"{news.message}; waiting for it" if news.message else "it answers again")
        case Over():
            show(news.view, json=False)


def _tell_machine(news: News) -> None:
    if isinstance(news, Over):
        say_json(
            {
                "kind": "over",
                "state": news.view.state,
                "tasks": news.view.tasks,
                "waiting": waiting(news.view),
            }
        )
    else:
        say_json({"kind": type(news).__name__.lower(), **vars(news)})


def exit_of(view: PlanView) -> Exit:
    return Exit.DONE if view.ended and all_merged(view) else Exit.UNFINISHED
