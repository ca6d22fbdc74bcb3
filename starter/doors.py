"""The doors of this machine, and the handing over of the work graph from one Temporal to the next."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from domain.errors import Superseded, Unavailable
from domain.wording import counted
from starter import graph
from starter import settings as settings_
from starter.copies import Copies
from starter.exits import Exit
from starter.local import addresses
from starter.local.service import module
from starter.output import note, say
from starter.settings import Settings


def up(sources: Mapping[str, Path]) -> Exit:
    """Run the installation until a signal; with a stand-in GitHub where sources for it are given, or were once.

    Raises AlreadyUp, whatever else is amiss, where it is up.
    """
    settings = settings_.load()
    addresses.refuse_second(settings.home)
    copies = Copies(settings.home)
    if not sources and copies.remembered():
        _tell_remembered(settings, copies.remembered())
    return asyncio.run(_up(settings, copies, copies.of(sources) if sources else copies.remembered()))


def _tell_remembered(settings: Settings, names: Iterable[str]) -> None:
    from starter.installing import credentials

    say(f"This home was begun with a stand-in GitHub, which starts again as it was, with {', '.join(names)}.")
    if credentials(settings):
        note(
            "The credentials for GitHub in the settings are not used here; for GitHub itself take another home: "
            "WATCHBILL_HOME=PATH watchbill up"
        )


async def _up(settings: Settings, copies: Copies, given: Mapping[str, Path]) -> Exit:
    from starter.installing import installation
    from starter.local.installation import Local

    async with Local(installation(settings, given), note) as local:
        if given:
            copies.remember(given)
        found = local.addresses
        say(f"Temporal    {found.temporal}   its UI {found.ui}")
        say(f"webhooks    {found.webhooks}/webhooks/github")
        say(f"relay       {found.relay}")
        if found.github:
            say(f"stand-in    {found.github}")
        say(f"home        {settings.home}")
        say("Ctrl-C ends it; plans go on from where they stood when it is up again.")
        await local.wait()
    _tell_runs(settings.home)
    return Exit.DONE


def _tell_runs(home: Path) -> None:
    """Runs outlive their worker, which is what whoever presses Ctrl-C may not expect."""
    from runtimes.folder import live_in

    if live := live_in(home / "runs"):
        note(
            f"{counted(len(live), 'run')} still at work: the next `watchbill up` goes on with what is, and one that "
            "nobody looks after ends by itself within minutes. To end a task for good, cancel it while this is up."
        )


def become(door: str) -> NoReturn:
    """Go on as the door's process, told what was found out here.

    Unavailable when the home's Temporal is down and no other is named.
    """
    settings = settings_.load()
    if settings.down:
        raise Unavailable(settings.down)
    sys.stdout.flush()
    command = module(door)
    os.execve(command[0], command, settings.door_environment)  # noqa: S606 - to become it is the point


def migrate() -> Exit:
    """Make the store's tables those of this version. Unavailable when it does not answer."""
    from store.database import migrate as bring_up_to_date

    settings = settings_.load()
    bring_up_to_date(settings.store_url)
    say("the store has this version's tables")
    return Exit.DONE


def rebuild() -> Exit:
    """Make the Temporal at hand the graph's next incarnation. Superseded when it is an earlier one."""
    return asyncio.run(_rebuild(settings_.load()))


async def _rebuild(settings: Settings) -> Exit:
    from starter.client import Temporal

    temporal = await Temporal.connect(settings)
    namespace = await temporal.namespace_id()
    with graph.opened(settings) as store, store.write() as connection:
        from store.workers import incarnation_of, newest_incarnation

        newest = newest_incarnation(connection)
        number = incarnation_of(connection, namespace, datetime.now(UTC))
    if newest is not None and number < newest.number:
        raise Superseded(f"another Temporal, number {newest.number}, has taken over from this one, number {number}")
    if newest is not None and newest.temporal_id == namespace:
        say(f"the graph belongs to this Temporal already, as number {number}")
    else:
        say(f"the graph belongs to the Temporal at {temporal.address} now, as number {number}")
        say("Start its worker: watchbill up, or watchbill worker")
    return Exit.DONE
