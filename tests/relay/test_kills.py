"""Whatever is killed in the middle of calls, each of them counts once, and never for too little."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import sqlalchemy as sa

from activities.facts import Facts
from domain.heartbeat import HeartbeatPolicy
from signing.keys import Signer
from store.audit import audit
from store.database import Store, migrate, open_store
from store.runs import SKEW
from store.tables import ceilings, reservations, usage
from tests.activities.conftest import KEEPER
from tests.conftest import a_postgres
from tests.relay.conftest import ASKED, CHAT, MESSAGES, Provider, Relay, opened
from tests.relay.moments import STREAM, provider
from tests.relay.processes import door, told_of
from tests.relay.test_storm import COST, sums


class Callers:
    """Calls at a door, each of which is let come as far as its moment."""

    def __init__(self, session: aiohttp.ClientSession, relay: Relay, url: str = "") -> None:
        self._session, self._relay, self._url = session, relay, url or relay.url

    def call(self, moment: str, path: str = MESSAGES) -> Any:
        body = {**ASKED, "stream": True, "messages": [{"role": "user", "content": moment}]}
        return self._session.post(f"{self._url}{path}", json=body, headers=self._relay.headers())

    async def ask(self, moment: str, path: str = MESSAGES) -> tuple[int, bytes]:
        async with self.call(moment, path) as answer:
            return answer.status, await answer.read()

    async def go(self, provider: str) -> None:
        """Those that wait at the provider go on."""
        async with self._session.post(f"{provider}/go") as answer:
            assert answer.status == 200


@pytest.fixture
async def session() -> Any:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as opened_:
        yield opened_


async def until(true: Callable[[], object]) -> None:
    while not true():
        await asyncio.sleep(0.02)


def states(store: Store) -> list[str]:
    with store.read() as connection:
        return list(connection.scalars(sa.select(reservations.c.state).order_by(reservations.c.state)))


def settled_at(store: Store) -> list[tuple[bool, int]]:
    """What the calls of the usage there is came to, and whether the provider told so."""
    with store.read() as connection:
        query = sa.select(usage.c.measured, usage.c.nano_usd).order_by(usage.c.measured, usage.c.nano_usd)
        return [(row.measured, row.nano_usd) for row in connection.execute(query)]


def assert_sound(store: Store) -> None:
    with store.read() as connection:
        assert audit(connection) == ()


@contextmanager
def deaf() -> Iterator[str]:
    """The address of somebody who lets nobody in: whoever reaches out for it waits."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(2):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


