"""A model call is passed on as what was judged, without the run's capability, and answered as the answer comes."""

from __future__ import annotations

import json
import logging
import time
from contextlib import ExitStack

import httpx
import orjson
import pytest

from relay.upstreams import Upstream
from tests.relay.conftest import ASKED, CHAT, GENERATE, MESSAGES, RESPONSES, Relay, door, serving


def test_a_call_is_passed_on_without_what_is_not_the_providers(relay: Relay) -> None:
    headers = {
        **relay.headers(),
        "X-Api-Key": relay.token(),
        "Anthropic-Version": "2023-06-01",
        "Accept-Encoding": "gzip",
        "Cookie": "a=b",
        "X-Forwarded-For": "10.0.0.1",
    }
    answer = relay.post(f"{MESSAGES}?beta=true&x=%2F", json=ASKED, headers=headers)
    assert (answer.status_code, answer.content) == (200, b"data: one\n\ndata: two\n\n")
    assert answer.headers["content-type"] == "text/event-stream"
    assert "set-cookie" not in answer.headers
    (asked,) = relay.provider.asked
    assert (asked["method"], asked["path"], asked["query"]) == ("POST", MESSAGES, "beta=true")
    assert json.loads(asked["body"]) == ASKED
    assert asked["headers"]["anthropic-version"] == "2023-06-01"
    assert asked["headers"]["authorization"] == f"Bearer {relay.run.id}"
    assert asked["headers"]["accept-encoding"] == "identity"
    assert not asked["headers"].keys() & {"cookie", "x-api-key", "x-forwarded-for"}
    assert relay.token()[:20] not in json.dumps(asked["headers"])


def test_what_is_passed_on_can_be_read_in_one_way_alone(relay: Relay) -> None:
    twice = b'{"max_tokens": 7, "messages": [], "max_tokens": 90, "model": "a-model", "model": "a-model"}'
    assert relay.post(MESSAGES, content=twice).status_code == 200
    assert relay.provider.asked[0]["body"] == b'{"max_tokens":90,"messages":[],"model":"a-model"}'


@pytest.mark.parametrize("name", ["x-api-key", "x-goog-api-key"])
def test_a_providers_client_may_show_its_capability_as_a_key(relay: Relay, name: str) -> None:
    assert relay.ask(headers={name: relay.token()}).status_code == 200
    assert relay.post("/events", headers={name: relay.token()}, json={"events": []}).status_code == 401


@pytest.mark.parametrize("status", [400, 429, 500, 529])
def test_a_refusal_of_the_providers_comes_back_as_it_is(relay: Relay, status: int) -> None:
    relay.provider.status, relay.provider.headers = status, {"retry-after": "7"}
    answer = relay.ask()
    assert (answer.status_code, answer.headers["retry-after"]) == (status, "7")
    assert answer.content == b"data: one\n\ndata: two\n\n"


@pytest.mark.parametrize(("status", "shown"), [(401, 403), (403, 403), (302, 502), (307, 502)])
def test_what_a_provider_says_of_our_key_or_of_another_address_is_not_passed_on(
    relay: Relay, status: int, shown: int
) -> None:
    relay.provider.status = status
    relay.provider.parts = [b"Incorrect API key provided: sk-abc"]
    relay.provider.headers = {"location": "http://169.254.169.254/"}
    answer = relay.ask()
    assert answer.status_code == shown
    assert "sk-abc" not in answer.text
    assert "location" not in answer.headers
    assert len(relay.provider.asked) == 1


def test_a_header_of_the_providers_that_cannot_be_passed_back_is_told_as_no_answer(relay: Relay) -> None:
    relay.provider.headers = {"request-id": "\u2603".encode().decode("latin-1")}
    answer = relay.ask()
    assert (answer.status_code, answer.json()["error"]["type"]) == (502, "api_error")


def test_an_answer_comes_as_it_is_said_and_holds_nobody_up(relay: Relay) -> None:
    relay.provider.goes_on.clear()
    with ExitStack() as stack:
        streams = [stack.enter_context(relay.stream(MESSAGES)) for _ in range(40)]
        chunks = [stream.iter_raw() for stream in streams]
        # All of them are under way, none has been said to its end, and everybody else is served.
        assert [next(chunk) for chunk in chunks] == [b"data: one\n\n"] * 40
        assert relay.post("/events", json={"events": []}).status_code == 202
        assert "watchbill_relay_calls_under_way 40" in relay.metrics.text()
        relay.provider.goes_on.set()
        assert [b"".join(chunk) for chunk in chunks] == [b"data: two\n\n"] * 40


