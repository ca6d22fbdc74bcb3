"""Who is asked before money is spent, and told afterwards."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from store.ledger import Ask, Held, Short, Spent, Void


class Bookkeeping(Protocol):
    """Keeps to every ceiling. All but `admit` only take note: they neither wait nor fail."""

    @property
    def at_work(self) -> bool:
        """Whether anybody writes down what is told."""

    async def admit(self, ask: Ask) -> Held | Short | Void:
        """Set aside between `least` and `most`, as every ceiling allows, if the run's word still counts.

        Whoever stops waiting holds nothing.
        """

    def settle(self, spent: Spent) -> None: ...

    def release(self, id: str) -> None:
        """Nothing was spent."""

    def renew(self, id: str, until: datetime) -> None:
        """It is still under way."""
