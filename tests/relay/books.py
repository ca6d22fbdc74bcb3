"""A bookkeeper in memory, of the form of the real one: one purse, kept to exactly."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from domain.ledger import CeilingKind
from store.ledger import Ask, Held, Short, Spent, Void


@dataclass
class Purse:
    """`cap` nano-dollars for everything. `held` by call; what is over is in `spent` or `released`."""

    cap: int = 10**15
    ceiling: CeilingKind = CeilingKind.TASK
    void: str = ""
    asks: list[Ask] = field(default_factory=list)
    held: dict[str, int] = field(default_factory=dict)
    spent: list[Spent] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    renewed: list[str] = field(default_factory=list)
    total: int = 0
    at_work: bool = True
    slow: bool = False

    @property
    def left(self) -> int:
        return self.cap - self.total - sum(self.held.values())

    async def admit(self, ask: Ask) -> Held | Short | Void:
        self.asks.append(ask)
        try:
            while self.slow:
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.release(ask.id)
            raise
        if self.void:
            return Void(self.void)
        if ask.least > self.left:
            return Short(self.ceiling, ask.task, self.cap, self.left, passing=ask.least <= self.cap - self.total)
        self.held[ask.id] = min(ask.most, self.left)
        return Held(ask.id, self.held[ask.id])

    def settle(self, spent: Spent) -> None:
        reserved = self.held.pop(spent.id)
        self.total += reserved if spent.nano_usd is None else spent.nano_usd
        self.spent.append(spent)

    def release(self, id: str) -> None:
        """Of what is not held nothing is given back."""
        self.held.pop(id, None)
        self.released.append(id)

    def renew(self, id: str, until: datetime) -> None:
        assert id in self.held
        self.renewed.append(id)