async def test_whatever_a_killed_relay_was_at_is_spent_whole_after_its_lease_and_what_was_settled_stays(
    store: Store, signer: Signer, tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    """Killed before a byte was sent, once asked, after the headers, within streams, and before the end is settled."""
    with (
        provider() as (url, process),
        deaf() as nowhere,
        contextmanager(opened)(store, signer, Provider(), url) as relay,
    ):
        told = {**told_of(store, "", tmp_path), "WATCHBILL_ANTHROPIC_URL": url, "WATCHBILL_OPENAI_URL": nowhere}
        with door(tmp_path / "home", **told) as (port, door_):
            callers = Callers(session, relay, f"http://127.0.0.1:{port}")
            assert await callers.ask("whole") == (200, STREAM)
            await until(lambda: states(store) == ["settled"])
            async with AsyncExitStack() as stack:
                hanging = [asyncio.create_task(callers.ask(*each)) for each in (("asked",), ("unreached", CHAT))]
                for moment in ("headers", "begun", "told", "waits"):
                    answer = await stack.enter_async_context(callers.call(moment))
                    if moment != "headers":
                        assert await answer.content.readany()
                await until(lambda: len(states(store)) == 7)
                heard = [process.stdout.readline().strip() for _ in range(6)] if process.stdout else []
                assert sorted(heard) == ["asked", "begun", "headers", "told", "waits", "whole"]
                with store.write() as connection:
                    # Nobody else writes meanwhile, on either engine.
                    connection.execute(sa.update(ceilings).values(held=ceilings.c.held))
                    await callers.go(url)
                    # The caller has all of its answer, and what that came to waits to be written.
                    assert STREAM.endswith(await answer.read())
                    door_.kill()
                    door_.wait()
                for call in hanging:
                    with pytest.raises(aiohttp.ClientError):
                        await call
        facts = Facts(store, KEEPER, HeartbeatPolicy(), 1, signer)
        ((held, _),) = sums(store)
        assert facts.expire_reservations(None) == 0
        assert sums(store) == {(held, COST)}
        with store.write() as connection:
            lapsed = datetime.now(UTC) - SKEW - timedelta(seconds=1)
            connection.execute(sa.update(reservations).values(lease_until=lapsed))
        assert facts.expire_reservations(None) == 6
        assert facts.expire_reservations(None) == 0
    assert states(store) == ["expired"] * 6 + ["settled"]
    assert sums(store) == {(0, COST + held)}
    assert settled_at(store) == [(True, COST)]
    assert_sound(store)


async def test_a_provider_that_is_killed_is_paid_what_it_told_or_all_that_was_set_aside_and_nothing_it_never_heard(
    sqlite_store: Store, signer: Signer, session: aiohttp.ClientSession
) -> None:
    store = sqlite_store
    with provider() as (url, process), contextmanager(opened)(store, signer, Provider(), url) as relay:
        callers = Callers(session, relay)
        asked = asyncio.create_task(callers.ask("asked"))
        async with AsyncExitStack() as stack:
            answers = [await stack.enter_async_context(callers.call(each)) for each in ("headers", "begun", "told")]
            for answer in answers[1:]:
                assert await answer.content.readany()
            assert process.stdout is not None
            assert {process.stdout.readline().strip() for _ in range(4)} == {"asked", "headers", "begun", "told"}
            with store.read() as connection:
                most = connection.scalars(sa.select(reservations.c.held)).all()
            process.kill()
            process.wait()
            assert (await asked)[0] == 502
            for answer in answers:
                with pytest.raises(aiohttp.ClientPayloadError):
                    await answer.read()
        assert (await callers.ask("whole"))[0] == 502
        await until(lambda: states(store) == ["released"] + ["settled"] * 4)
    unmeasured = [amount for measured, amount in settled_at(store) if not measured]
    assert len(unmeasured) == 3
    assert all(amount in most for amount in unmeasured)
    assert [amount for measured, amount in settled_at(store) if measured] == [COST]
    assert sums(store) == {(0, sum(unmeasured) + COST)}
    assert_sound(store)


async def test_while_postgresql_is_killed_calls_are_put_off_and_all_that_went_out_is_settled_once_it_is_back(
    signer: Signer, session: aiohttp.ClientSession
) -> None:
    with a_postgres() as server, provider() as (url, process), ExitStack() as stack:
        migrate(server.url)
        store = open_store(server.url)
        stack.callback(store.close)
        relay = stack.enter_context(contextmanager(opened)(store, signer, Provider(), url))
        callers = Callers(session, relay)
        over = asyncio.Event()

        async def on_and_on() -> list[int]:
            told = []
            while not over.is_set():
                status, answer = await callers.ask("whole")
                assert answer == STREAM if status == 200 else b"did not answer; try again" in answer
                told.append(status)
                if status == 200:
                    went_out.append(status)
            return told

        went_out: list[int] = []
        async with callers.call("waits") as waiting:
            assert await waiting.content.readany()
            busy = [asyncio.create_task(on_and_on()) for _ in range(8)]
            await until(lambda: len(went_out) > 20)
            server.kill()
            while (await callers.ask("whole"))[0] == 200:
                """What was admitted a moment before still comes through."""
            await callers.go(url)
            assert STREAM.endswith(await waiting.read())
            before = len(went_out)
            await asyncio.to_thread(server.start)
            await until(lambda: len(went_out) > before + 20)
        over.set()
        told = [status for each in await asyncio.gather(*busy) for status in each]
        await until(lambda: "held" not in states(store))
        process.kill()
        assert process.stdout is not None
        asked = len(process.stdout.read().split())
        assert set(told) == {200, 503}
        assert asked >= told.count(200) + 1
        assert states(store).count("settled") == asked
        assert settled_at(store) == [(True, COST)] * asked
        assert sums(store) == {(0, asked * COST)}
        assert_sound(store)
