"""The door: what is verified is kept, then answered, then somebody is woken; everything else is refused."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from store.inbox import hinted_tasks
from tests.activities.conftest import OWNER, Graph
from tests.webhooks.conftest import LIMIT, SECRET, Doorway, headers, pull_request, signed
from webhooks.signature import is_signed


async def test_a_verified_delivery_is_kept_answered_and_wakes_its_owner(doorway: Doorway, graph: Graph) -> None:
    answer = await doorway.post(pull_request())
    assert (answer.status_code, answer.json()) == (202, {"delivery": "d1"})
    (row,) = doorway.rows()
    assert (row.event, row.action, row.pull_number, row.task_id) == ("pull_request", "closed", 7, graph.task)
    assert row.handled_at is None
    assert doorway.woken == [OWNER]
    with graph.store.read() as connection:
        assert hinted_tasks(connection, OWNER, about_pulls=True) == {graph.task}


BODY = pull_request()


@pytest.mark.parametrize(
    "signature",
    [
        None,
        b"",
        b"sha256=",
        b"sha256=" + b"0" * 64,
        signed(BODY, b"another secret").encode(),
        signed(BODY).encode().upper(),
        signed(BODY).removeprefix("sha256=").encode(),
        b"sha1=" + hmac.new(SECRET, BODY, hashlib.sha1).hexdigest().encode(),
        "sha256=é✓".encode(),
        b"sha256=\xff\xfe",
        signed(BODY).encode() + b"0",
        signed(b"").encode(),
    ],
)
async def test_a_signature_that_is_not_ours_keeps_nothing(doorway: Doorway, signature: bytes | None) -> None:
    told: list[tuple[bytes, bytes]] = [(b"X-GitHub-Delivery", b"d1"), (b"X-GitHub-Event", b"pull_request")]
    if signature is not None:
        told.append((b"X-Hub-Signature-256", signature))
    transport = httpx.ASGITransport(doorway.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://door") as client:
        answer = await client.post("/webhooks/github", content=BODY, headers=told)
    assert answer.status_code == 401
    assert doorway.rows() == []
    assert doorway.woken == []


async def test_the_older_sha1_header_counts_for_nothing(doorway: Doorway) -> None:
    told = headers(BODY)
    del told["X-Hub-Signature-256"]
    told["X-Hub-Signature"] = "sha1=" + hmac.new(SECRET, BODY, hashlib.sha1).hexdigest()
    assert (await doorway.post(BODY, told)).status_code == 401


@pytest.mark.parametrize(
    "other",
    [BODY[:-1], BODY + b" ", BODY.replace(b"closed", b"opened"), json.dumps(json.loads(BODY), indent=1).encode()],
)
async def test_the_signature_is_over_exactly_the_bytes_that_came(doorway: Doorway, other: bytes) -> None:
    told = headers(other) | {"X-Hub-Signature-256": signed(BODY)}
    assert (await doorway.post(other, told)).status_code == 401
    assert not is_signed(SECRET, other, signed(BODY).encode())


async def test_a_redelivery_is_the_same_row_and_is_answered_alike(doorway: Doorway) -> None:
    answers = [await doorway.post(BODY) for _ in range(3)]
    assert [one.status_code for one in answers] == [202] * 3
    assert len(doorway.rows()) == 1


async def test_deliveries_at_once_are_all_kept(doorway: Doorway) -> None:
    bodies = [pull_request(f"action {n % 5}") for n in range(20)]
    told = [headers(body, f"d{n % 10}") for n, body in enumerate(bodies)]
    answers = await asyncio.gather(*(doorway.post(body, one) for body, one in zip(bodies, told, strict=True)))
    assert {one.status_code for one in answers} == {202}
    assert len(doorway.rows()) == 10


async def test_a_body_that_says_it_is_too_large_is_not_read(doorway: Doorway) -> None:
    async def never() -> AsyncIterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    told = headers(BODY) | {"Content-Length": str(LIMIT + 1)}
    transport = httpx.ASGITransport(doorway.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://door") as client:
        answer = await client.post("/webhooks/github", content=never(), headers=told)
    assert answer.status_code == 413


async def test_a_body_that_turns_out_too_large_is_read_no_further(doorway: Doorway) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1024
            yield b"x" * 1024

    transport = httpx.ASGITransport(doorway.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://door") as client:
        answer = await client.post("/webhooks/github", content=endless(), headers=headers(BODY))
    assert answer.status_code == 413
    assert sent <= LIMIT + 4096


async def test_a_body_of_exactly_the_limit_is_taken(doorway: Doorway) -> None:
    body = BODY[:-1] + b" " * (LIMIT - len(BODY)) + BODY[-1:]
    assert len(body) == LIMIT
    assert (await doorway.post(body)).status_code == 202


@pytest.mark.parametrize("length", ["²", "-1", "many", ""])
async def test_a_length_that_is_no_number_is_not_believed(doorway: Doorway, length: str) -> None:
    said = [(name.encode(), value.encode()) for name, value in headers(BODY).items()]
    answer = await talk(doorway, [*said, (b"Content-Length", length.encode("latin-1"))], [BODY])
    assert answer[0]["status"] == 202


async def test_a_sender_who_hangs_up_leaves_nothing(doorway: Doorway) -> None:
    said = [(name.encode(), value.encode()) for name, value in headers(BODY).items()]
    await talk(doorway, said, [BODY[:20]], hangs_up=True)
    assert doorway.rows() == []


async def talk(
    doorway: Doorway, said: list[tuple[bytes, bytes]], parts: list[bytes], *, hangs_up: bool = False
) -> list[dict[str, Any]]:
    """Speak ASGI to the door, byte by byte as no well-behaved client would."""
    sent: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages.append({"type": "http.disconnect"} if hangs_up else {"type": "http.request", "body": b""})

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": "/webhooks/github", "raw_path": b"", "query_string": b"",
        "headers": [(name.lower(), value) for name, value in said],
    }  # fmt: skip
    await doorway.app(scope, receive, send)
    return sent


async def test_the_answer_comes_before_anybody_is_woken(doorway: Doorway) -> None:
    answered_by_then: list[bool] = []
    sent: list[dict[str, Any]] = []

    async def nudge(owner: str) -> None:
        answered_by_then.append(any(one["type"] == "http.response.body" and not one.get("more_body") for one in sent))

    doorway.nudge = nudge
    scope = {
        "type": "http", "method": "POST", "path": "/webhooks/github", "raw_path": b"", "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers(BODY).items()],
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": BODY}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await doorway.app(scope, receive, send)
    assert answered_by_then == [True]
    assert sent[0]["status"] == 202


async def test_a_nudge_that_fails_loses_nothing(doorway: Doorway) -> None:
    async def nudge(owner: str) -> None:
        raise RuntimeError("Temporal is away")

    doorway.nudge = nudge
    assert (await doorway.post(BODY)).status_code == 202
    assert len(doorway.rows()) == 1


@pytest.mark.parametrize("delivery", ["", "x" * 101], ids=["missing", "too long"])
async def test_a_delivery_without_a_proper_id_is_refused(doorway: Doorway, delivery: str) -> None:
    answer = await doorway.post(BODY, headers(BODY, delivery))
    assert answer.status_code == 400
    assert "X-GitHub-Delivery" in answer.json()["message"]
    assert doorway.rows() == []


async def test_a_store_that_is_away_asks_for_another_delivery(doorway: Doorway, tmp_path: Path) -> None:
    doorway.store.close()
    Path(tmp_path / "store.db").rename(tmp_path / "moved.db")
    (tmp_path / "store.db").mkdir()
    answer = await doorway.post(BODY)
    assert answer.status_code == 503
    assert doorway.woken == []


async def test_the_door_says_that_it_is_open(doorway: Doorway) -> None:
    transport = httpx.ASGITransport(doorway.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://door") as client:
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/webhooks/github")).status_code == 405
        assert (await client.get("/anything")).status_code == 404
