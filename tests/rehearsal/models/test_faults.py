"""What goes wrong with providers: refusals, broken streams, silence, and usage that is missing."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from tests.rehearsal.models.provider import APIS, PATHS, Event, Provider, request


@pytest.mark.parametrize(
    ("status", "anthropic", "openai"),
    [
        (400, "invalid_request_error", None),
        (401, "authentication_error", "invalid_api_key"),
        (402, "billing_error", "insufficient_quota"),
        (403, "permission_error", "permission_denied"),
        (413, "request_too_large", "request_too_large"),
        (429, "rate_limit_error", "rate_limit_exceeded"),
        (500, "api_error", None),
        (529, "overloaded_error", None),
    ],
)
def test_a_refusal_has_the_providers_shape(provider: Provider, status: int, anthropic: str, openai: str | None) -> None:
    provider.fault("status", status=status, message="No money left.")
    answer = provider.ask("anthropic", request("anthropic", stream=True))
    assert answer.status_code == status
    assert answer.json() == {
        "type": "error",
        "error": {"type": anthropic, "message": "No money left."},
        "request_id": answer.headers["request-id"],
    }
    for api in ("responses", "chat"):
        answer = provider.ask(api, request(api, stream=True))
        assert answer.status_code == status
        error = answer.json()["error"]
        assert (error["message"], error["code"], error["param"]) == ("No money left.", openai, None)
        assert "retry-after" not in answer.headers


def test_a_refusal_may_say_when_to_come_again(provider: Provider) -> None:
    provider.fault("status", status=429, retry_after=7)
    assert provider.ask("chat", request("chat")).headers["retry-after"] == "7"


def test_from_and_count_choose_main_requests(provider: Provider) -> None:
    provider.fault("status", status=500, **{"from": 1, "count": 2})
    statuses = []
    for _ in range(4):
        beside = provider.ask("chat", request("chat", tools={}))
        assert beside.status_code == 200
        statuses.append(provider.ask("chat", request("chat")).status_code)
    assert statuses == [200, 500, 500, 200]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("after", [0, 3])
def test_a_dropped_stream_ends_after_so_many_events_and_not_properly(provider: Provider, api: str, after: int) -> None:
    provider.fault("drop", after=after)
    heard: list[Event] = []
    with pytest.raises(httpx.RemoteProtocolError), provider.streaming(api, request(api)) as events:
        for event in events:
            heard.append(event)  # noqa: PERF402 - what was heard before it raises is kept
    assert len(heard) == after


@pytest.mark.parametrize("api", APIS)
def test_a_reply_that_is_not_streamed_is_dropped_whole(provider: Provider, api: str) -> None:
    provider.fault("drop", count=1)
    with pytest.raises(httpx.RemoteProtocolError):
        provider.ask(api, request(api))
    assert provider.ask(api, request(api)).status_code == 200


def error_of(api: str, data: Any) -> Any:
    return data["response"]["error"] if api == "responses" else data["error"]


@pytest.mark.parametrize("api", APIS)
def test_an_error_event_ends_the_stream(provider: Provider, api: str) -> None:
    provider.fault("error-event", after=1, message="Too much to do.")
    first, last = provider.events(api, request(api))
    assert first.name in ("message_start", "response.created", "")
    assert last.name == {"anthropic": "error", "responses": "response.failed", "chat": ""}[api]
    assert error_of(api, last.data)["message"] == "Too much to do."
    assert provider.ask(api, request(api)).status_code == 500


def test_a_delay_is_before_each_event(provider: Provider) -> None:
    provider.script({"text": "x"}, faults=[{"kind": "delay", "seconds": 0.05}])
    began = time.monotonic()
    events = provider.events("anthropic", request("anthropic"))
    assert time.monotonic() - began >= 0.05 * len(events)


def test_a_hang_says_nothing_until_the_caller_gives_up(provider: Provider) -> None:
    provider.fault("hang", after=2)
    heard = []
    body = request("chat", stream=True)
    with (
        pytest.raises(httpx.ReadTimeout),
        httpx.stream("POST", f"{provider.url}/{PATHS['chat']}", json=body, timeout=0.5, trust_env=False) as answer,
    ):
        for line in answer.iter_lines():
            heard.append(line)  # noqa: PERF402 - what was heard before it raises is kept
    assert len([line for line in heard if line]) == 2


@pytest.mark.parametrize("api", APIS)
def test_usage_may_be_missing(provider: Provider, api: str) -> None:
    provider.fault("no-usage")
    told = {"stream_options": {"include_usage": True}} if api == "chat" else {}
    events = provider.events(api, request(api, **told))
    assert all('"output_tokens":' not in str(event.data).replace("'", '"') for event in events)
    assert not any(event.data.get("usage") for event in events if isinstance(event.data, dict))
    assert not provider.answer(api, request(api)).get("usage")


def test_faults_may_come_together(provider: Provider) -> None:
    provider.script(
        {"text": "x"},
        faults=[{"kind": "drop", "after": 3}, {"kind": "error-event", "after": 2}, {"kind": "no-usage"}],
    )
    start, _, error = provider.events("anthropic", request("anthropic"))
    assert "usage" not in start.data["message"]
    assert error.name == "error"
