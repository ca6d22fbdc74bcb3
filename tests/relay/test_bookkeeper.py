"""The bookkeeper: however many ask at once, in however many processes, no ceiling is ever passed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text

from domain.errors import Unavailable
from relay import bookkeeper
from relay.bookkeeper import Bookkeeper
from store.audit import audit
from store.database import Store
from store.ledger import Held, Short, Void, expire
from store.tables import ceilings, reservations
from tests.store.spending import AT, CENT, LEASE, Spender, spent, sums

ROOT = Path(__file__).parents[2]


@pytest.fixture
def ada(store: Store) -> Spender:
    spender = Spender()
    spender.begin(store)
    return spender


@pytest.fixture
def books(store: Store) -> Iterator[Bookkeeper]:
    opened = Bookkeeper(store, "a-relay")
    opened.start()
    yield opened
    opened.close()


@contextmanager
def relay(store: Store, spender: Spender, count: int, cents: float) -> Iterator[subprocess.Popen[str]]:
    """A process that waits for the word to spend."""
    arguments = [store.url, json.dumps(asdict(spender)), str(count), str(cents)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.relay.spend", *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


@contextmanager
def watched(store: Store, every: float = 0) -> Iterator[list[str]]:
    """Another connection that looks all the time, or every so many seconds; what it saw that must never be seen."""
    seen: list[str] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(every):
            with store.read() as connection:
                past = ceilings.c.held + ceilings.c.settled > ceilings.c.cap
                seen.extend(connection.scalars(select(ceilings.c.id).where(past)))
                held = func.coalesce(func.sum(reservations.c.held), 0)
                due = connection.scalar(select(held).where(reservations.c.state == "held"))
                kept = connection.scalars(select(func.sum(ceilings.c.held)).group_by(ceilings.c.kind)).all()
                seen.extend(f"{each} is kept and {due} is held" for each in kept if each != due)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        over.set()
        looking.join()


@pytest.mark.parametrize("count", [32, 200])
def test_of_many_that_ask_at_once_in_two_processes_just_as_many_are_held_as_there_is_room_for(
    store: Store, count: int
) -> None:
    spender = Spender(plan_cents=35, task_cents=(100, 100))
    spender.begin(store)
    with (
        watched(store) as seen,
        relay(store, spender, count // 2, 10) as one,
        relay(store, spender, count // 2, 10) as two,
    ):
        assert [heard(one), heard(two)] == ["ready", "ready"]
        go(one)
        go(two)
        held = int(heard(one)) + int(heard(two))
    assert held == 3
    assert seen == []
    assert sums(store, f"plan:{spender.plan}") == (30, 0)
    with store.read() as connection:
        assert audit(connection) == ()


def test_what_a_relay_held_that_was_killed_counts_as_spent_and_nothing_twice(store: Store) -> None:
    spender = Spender(plan_cents=None, task_cents=(None,))
    spender.begin(store)
    with watched(store) as seen, relay(store, spender, 0, 0.01) as process:
        assert heard(process) == "ready"
        go(process)
        assert [heard(process) for _ in range(40)] == ["on"] * 40
        process.kill()
        process.wait()
    with store.read() as connection:
        open, asked = connection.execute(
            select(func.count().filter(reservations.c.state == "held"), func.count())
        ).one()
        assert audit(connection) == ()
    with store.write() as connection:
        assert expire(connection, AT + LEASE) == open
    assert asked >= 40
    held, settled = sums(store, f"plan:{spender.plan}")
    assert held == 0
    assert settled == pytest.approx((asked - open) * 0.005 + open * 0.01)
    assert seen == []
    with store.read() as connection:
        assert audit(connection) == ()


async def test_each_is_answered_as_the_ledger_says(store: Store, ada: Spender, books: Bookkeeper) -> None:
    ask = ada.ask(90)
    answers = await asyncio.gather(books.admit(ask), books.admit(ada.ask(90)), books.admit(ada.ask(1, model="another")))
    assert [type(answer) for answer in answers] == [Held, Short, Void]
    with store.read() as connection:
        assert connection.scalar(select(reservations.c.relay)) == "a-relay"


async def test_what_was_told_is_written_when_the_books_are_closed(store: Store, ada: Spender) -> None:
    books = Bookkeeper(store)
    books.start()
    asks = [ada.ask(10) for _ in range(3)]
    await asyncio.gather(*(books.admit(ask) for ask in asks))
    books.renew(asks[2].id, AT + 2 * LEASE)
    books.settle(spent(asks[0].id, 4))
    books.release(asks[1].id)
    books.close()

    assert sums(store, f"task:{ada.task()}") == (10, 4)
    with store.read() as connection:
        lease = select(reservations.c.lease_until).where(reservations.c.id == asks[2].id)
        assert connection.scalar(lease) == AT + 2 * LEASE
    with pytest.raises(Unavailable, match="closing"):
        await books.admit(ada.ask(1))


async def test_what_a_call_came_to_is_entered_with_the_next_ask_in_one_commit(
    store: Store, ada: Spender, books: Bookkeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookkeeper, "LINGER", 3600.0)
    first = ada.ask(10)
    await books.admit(first)
    batches: list[list[str]] = []
    enter = bookkeeper.enter

    def noting(connection: Any, entries: Any, relay: str) -> Any:
        batches.append([type(entry).__name__ for entry in entries])
        return enter(connection, entries, relay)

    monkeypatch.setattr(bookkeeper, "enter", noting)
    books.settle(spent(first.id, 4))
    await books.admit(ada.ask(10))
    assert batches == [["Spent", "Ask"]]
    assert sums(store, f"task:{ada.task()}") == (10, 4)


async def test_what_a_call_came_to_does_not_wait_for_ever_for_the_next(
    store: Store, ada: Spender, books: Bookkeeper
) -> None:
    ask = ada.ask(10)
    await books.admit(ask)
    books.settle(spent(ask.id, 4))
    async with asyncio.timeout(30):
        while sums(store, f"task:{ada.task()}") != (0, 4):
            await asyncio.sleep(0.01)


async def test_who_stops_waiting_holds_nothing(store: Store, ada: Spender) -> None:
    books = Bookkeeper(store)
    waiting = asyncio.create_task(books.admit(ada.ask(10)))
    await asyncio.sleep(0)
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting
    books.start()
    books.close()

    assert sums(store, f"task:{ada.task()}") == (0, 0)


async def test_an_entry_that_cannot_be_true_keeps_no_other_from_being_written(store: Store, ada: Spender) -> None:
    books = Bookkeeper(store)
    good, bad = ada.ask(10), ada.ask(2, 1)
    waiting = [asyncio.create_task(books.admit(ask)) for ask in (bad, good)]
    await asyncio.sleep(0)
    books.settle(spent(good.id, 4, sweetness=1))
    books.settle(spent(good.id, 4))
    books.start()
    with pytest.raises(ValueError, match=bad.id):
        await waiting[0]
    assert await waiting[1] == Held(good.id, 10 * CENT)
    books.close()

    assert sums(store, f"task:{ada.task()}") == (0, 4)


async def test_while_the_store_is_away_asks_are_refused_and_nothing_else_is_forgotten(
    store: Store, ada: Spender, monkeypatch: pytest.MonkeyPatch
) -> None:
    books = Bookkeeper(store)
    books.start()
    ask = ada.ask(10)
    await books.admit(ask)
    away = threading.Event()
    away.set()
    enter = bookkeeper.enter

    def sometimes(*arguments: object) -> object:
        if away.is_set():
            raise Unavailable("the store did not answer; try again")
        return enter(*arguments)

    monkeypatch.setattr(bookkeeper, "enter", sometimes)
    books.settle(spent(ask.id, 4))
    with pytest.raises(Unavailable, match="did not answer"):
        await books.admit(ada.ask(5))
    away.clear()
    books.close()

    assert sums(store, f"task:{ada.task()}") == (0, 4)


async def test_however_many_ask_while_the_store_is_away_all_are_told(
    store: Store, ada: Spender, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> object:
        raise Unavailable("the store did not answer; try again")

    monkeypatch.setattr(bookkeeper, "enter", away)
    monkeypatch.setattr(bookkeeper, "FLUSH", 0)
    books = Bookkeeper(store)
    waiting = [asyncio.create_task(books.admit(ada.ask(1))) for _ in range(450)]
    await asyncio.sleep(0)
    books.start()
    told = await asyncio.gather(*waiting, return_exceptions=True)
    books.close()
    assert {type(each) for each in told} == {Unavailable}


async def test_what_a_call_came_to_is_kept_however_long_the_store_is_away(
    store: Store, ada: Spender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookkeeper, "KEEP_TRYING", 0)
    books = Bookkeeper(store)
    books.start()
    ask = ada.ask(10)
    await books.admit(ask)
    enter, tries = bookkeeper.enter, count()

    def comes_back(*arguments: object) -> object:
        if next(tries) < 3:
            raise Unavailable("the store did not answer; try again")
        return enter(*arguments)

    monkeypatch.setattr(bookkeeper, "enter", comes_back)
    books.settle(spent(ask.id, 4))
    books.close()
    assert sums(store, f"task:{ada.task()}") == (0, 4)


async def test_a_store_that_goes_away_while_entries_are_written_one_by_one_loses_none(
    store: Store, ada: Spender, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = [ada.ask(10) for _ in range(3)]
    books = Bookkeeper(store)
    books.start()
    await asyncio.gather(*(books.admit(ask) for ask in asks))
    books.close()
    enter, tries, rests = bookkeeper.enter, count(), []

    def goes_away(connection: object, entries: list[object], name: str) -> object:
        # The batch is wrong, its first entry is written, and then the store is away for two tries.
        if next(tries) in (2, 3):
            raise Unavailable("the store did not answer; try again")
        return enter(connection, entries, name)

    monkeypatch.setattr(bookkeeper, "enter", goes_away)
    monkeypatch.setattr(Bookkeeper, "_rest", lambda _, seconds: rests.append(seconds))
    books = Bookkeeper(store)
    books.settle(spent(asks[0].id, 1))
    books.settle(spent(asks[1].id, 2, sweetness=1))
    books.settle(spent(asks[1].id, 3))
    books.settle(spent(asks[2].id, 4))
    books.start()
    books.close()
    assert sums(store, f"task:{ada.task()}") == (0, 8)
    assert rests == [0.05, 0.1]


async def test_what_is_told_when_all_is_written_is_said_to_be_lost(
    store: Store, ada: Spender, capsys: pytest.CaptureFixture
) -> None:
    books = Bookkeeper(store)
    books.start()
    books.close()
    books.settle(spent("f" * 32, 4))
    assert "an entry of the ledger is lost" in capsys.readouterr().out


async def test_an_ask_whose_commit_arrived_without_an_answer_is_given_back(
    store: Store, ada: Spender, monkeypatch: pytest.MonkeyPatch
) -> None:
    books = Bookkeeper(store)
    enter = bookkeeper.Bookkeeper._enter
    lost: list[str] = []

    def loses_the_first_answer(self: Bookkeeper, jobs: object) -> object:
        answers = enter(self, jobs)
        if not lost:
            lost.append("an answer")
            raise Unavailable("the connection broke")
        return answers

    monkeypatch.setattr(bookkeeper.Bookkeeper, "_enter", loses_the_first_answer)
    books.start()
    with pytest.raises(Unavailable):
        await books.admit(ada.ask(10))
    books.close()

    assert sums(store, f"task:{ada.task()}") == (0, 0)
    with store.read() as connection:
        assert connection.scalars(select(reservations.c.state)).all() == ["released"]
        assert connection.execute(text("SELECT count(*) FROM usage")).scalar() == 0
