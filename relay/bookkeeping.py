"""Who is asked before money is spent, and told afterwards."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from sqlalchemy import Connection

from domain.errors import Unauthorized
from relay.graph import Graph
from store.ledger import Ask, Held, Short, Spent, Void
from store.words import Speaker, why_void


class Bookkeeping(Protocol):
    """Keeps to every ceiling. All but `admit` only take note: they neither wait nor fail."""

    async def admit(self, ask: Ask) -> Held | Short | Void:
        """Set aside between `least` and `most`, as every ceiling allows, if the run's word still counts."""

    def settle(self, spent: Spent) -> None: ...

    def release(self, id: str) -> None:
        """Nothing was spent."""

    def renew(self, id: str, until: datetime) -> None:
        """It is still under way."""


class Unkept:
    """Sets aside whatever is asked for, for a run that is live: a relay without a ledger knows no ceilings."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def admit(self, ask: Ask) -> Held | Short | Void:
        # The ledger compares the rest; who the run is stands in its capability.
        def void(connection: Connection) -> str:
            role = ask.run.removeprefix(f"{ask.task}-").rpartition("-")[0]
            try:
                return why_void(connection, Speaker(ask.owner, ask.plan, ask.task, ask.run, ask.epoch, role))
            except Unauthorized as error:
                return str(error)

        why = await self._graph.read(void)
        return Void(why) if why else Held(ask.id, ask.most)

    def settle(self, spent: Spent) -> None: ...

    def release(self, id: str) -> None: ...

    def renew(self, id: str, until: datetime) -> None: ...
