"""Plans whose runs are live, and what they ask for: the ledger's tests spend with these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from sqlalchemy import select

from domain.identity import plan_id, run_id, task_id
from domain.lifecycle import Move
from store.database import Store
from store.ledger import Ask, Spent, admit
from store.moves import move
from store.tables import ceilings
from tests.rightful import rightful

AT = datetime(2026, 3, 1, 22, 30, tzinfo=UTC)
LEASE = timedelta(minutes=10)
MODEL = "claude-sonnet-4-6"
CENT = 10_000_000

_numbers = count(1)


@dataclass(frozen=True)
class Spender:
    """A plan with live runs, one a task. Budgets are in cents; None is none."""

    slug: str = "cold-start"
    owner: str = "ada"
    plan_cents: int | None = 1000
    task_cents: tuple[int | None, ...] = (100, 100)

    @property
    def plan(self) -> str:
        return plan_id(self.owner, self.slug)

    def task(self, ordinal: int = 1) -> str:
        return task_id(self.plan, ordinal)

    def run(self, ordinal: int = 1, number: int = 1) -> str:
        return run_id(self.task(ordinal), "author", number)

    def begin(self, store: Store) -> None:
        """Publish, confirm, and begin the first run of every task."""
        plan = {
            "owner": self.owner, "slug": self.slug, "title": "T", "repository": "acme/shop", "merge": "by-hand",
            "budget_nano_usd": nano(self.plan_cents),
        }  # fmt: skip
        self.go(store, self.wish("plan", self.plan, "publish", plan), self.wish("plan", self.plan, "confirm"))
        for ordinal, cents in enumerate(self.task_cents, 1):
            task = {
                "plan_id": self.plan, "owner": self.owner, "ordinal": ordinal, "title": "T", "runtime": "claude",
                "model": MODEL, "budget_nano_usd": nano(cents),
            }  # fmt: skip
            self.go(store, self.wish("task", self.task(ordinal), "confirm", task))
            self.go(store, self.wish("task", self.task(ordinal), "begin"))
            self.begin_run(store, ordinal)

    def begin_run(self, store: Store, ordinal: int = 1, number: int = 1, model: str = MODEL) -> None:
        run = {
            "plan_id": self.plan, "task_id": self.task(ordinal), "role": "author", "number": number,
            "runtime": "claude", "epoch": number, "model": model,
        }  # fmt: skip
        self.go(store, self.wish("run", self.run(ordinal, number), "start", run))

    def wish(self, kind: str, subject: str, event: str, facts: Mapping[str, Any] | None = None) -> Move:
        key = f"{event}:{subject}:{next(_numbers)}"
        return Move(kind, subject, event, key, self.plan, "a test", AT, facts or {}, by=rightful(kind, event))

    def go(self, store: Store, *wishes: Move) -> None:
        with store.write() as connection:
            assert not move(connection, *wishes)[-1].refused

    def ask(self, cents: float = 1, most: float | None = None, *, ordinal: int = 1, **facts: Any) -> Ask:
        """An ask of the task's run for exactly so much, or for that at the least and `most` at the most."""
        usual = {
            "id": f"{next(_numbers):032x}", "owner": self.owner, "plan": self.plan, "task": self.task(ordinal),
            "run": self.run(ordinal), "epoch": 1, "run_cap_nano_usd": 0, "model": MODEL,
            "endpoint": "anthropic.messages", "least": int(cents * CENT),
            "most": int((cents if most is None else most) * CENT), "price": "p1", "at": AT, "lease_until": AT + LEASE,
        }  # fmt: skip
        return Ask(**{**usual, **facts})


def spent(id: str, cents: float | None = 1, at: datetime = AT, request: str = "", **tokens: int) -> Spent:
    return Spent(id, None if cents is None else int(cents * CENT), tokens, "p1", at, "whole", 200, request)


def nano(cents: float | None) -> int | None:
    return None if cents is None else int(cents * CENT)


def asked(store: Store, *asks: Ask) -> list[Any]:
    with store.write() as connection:
        return admit(connection, asks)


def sums(store: Store, ceiling: str) -> tuple[float, float]:
    """What is held and what is spent of a ceiling, in cents."""
    with store.read() as connection:
        row = connection.execute(
            select(ceilings.c.held, ceilings.c.settled).where(ceilings.c.id == ceiling)
        ).one_or_none()
    return (row.held / CENT, row.settled / CENT) if row else (0, 0)
