"""What is told of a run is accepted once, whole batches only."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from relay.events import MAX_BATCH
from tests.relay.conftest import LIMIT, MESSAGES, Relay


def event(id: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "kind": "tool", "at": "2026-03-01T22:30:00Z", "data": {"tool": "Bash"}, **more}


def test_each_event_is_accepted_once(relay_on_both: Relay) -> None:
    relay = relay_on_both
    first = relay.post("/events", json={"events": [event("a"), event("b"), event("a", kind="other")]})
    assert (first.status_code, first.json()) == (202, {"accepted": 2, "known": 0})
    again = relay.post("/events", json={"events": [event("b", kind="other"), event("c")]})
    assert again.json() == {"accepted": 1, "known": 1}
    assert [(row.id, row.kind, row.body["kind"]) for row in relay.words()] == [
        ("event:a", "event", "tool"),
        ("event:b", "event", "tool"),
        ("event:c", "event", "tool"),
    ]


def test_batches_that_come_at_once_lose_and_double_nothing(relay_on_both: Relay) -> None:
    def send(n: int) -> dict[str, int]:
        batch = {"events": [event(f"e{i}") for i in range(n, n + 20)]}
        answer = relay_on_both.post("/events", json=batch)
        assert answer.status_code == 202
        return dict(answer.json())

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(send, [0, 5, 10, 0, 15, 20] * 2))
    assert sum(answer["accepted"] for answer in answers) == 40
    assert sorted(row.id for row in relay_on_both.words()) == sorted(f"event:e{i}" for i in range(40))


BROKEN = (
    b"",
    b"[]",
    b"{",
    b'{"events": [{"kind": "k"}]}',
    json.dumps({"events": [event("a", data={"x": 1}), event("")]}).encode(),
    json.dumps({"events": [event("a b")]}).encode(),
    json.dumps({"events": [event("x" * 101)]}).encode(),
    json.dumps({"events": [event("a", more=1)]}).encode(),
    json.dumps({"events": [event(f"e{n}", data={}) for n in range(MAX_BATCH + 1)]}).encode(),
    b'{"events": [{"id": "a", "kind": "k", "data": {"x": NaN}}]}',
    b'{"events": [{"id": "a", "kind": "k", "data": {"x": ' + b"[" * 9000 + b"]" * 9000 + b"}}]}",
    b'{"events": [{"id": "a", "kind": "k", "data": {"x": "\xff"}}]}',
)


def test_a_batch_that_is_not_in_order_is_refused_as_a_whole(relay: Relay) -> None:
    for body in BROKEN:
        answer = relay.post("/events", content=body)
        assert answer.status_code == 400, body[:100]
        assert answer.json()["error"]["message"].count("\n") == 0
    assert relay.words() == []


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("path", ["/events", "/mcp", MESSAGES])
def test_fifty_megabytes_are_refused_and_hold_nobody_up(relay: Relay, path: str, declared: bool) -> None:
    part, count = b"x" * (1 << 20), 50
    headers = relay.headers() | {"content-type": "application/json", "accept": "application/json"}
    headers |= {"content-length": str(len(part) * count)} if declared else {}
    began = time.monotonic()
    answer = relay.post(path, headers=headers, content=(part for _ in range(count)))
    assert answer.status_code == 413
    assert f"larger than {LIMIT if path != MESSAGES else 4 * LIMIT}" in answer.text.replace("\u2060", "")
    assert relay.post("/events", json={"events": []}).status_code == 202
    assert time.monotonic() - began < 20
    assert relay.provider.asked == []
