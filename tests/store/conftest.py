"""A small plan to make moves with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from domain.identity import plan_id, task_id
from domain.lifecycle import Move, Moved
from store.database import Store
from store.moves import move
from store.tables import receipts
from tests.rightful import rightful

AT = datetime(2026, 3, 1, 22, 30, tzinfo=UTC)


class Wishes:
    """Moves of one plan with two tasks, as its callers would word them."""

    at = AT
    owner = "ada"
    slug = "cold-start"
    plan = plan_id(owner, slug)
    task = task_id(plan, 1)
    other_task = task_id(plan, 2)

    def make(self, kind: str, subject: str, event: str, key: str = "", facts: Mapping[str, Any] | None = None) -> Move:
        return Move(
            kind,
            subject,
            event,
            key or f"{event}:{subject}",
            self.plan,
            "a test",
            AT,
            facts or {},
            by=rightful(kind, event),
        )

    def publish(self) -> tuple[Move, ...]:
        plan = {"owner": self.owner, "slug": self.slug, "title": "Cold start", "repository": "acme/shop"}
        revision = {"plan_id": self.plan, "number": 1, "digest": "d1", "text": "# Cold start"}
        return (
            self.make("plan", self.plan, "publish", facts={**plan, "merge": "by-hand", "checks": ["make test"]}),
            self.make("revision", f"{self.plan}-r1", "propose", facts=revision),
        )

    def confirm(self) -> tuple[Move, ...]:
        return (
            self.make("plan", self.plan, "confirm"),
            self.make("revision", f"{self.plan}-r1", "confirm"),
            *(self.confirm_task(task, ordinal) for ordinal, task in enumerate((self.task, self.other_task), 1)),
        )

    def confirm_task(self, task: str, ordinal: int) -> Move:
        facts = {"plan_id": self.plan, "owner": self.owner, "ordinal": ordinal, "title": f"Task {ordinal}"}
        return self.make("task", task, "confirm", facts={**facts, "runtime": "shell"})

    def run(self, number: int = 1, *, role: str = "author", epoch: int = 1, round: int = 1) -> Move:
        facts = {
            "plan_id": self.plan,
            "task_id": self.task,
            "role": role,
            "number": number,
            "runtime": "shell",
        }
        subject = f"{self.task}-{role}-{number}"
        return self.make("run", subject, "start", facts={**facts, "epoch": epoch, "round": round})

    def ask(self, task: str = "") -> Move:
        subject = f"{task or self.task}-q1"
        facts = {
            "plan_id": self.plan,
            "task_id": task or self.task,
            "kind": "no_progress",
            "text": "What now?",
        }
        return self.make("question", subject, "ask", facts={**facts, "resume_at": "working"})

    def go(self, store: Store, *moves: Move, incarnation: int | None = None) -> tuple[Moved, ...]:
        with store.write() as connection:
            return move(connection, *moves, incarnation=incarnation)


@pytest.fixture
def wishes() -> Wishes:
    return Wishes()


@pytest.fixture
def confirmed(store: Store, wishes: Wishes) -> Wishes:
    """`store` holds a confirmed plan with two pending tasks."""
    wishes.go(store, *wishes.publish())
    wishes.go(store, *wishes.confirm())
    return wishes


def count_receipts(connection: Connection, chain: str) -> int:
    return connection.scalar(select(func.count()).select_from(receipts).where(receipts.c.chain == chain)) or 0
