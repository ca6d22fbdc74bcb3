"""An owner's days: what runs may cost in each, shown and set."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from domain.budget import format_usd
from domain.metering import not_counted
from domain.raising import SetDay
from starter import graph
from starter import settings as settings_
from starter.exits import Exit
from starter.output import say, say_json
from starter.replies import tell, who


def set_day(nano_usd: int | None, zone: str, *, json: bool) -> Exit:
    """Hand the owner's word over; None and empty leave that as it is."""
    from starter.client import Temporal

    settings = settings_.load()

    async def hand_over() -> Exit:
        temporal = await Temporal.connect(settings)
        return tell("budget", await temporal.set_day(SetDay(settings.owner, nano_usd, zone, who())), json)

    return asyncio.run(hand_over())


def show(*, json: bool) -> Exit:
    """The owner's day as it stands in the graph."""
    from starter.costs import with_units
    from store.costs import day_costs

    settings = settings_.load()
    with graph.opened(settings) as store, store.read() as connection:
        day, zone, money = day_costs(connection, settings.owner, datetime.now(UTC))
    if json:
        say_json({"owner": settings.owner, "day": day, "zone": zone, **with_units(money)})
        return Exit.DONE
    say(f"{settings.owner}: {format_usd(money.cap or 0)} a day, in {zone}")
    spent = "" if money.known is None else f"{format_usd(money.known)} spent, "
    said = f"{day}: {spent}{format_usd(money.held)} held, {format_usd(money.left or 0)} left"
    say("; ".join(filter(None, (said, not_counted(money.unmetered_runs)))))
    return Exit.DONE
