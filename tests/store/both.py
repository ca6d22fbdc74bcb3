"""One plan of its own in the stores of both engines: what is done, is done in each, and answered alike."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from sqlalchemy import select, update

from domain.identity import plan_id
from domain.lifecycle import Move, Moved
from domain.run import RunEvent
from domain.task import TaskEvent
from store import tables
from store.database import Store
from store.evidence import Observation, record
from store.moves import move
from tests.rightful import rightful

START = datetime(2026, 3, 1, tzinfo=UTC)
_numbers = count(1)


class Both:
    """`said` are the moves that were wished for, `lost` what content was before it was overwritten, by its digest.

    `void` are the digests of what was lost before anybody looked at it.
    """

    def __init__(self, *stores: Store) -> None:
        super().__init__()
        self.stores = stores
        self.slug = f"plan-{next(_numbers)}"
        self.plan = plan_id("ada", self.slug)
        self.said: list[tuple[Move, ...]] = []
        self.epochs = count(1)
        self.lost: dict[str, bytes] = {}
        self.void: set[str] = set()

    def task(self, ordinal: int) -> str:
        return f"{self.plan}-{ordinal}"

    def begin(self, ordinal: int, role: str, *, sha: str = "", command: str = "", **facts: str) -> tuple[str, int]:
        """A run of this role begins, with an epoch of its own."""
        self.go(self.task_wish(ordinal, TaskEvent.CONFIRM, {}))
        epoch = next(self.epochs)
        run = f"{self.task(ordinal)}-{role}-{epoch}"
        told = {
            "plan_id": self.plan, "task_id": self.task(ordinal), "role": role, "number": epoch, "epoch": epoch,
            "runtime": "check", "start_sha": sha, "command": command, **facts,
        }  # fmt: skip
        self.go(self.wish("run", run, RunEvent.START, told))
        return run, epoch

    def see(self, content: str, **said: Any) -> str:
        """Somebody records evidence on both engines; the digest of what it says."""
        name = ""
        for store in self.stores:
            with store.write() as connection:
                seen = Observation(plan_id=self.plan, content=f"{self.plan}: {content}".encode(), **said)
                if connection.scalar(select(tables.tasks.c.id).where(tables.tasks.c.id == seen.task_id)):
                    wish = record(connection, seen, "a test", START)
                    move(connection, wish)
                    name = str(wish.facts["digest"])
        return name

    def lose(self, name: str) -> None:
        """What is kept under this name is something else from now on."""
        self.overwrite(name, b"something else")

    def find_again(self) -> None:
        for name, content in self.lost.items():
            self.overwrite(name, content)

    def overwrite(self, name: str, content: bytes) -> None:
        kept = tables.artifacts.c.digest == name
        for store in self.stores:
            with store.write() as connection:
                self.lost.setdefault(name, bytes(connection.scalar(select(tables.artifacts.c.content).where(kept))))
                connection.execute(update(tables.artifacts).where(kept).values(content=content))

    def task_wish(self, ordinal: int, event: TaskEvent, facts: Mapping[str, Any], cause: str = "a test") -> Move:
        born = {"plan_id": self.plan, "owner": "ada", "ordinal": ordinal, "title": "T", "runtime": "shell"}
        task = f"{self.plan}-{ordinal}"
        return self.wish("task", task, event, {**born, **facts} if event is TaskEvent.CONFIRM else facts, cause)

    def wish(
        self, kind: str, subject: str, event: str, facts: Mapping[str, Any] | None = None, cause: str = "a test"
    ) -> Move:
        at = START + timedelta(seconds=len(self.said))
        key = f"{event}:{subject}:{len(self.said)}:{next(_numbers)}"
        return Move(kind, subject, event, key, self.plan, cause, at, facts or {}, by=rightful(kind, event))

    def go(self, *wishes: Move) -> tuple[Moved, ...]:
        """Make the moves on every engine: all answer alike."""
        self.said.append(wishes)
        answers = []
        for store in self.stores:
            with store.write() as connection:
                answers.append(move(connection, *wishes))
        assert answers[0] == answers[1]
        return answers[0]

    def was_made(self, key: str) -> bool:
        made = select(tables.receipts.c.seq).where(
            tables.receipts.c.chain == self.plan,
            tables.receipts.c.key == key,
            tables.receipts.c.refused == "",
        )
        with self.stores[0].read() as connection:
            return connection.scalar(made) is not None

    def everything(self, store: Store) -> list[Any]:
        """The plan's rows, receipts and head as they are kept."""
        homes = {
            tables.plans: tables.plans.c.id,
            tables.tasks: tables.tasks.c.plan_id,
            tables.questions: tables.questions.c.plan_id,
            tables.reviews: tables.reviews.c.plan_id,
            tables.runs: tables.runs.c.plan_id,
            tables.evidence: tables.evidence.c.plan_id,
            tables.receipts: tables.receipts.c.chain,
            tables.chains: tables.chains.c.chain,
        }
        with store.read() as connection:
            return [
                [
                    tuple(row)
                    for row in connection.execute(select(table).where(home == self.plan).order_by(*table.primary_key))
                ]
                for table, home in homes.items()
            ]