def test_a_stream_that_breaks_off_is_seen_to_break_off(relay: Relay) -> None:
    relay.provider.breaks_off = True
    with pytest.raises(httpx.RemoteProtocolError), relay.stream(MESSAGES) as stream:
        assert b"".join(stream.iter_raw())
    relay.provider.breaks_off = False
    assert relay.ask().status_code == 200


@pytest.mark.parametrize(("path", "provider"), [(MESSAGES, "ANTHROPIC"), (CHAT, "OPENAI"), (GENERATE, "GEMINI")])
def test_a_provider_that_is_not_set_is_said_not_to_be(relay: Relay, path: str, provider: str) -> None:
    with serving(door(relay.graph.store, "", relay.books).app()) as (url, _):
        answer = httpx.post(f"{url}{path}", headers=relay.headers(), json=ASKED)
    assert answer.status_code == 403
    assert f"set WATCHBILL_{provider}_KEY_FILE or WATCHBILL_MODELS" in answer.json()["error"]["message"]


def test_a_provider_that_cannot_be_reached_is_said_not_to_answer(relay: Relay) -> None:
    with serving(door(relay.graph.store, "http://127.0.0.1:9/models", relay.books).app()) as (url, _):
        answer = httpx.post(f"{url}{MESSAGES}", headers=relay.headers(), json=ASKED)
    assert (answer.status_code, answer.json()["error"]["type"]) == (502, "api_error")
    assert "the model provider did not answer" in answer.json()["error"]["message"]


