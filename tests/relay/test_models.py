"""Model calls are passed on as they are, without the run's capability, and answered as the answer comes."""

from __future__ import annotations

import json
import logging
import time
from contextlib import ExitStack

import httpx
import pytest

from relay.app import Door
from tests.relay.conftest import LIMIT, Relay, serving

MESSAGES = "/models/anthropic/v1/messages"


def test_a_call_is_passed_on_without_what_is_not_the_providers(relay: Relay) -> None:
    headers = {
        **relay.headers(),
        "X-Api-Key": relay.token(),
        "Anthropic-Version": "2023-06-01",
        "Content-Type": "application/json",
        "Cookie": "a=b",
        "X-Forwarded-For": "10.0.0.1",
    }
    answer = relay.post(f"{MESSAGES}?beta=true&x=%2F", content=b'{"model": "m"}', headers=headers)
    assert (answer.status_code, answer.content) == (200, b"data: one\n\ndata: two\n\n")
    assert answer.headers["content-type"] == "text/event-stream"
    assert "set-cookie" not in answer.headers
    (asked,) = relay.provider.asked
    assert (asked["method"], asked["path"], asked["query"]) == ("POST", MESSAGES, "beta=true&x=%2F")
    assert asked["body"] == b'{"model": "m"}'
    assert asked["headers"]["anthropic-version"] == "2023-06-01"
    assert asked["headers"]["authorization"] == f"Bearer {relay.run.id}"
    assert not asked["headers"].keys() & {"cookie", "x-api-key", "x-forwarded-for"}
    assert relay.token()[:20] not in json.dumps(asked["headers"])


def test_a_client_of_anthropics_may_show_its_capability_as_a_key(relay: Relay) -> None:
    assert relay.post(MESSAGES, headers={"x-api-key": relay.token()}).status_code == 200
    assert relay.post("/events", headers={"x-api-key": relay.token()}, json={"events": []}).status_code == 401


@pytest.mark.parametrize("status", [400, 402, 429, 500, 529])
def test_a_refusal_of_the_providers_comes_back_as_it_is(relay: Relay, status: int) -> None:
    relay.provider.status, relay.provider.headers = status, {"retry-after": "7"}
    answer = relay.post(MESSAGES)
    assert (answer.status_code, answer.headers["retry-after"]) == (status, "7")
    assert answer.content == b"data: one\n\ndata: two\n\n"


def test_an_answer_comes_as_it_is_said_and_holds_nobody_up(relay: Relay) -> None:
    relay.provider.goes_on.clear()
    with ExitStack() as stack:
        streams = [stack.enter_context(relay.stream(MESSAGES)) for _ in range(40)]
        chunks = [stream.iter_raw() for stream in streams]
        # All of them are under way, none has been said to its end, and everybody else is served.
        assert [next(chunk) for chunk in chunks] == [b"data: one\n\n"] * 40
        assert relay.post("/events", json={"events": []}).status_code == 202
        relay.provider.goes_on.set()
        assert [b"".join(chunk) for chunk in chunks] == [b"data: two\n\n"] * 40


def test_a_stream_that_breaks_off_is_seen_to_break_off(relay: Relay) -> None:
    relay.provider.breaks_off = True
    with (
        pytest.raises(httpx.RemoteProtocolError),
        relay.stream(MESSAGES) as stream,
    ):
        assert b"".join(stream.iter_raw())
    relay.provider.breaks_off = False
    assert relay.post(MESSAGES).status_code == 200


def test_whoever_hangs_up_ends_the_call_at_the_provider(relay: Relay) -> None:
    relay.provider.goes_on.clear()
    with relay.stream(MESSAGES) as stream:
        assert next(stream.iter_raw())
    assert relay.provider.hung_up.wait(10)


def test_whoever_hangs_up_before_the_answer_begins_ends_the_call_too(relay: Relay) -> None:
    relay.provider.silent = True
    with pytest.raises(httpx.ReadTimeout):
        relay.post(MESSAGES, timeout=0.5)
    assert relay.provider.hung_up.wait(10)


@pytest.mark.parametrize(
    ("address", "status", "why"),
    [("", 403, "set WATCHBILL_MODELS"), ("http://127.0.0.1:9/models", 502, "the model provider did not answer")],
)
def test_a_provider_that_is_not_there_is_said_not_to_be(relay: Relay, address: str, status: int, why: str) -> None:
    with serving(Door(relay.graph.store, address, LIMIT, LIMIT).app()) as (url, _):
        answer = httpx.post(f"{url}{MESSAGES}", headers=relay.headers())
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, TYPES[status])
    assert why in answer.json()["error"]["message"]


TYPES = {403: "permission_error", 502: "api_error"}


def test_no_path_leads_out_of_the_providers(relay: Relay) -> None:
    for path in ("/models/%2e%2e/script", "/models/a/%252e%252e/script", "/models/a/..%2fscript"):
        assert relay.post(path).status_code == 400
    for path in ("/models", "/modelsx", "//evil.example/models"):
        assert relay.post(path).status_code == 404
    assert relay.provider.asked == []


def test_no_token_is_in_any_log(relay: Relay, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = relay.token()
    relay.post(MESSAGES, token)
    relay.post(MESSAGES, token + "x")
    relay.post("/events", token, json={"events": [{"id": "a", "kind": "k"}]})
    relay.post("/mcp", token, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    said = caplog.text + "".join(capsys.readouterr())
    assert "a model call" in said
    for part in token.split("."):
        assert part not in said
    assert token.split(".")[2] not in repr(relay.words())


def test_a_door_that_closes_lets_streams_go_on_to_their_end(relay: Relay) -> None:
    relay.provider.goes_on.clear()
    with relay.stream(MESSAGES) as stream:
        chunks = stream.iter_raw()
        assert next(chunks) == b"data: one\n\n"
        relay.server.should_exit = True
        while not refuses(relay):
            time.sleep(0.05)
        relay.provider.goes_on.set()
        assert list(chunks) == [b"data: two\n\n"]


def refuses(relay: Relay) -> bool:
    """Whether nobody is let in any more."""
    try:
        httpx.get(f"{relay.url}/healthz")
    except (httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError):
        # Whoever stands in the queue as the door closes is reset, and not refused.
        return True
    return False
