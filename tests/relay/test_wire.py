"""What arrives over a bare socket: broken, slow, large, or made to be read in two ways."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace

import httpx
import orjson
import pytest

import relay.exchange
from relay.answers import Refused
from relay.room import Room
from store.database import Store
from tests.relay.books import Purse
from tests.relay.conftest import ASKED, MESSAGES, Provider, Relay, door, opened, serving
from tests.relay.test_metering import ANTHROPIC, sse
from tests.relay.test_money import until

BODY = orjson.dumps(ASKED)
STREAM = sse(*ANTHROPIC)
MB = 1 << 20


def connected(relay: Relay, buffer: int = 0) -> socket.socket:
    found = socket.socket()
    if buffer:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    host, port = relay.url.removeprefix("http://").split(":")
    found.settimeout(30)
    found.connect((host, int(port)))
    return found


def head(relay: Relay, *more: str, path: str = MESSAGES) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {relay.token()}", *more]
    return "\r\n".join([*lines, "", ""]).encode()


def answered(connection: socket.socket) -> bytes:
    """All that comes until the other side is silent or gone."""
    found = b""
    with suppress(TimeoutError, ConnectionResetError):
        connection.settimeout(2)
        while piece := connection.recv(65536):
            found += piece
    return found


@pytest.mark.parametrize(
    "lengths",
    [
        (f"Content-Length: {len(BODY)}", "Content-Length: 3"),
        (f"Content-Length: {len(BODY)}", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        ("Transfer-Encoding: xchunked",),
        (f"Content-Length: +{len(BODY)}",),
        (f"Content-Length: {len(BODY)}, 3",),
        (f"Content-Length : {len(BODY)}",),
    ],
)
def test_a_request_that_could_be_read_in_two_ways_is_not_read(relay: Relay, lengths: tuple[str, ...]) -> None:
    smuggled = head(relay, "Content-Length: 0", path="/models/anthropic/v1/messages/count_tokens")
    with closing(connected(relay)) as connection:
        connection.sendall(head(relay, *lengths) + BODY + smuggled)
        said = answered(connection)
    assert b"HTTP/1.1 2" not in said, said
    assert relay.provider.asked == []


def test_a_body_in_chunks_is_read_whole(relay: Relay) -> None:
    pieces = [BODY[:1], BODY[1:40], BODY[40:]]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    with closing(connected(relay)) as connection:
        connection.sendall(head(relay, "Transfer-Encoding: chunked") + chunks + b"0\r\n\r\n")
        assert b"HTTP/1.1 200" in answered(connection)
    (asked,) = relay.provider.asked
    assert asked["body"] == BODY
    assert asked["headers"]["content-length"] == str(len(BODY))


def test_a_body_that_is_broken_off_asks_nothing(metered: Relay, purse: Purse) -> None:
    with closing(connected(metered)) as connection:
        connection.sendall(head(metered, f"Content-Length: {len(BODY)}") + BODY[:-5])
        until(lambda: "calls_under_way 1" in metered.metrics.text())
    until(lambda: "calls_under_way 0" in metered.metrics.text())
    assert (metered.provider.asked, purse.asks) == ([], [])


def test_a_body_that_does_not_come_is_not_waited_for(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.arrival.BODY_SECONDS", 0.2)
    with closing(connected(relay)) as connection:
        connection.sendall(head(relay, f"Content-Length: {len(BODY)}") + BODY[:-5])
        assert b"HTTP/1.1 408" in answered(connection)
    assert relay.provider.asked == []


def test_a_body_of_which_nothing_comes_is_not_waited_for(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.arrival.BODY_SECONDS", 0.2)
    with closing(connected(relay)) as connection:
        connection.sendall(head(relay, f"Content-Length: {len(BODY)}"))
        assert b"HTTP/1.1 408" in answered(connection)


async def test_bodies_find_room_in_their_turn_and_never_more_at_once_than_there_is() -> None:
    room, inside, order = Room(10), 0, []

    async def one(n: int, size: int) -> None:
        nonlocal inside
        async with room.taken(size):
            inside += size
            order.append(n)
            assert inside <= 10
            await asyncio.sleep(0)
            inside -= size

    await asyncio.gather(*(one(n, size) for n, size in enumerate((6, 4, 10, 1, 9, 3))))
    assert order == list(range(6))


async def test_a_body_for_which_there_is_no_room_in_time_is_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.room.ROOM_SECONDS", 0.05)
    room = Room(10)
    async with room.taken(8):
        with pytest.raises(Refused) as told:
            async with room.taken(3):
                pass
    assert told.value.status == 503
    async with room.taken(10):
        pass


def test_large_bodies_are_read_while_there_is_room(metered: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.room.ROOM_SECONDS", 0.2)
    monkeypatch.setattr("relay.models.ROOM", 0)
    limit = 4 * 64 * 1024
    with serving(door(metered.graph.store, metered.provider_url, metered.books).app()) as (url, _):
        relay = replace(metered, url=url)
        with closing(connected(relay)) as connection:
            connection.sendall(head(relay, f"Content-Length: {limit}"))
            until(lambda: httpx.post(f"{url}{MESSAGES}", headers=relay.headers(), json=ASKED).status_code == 503)
        until(lambda: httpx.post(f"{url}{MESSAGES}", headers=relay.headers(), json=ASKED).status_code == 200)


def test_two_requests_in_one_breath_are_two_calls(metered: Relay, purse: Purse) -> None:
    one = head(metered, f"Content-Length: {len(BODY)}") + BODY
    with closing(connected(metered)) as connection:
        connection.sendall(one + one)
        assert answered(connection).count(b"HTTP/1.1 200") == 2
    assert len(metered.provider.asked) == len(purse.spent) == 2


@pytest.fixture
def wide(
    sqlite_store: Store, signer, provider: Provider, listening: tuple[Provider, str], purse: Purse
) -> Iterator[Relay]:
    """A relay that takes bodies of 64 MB."""
    yield from opened(sqlite_store, signer, provider, listening[1], books=purse, limit=16 * MB)


def test_a_body_of_fifty_megabytes_goes_through_whole(wide: Relay, purse: Purse) -> None:
    text = "x" * (50 * MB)
    wide.provider.parts = [STREAM]
    answer = wide.ask(body={"messages": [{"role": "user", "content": text}]}, timeout=100)
    assert answer.content == STREAM
    assert len(wide.provider.asked[0]["body"]) > 50 * MB
    assert purse.asks[0].least > 50 * MB * 2_000


def test_a_body_above_the_limit_is_refused_before_it_is_read(relay: Relay) -> None:
    with closing(connected(relay)) as connection:
        connection.sendall(head(relay, f"Content-Length: {10**12}"))
        assert b"HTTP/1.1 413" in answered(connection)
    many = b"%x\r\n%s\r\n" % (MB, b"x" * MB)
    with closing(connected(relay)) as connection, suppress(ConnectionError):
        connection.sendall(head(relay, "Transfer-Encoding: chunked") + many)
        assert b"HTTP/1.1 413" in answered(connection)
    assert relay.provider.asked == []


def test_a_slow_reader_holds_the_provider_up_and_nobody_else(metered: Relay, purse: Purse) -> None:
    piece = b": " + b"x" * 65_532 + b"\n\n"
    metered.provider.parts = [*[piece] * 600, STREAM]
    with closing(connected(metered, buffer=4096)) as connection:
        connection.sendall(head(metered, f"Content-Length: {len(BODY)}") + BODY)
        assert connection.recv(100)
        said = -1
        while (now := metered.provider.said) == 0 or now != said:
            said = now
            time.sleep(0.3)
        # What is on its way fits into buffers: neither all that the provider has to say, nor a good part of it.
        assert said < 300
        assert metered.post("/events", json={"events": []}).status_code == 202
        assert purse.spent == []
        whole = bytearray()
        while not whole.endswith(b"\r\n0\r\n\r\n"):
            whole += connection.recv(MB)
    assert [spent.nano_usd is not None for spent in purse.spent] == [True]
    assert len(whole) > 600 * len(piece)


def test_a_reader_that_stands_still_counts_as_gone(
    metered: Relay, purse: Purse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay.exchange, "STALL_SECONDS", 0.3)
    metered.provider.parts = [*[b": " + b"x" * 65_534] * 200, b"\n\n", STREAM]
    with closing(connected(metered, buffer=4096)) as connection:
        connection.sendall(head(metered, f"Content-Length: {len(BODY)}") + BODY)
        assert connection.recv(100)
        until(lambda: purse.spent)
    assert purse.spent[0].outcome == "hung_up"
    assert purse.spent[0].nano_usd is not None


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"HTTP/1.1", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5\r\ndata:\r\nzz\r\n",
        b'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {"type":"message_delta","usage":{\n\n',
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1\r\n\r\n{",
    ],
)  # fmt: skip
def test_a_provider_that_answers_anyhow_is_asked_once_and_costs_what_was_set_aside(
    metered: Relay, purse: Purse, answer: bytes
) -> None:
    with answering(answer) as (models, heard):
        with serving(door(metered.graph.store, models, purse).app()) as (url, _), suppress(httpx.HTTPError):
            httpx.post(f"{url}{MESSAGES}", headers=metered.headers(), content=BODY, timeout=30)
        # The door is closed by now, and whatever it had under way has ended.
        assert [BODY in said for said in heard] == [True]
    assert [spent.nano_usd for spent in purse.spent] == [None]
    assert purse.held == {}


def test_a_connection_that_the_provider_has_closed_meanwhile_is_not_tried_again(metered: Relay, purse: Purse) -> None:
    """The client asks on a connection that it keeps, and cannot know whether what it sent was read."""
    usage = b'{"usage":{"input_tokens":1,"output_tokens":1}}'
    whole = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(usage), usage)
    with answering(whole, b"") as (models, heard):
        with serving(door(metered.graph.store, models, purse).app()) as (url, _):
            statuses = [
                httpx.post(f"{url}{MESSAGES}", headers=metered.headers(), content=BODY, timeout=30).status_code
                for _ in range(2)
            ]
        assert statuses == [200, 502]
        assert b"".join(heard).count(BODY) == 2
    assert [spent.nano_usd is None for spent in purse.spent] == [False, True]


@contextmanager
def answering(*answers: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A provider over bare sockets, and what it hears on each connection.

    On every one of them it says the answers, one a request, and then breaks off.
    """
    heard: list[bytes] = []

    def talk(connection: socket.socket, n: int) -> None:
        with closing(connection):
            for number, answer in enumerate(answers, 1):
                while heard[n].count(BODY) < number:
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    heard[n] += piece
                connection.sendall(answer)

    def accept(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                heard.append(b"")
                threading.Thread(target=talk, args=(connection, len(heard) - 1), daemon=True).start()

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/models", heard