@pytest.mark.parametrize(("header", "key"), [("x-api-key", "sk-secret"), ("authorization", "Bearer sk-secret")])
def test_a_providers_key_is_added_here_and_shown_to_nobody(
    relay: Relay, header: str, key: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    relay.provider.headers = {header: key, "set-cookie": key}
    upstream = Upstream(f"{relay.provider_url}/anthropic", header, key)
    with serving(door(relay.graph.store, "", relay.books, providers={"anthropic": upstream}).app()) as (url, _):
        answer = httpx.post(f"{url}{MESSAGES}", headers=relay.headers(), json=ASKED)
    (asked,) = relay.provider.asked
    assert asked["headers"][header] == key
    assert relay.run.id not in json.dumps(asked["headers"])
    assert "sk-secret" not in str(answer.headers) + answer.text + repr(upstream)
    assert "sk-secret" not in caplog.text + "".join(capsys.readouterr())


@pytest.mark.parametrize("status", [400, 403, 429, 500])
def test_an_error_that_tells_our_key_is_not_passed_on(
    relay: Relay, status: int, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    relay.provider.status = status
    relay.provider.parts = [b'{"error": "Consumer \'api_key:AI', b"za-secret' is not valid\"}"]
    upstream = Upstream(f"{relay.provider_url}/gemini", "x-goog-api-key", "AIza-secret")
    with serving(door(relay.graph.store, "", relay.books, providers={"gemini": upstream}).app()) as (url, _):
        answer = httpx.post(f"{url}{GENERATE}", headers=relay.headers(), json={"contents": []})
    assert answer.status_code == (403 if status == 403 else 502)
    assert "AIza" not in answer.text + caplog.text + "".join(capsys.readouterr())


def test_only_the_addresses_of_models_are_passed_on(relay: Relay) -> None:
    for path in ("%2e%2e/script", "a/%252e%252e/script", "anthropic/v1/messages/", "anthropic/v1/files", "script"):
        answer = relay.ask(f"/models/{path}")
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error")
    for path in ("openai/v1/responses/compact", "openai/v1/responses/x", "openai/v1/embeddings"):
        assert relay.ask(f"/models/{path}").json()["error"]["code"] is None
    for path in ("/models", "/modelsx", "//evil.example/models"):
        assert relay.post(path).status_code == 404
    for name in ("..", "a%2Fb", "a/b", ""):
        assert relay.ask(f"/models/gemini/v1beta/models/{name}:generateContent").status_code == 404
    assert relay.provider.asked == []


def test_another_model_than_the_runs_is_not_asked(relay: Relay) -> None:
    for path in (MESSAGES, CHAT):
        answer = relay.ask(path, {"model": "claude-opus-5-5"})
        assert answer.status_code == 400
        assert "is for the model 'a-model', and not for 'claude-opus-5-5'" in answer.json()["error"]["message"]
        assert answer.headers["x-should-retry"] == "false"
    other = GENERATE.replace("a-model", "gemini-2.5-pro")
    assert relay.post(other, json={"contents": []}).status_code == 400
    assert relay.provider.asked == []


def test_a_model_whose_price_nobody_knows_is_not_asked(relay: Relay) -> None:
    token = relay.token(model_id="model-of-tomorrow")
    answer = relay.ask(MESSAGES, {"model": "model-of-tomorrow"}, token=token)
    assert answer.status_code == 400
    assert "set WATCHBILL_PRICES" in answer.json()["error"]["message"]
    assert relay.provider.asked == []


@pytest.mark.parametrize("path", ["anthropic/v1/models", "openai/v1/models", "gemini/v1beta/models"])
def test_the_one_model_that_there_is_is_listed_without_asking_anybody(relay: Relay, path: str) -> None:
    answer = relay.client.get(f"/models/{path}?client_version=1", headers=relay.headers())
    assert answer.status_code == 200
    assert "a-model" in answer.text
    assert relay.provider.asked == []
    relay.end()
    assert relay.client.get(f"/models/{path}", headers=relay.headers()).status_code == 403


def test_tokens_are_counted_for_a_live_run_and_for_nothing(metered: Relay, purse) -> None:
    count = f"{MESSAGES}/count_tokens"
    metered.provider.parts = [b'{"input_tokens": 3}']
    body = {name: value for name, value in ASKED.items() if name != "max_tokens"}
    assert metered.post(count, json=body).status_code == 200
    assert json.loads(metered.provider.asked[0]["body"]) == body
    assert (purse.asks, purse.spent, purse.released) == ([], [], [])
    metered.end()
    assert metered.post(count, json=body).status_code == 403
    assert len(metered.provider.asked) == 1


def test_a_socket_is_not_opened_and_nothing_but_asking_is_done(relay: Relay) -> None:
    upgrade = {**relay.headers(), "Connection": "Upgrade", "Upgrade": "websocket"}
    assert relay.client.get(RESPONSES, headers=upgrade).status_code == 426
    for method in ("GET", "PUT", "DELETE"):
        assert relay.client.request(method, RESPONSES, headers=relay.headers()).status_code == 405
    assert relay.provider.asked == []


def test_no_token_is_in_any_log(relay: Relay, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = relay.token()
    relay.ask(token=token)
    relay.ask(token=token + "x")
    relay.post("/events", token, json={"events": [{"id": "a", "kind": "k"}]})
    relay.post("/mcp", token, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    said = caplog.text + "".join(capsys.readouterr())
    assert "a model call" in said
    for part in token.split("."):
        assert part not in said
    assert token.split(".")[2] not in repr(relay.words())
    assert '"Hi"' not in said


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


def test_what_is_no_request_is_told_so_in_one_sentence(relay: Relay) -> None:
    for content, why in ((b"{", "no JSON"), (b"[]", "no JSON object"), (b'{"a": "\\ud800"}', "no JSON")):
        answer = relay.post(MESSAGES, content=content)
        assert (answer.status_code, why in answer.json()["error"]["message"]) == (400, True)
    deep = b'{"model":"a-model","messages":[],"metadata":' + b"[" * 500 + b"]" * 500 + b"}"
    assert relay.post(MESSAGES, content=deep).status_code == 400
    packed = {**relay.headers(), "Content-Encoding": "gzip"}
    assert relay.post(MESSAGES, headers=packed, content=orjson.dumps(ASKED)).status_code == 415
    assert relay.provider.asked == []


@pytest.mark.parametrize("path", [MESSAGES, f"{MESSAGES}/count_tokens", CHAT, RESPONSES, GENERATE])
def test_a_run_that_is_unmetered_asks_no_model_here_and_says_to_us_what_others_say(relay: Relay, path: str) -> None:
    token = relay.token(model_id="", max_budget_nano_usd=0)
    answer = relay.post(path, token, json=ASKED)
    assert answer.status_code == 403
    assert "unmetered" in answer.json()["error"]["message"]
    assert relay.provider.asked == []
    assert relay.post("/events", token, json={"events": []}).status_code == 202


@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini"])
def test_a_run_that_is_unmetered_is_told_of_no_model(relay: Relay, provider: str) -> None:
    path = f"/models/{provider}/{'v1beta' if provider == 'gemini' else 'v1'}/models"
    headers = relay.headers(relay.token(model_id=""))
    assert relay.client.get(path, headers=headers).status_code == 403


def test_a_capability_from_before_a_run_was_unmetered_is_good_for_no_model_either(relay: Relay) -> None:
    relay.graph.move("spawn", "run", relay.run.id, confinement="networked", metering="unmetered")
    answer = relay.ask()
    assert answer.status_code == 403
    assert "is on a login of its own, and gets no money here" in answer.json()["error"]["message"]
    assert relay.provider.asked == []
