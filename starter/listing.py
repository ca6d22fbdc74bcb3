"""Listing an owner's plans, wherever they can be seen: in Temporal, else in the store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from domain.errors import NotFound, Unavailable
from starter import graph
from starter.lines import PlanLine
from starter.looking import neither
from starter.nearby import require_temporal
from starter.settings import Settings


@dataclass(frozen=True)
class Listed:
    """`where` they were seen, in words; `trouble` says why that is the store, empty when it is Temporal."""

    plans: Sequence[PlanLine]
    where: str
    trouble: str = ""


async def list_plans(settings: Settings) -> Listed:
    """The owner's plans, the newest first. Raises Unavailable when neither can be asked.

    A Temporal that knows of none may be a new one, so the store is asked as well, if it can be read from here.
    """
    trouble = where = ""
    try:
        require_temporal(settings)
        from starter.client import Temporal

        temporal = await Temporal.connect(settings)
        where = f"at {temporal.address}"
        if plans := await temporal.plans(settings.owner):
            return Listed(plans, where)
    except Unavailable as error:
        trouble = str(error)
    try:
        kept = await asyncio.to_thread(graph.plans_of, settings)
    except (NotFound, Unavailable) as unreadable:
        if trouble:
            raise neither(trouble, unreadable) from None
        return Listed((), where)
    return Listed(kept, "in the store" if kept or trouble else where, trouble)
