"""Looking at one plan, wherever it can be seen: at its workflow, else in the store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from domain.errors import NotFound, Unavailable
from domain.view import PlanView
from starter import graph
from starter.nearby import require_temporal
from starter.settings import Settings, load

if TYPE_CHECKING:
    from starter.client import Temporal

_SETTLING = (0.2, 0.4, 0.8, 0.8)
"""Seconds between looks at a workflow that has only just begun to read its facts."""


class Unseen(NotFound):
    """Temporal knows no such plan, and the store, which would know for certain, cannot be read from here."""


class Lookout:
    """Sees one plan. `trouble` says why the last look went to the store; empty when it did not."""

    def __init__(self, settings: Settings, plan_id: str, temporal: Temporal | None = None) -> None:
        self.trouble = ""
        self._settings, self._plan_id = settings, plan_id
        self._temporal = temporal

    @property
    def temporal(self) -> Temporal | None:
        """Where the plan was seen last; None when that was the store."""
        return None if self.trouble else self._temporal

    async def look(self) -> PlanView:
        """The plan as it stands. Raises NotFound when nobody knows it, Unavailable when nobody answers."""
        self.trouble = ""
        try:
            view = await self._at_workflow()
        except NotFound:
            view = None
        except Unavailable as trouble:
            self.trouble = str(trouble)
            view = None
        return view or await self._in_store()

    async def _at_workflow(self) -> PlanView | None:
        if self._temporal is None:
            # What was down when we looked first may be up by now, at an address that nobody knew then.
            if self._settings.down:
                self._settings = load(self._settings.environment)
            require_temporal(self._settings)
            from starter.client import Temporal

            self._temporal = await Temporal.connect(self._settings)
        for pause in _SETTLING:
            view = await self._temporal.view(self._plan_id)
            if view is not None:
                return view
            await asyncio.sleep(pause)
        return None

    async def _in_store(self) -> PlanView:
        try:
            view = await asyncio.to_thread(graph.view_of, self._settings, self._plan_id)
        except (NotFound, Unavailable) as unreadable:
            if self.trouble:
                raise neither(self.trouble, unreadable) from None
            raise Unseen(str(no_such_plan(self._settings, self._plan_id))) from None
        if view is None:
            raise no_such_plan(self._settings, self._plan_id)
        return view


def neither(trouble: str, unreadable: Exception) -> Unavailable:
    """Neither Temporal nor the store can be asked, each for its reason."""
    return Unavailable(f"{trouble}; and the store does not help: {unreadable}")


def no_such_plan(settings: Settings, plan_id: str) -> NotFound:
    slug = plan_id.rpartition("-")[0]
    return NotFound(f"{settings.owner} has no plan {slug} ({plan_id}); publish one with `watchbill submit FILE`")
