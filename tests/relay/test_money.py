"""A call that was admitted is settled or released exactly once, whatever becomes of it, and never for too little."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import httpx
import orjson
import pytest

import relay.exchange
import relay.models
from domain.ledger import CeilingKind
from relay.usage import Usage
from tests.relay.books import Purse
from tests.relay.conftest import ASKED, CHAT, GENERATE, MESSAGES, MODEL, PRICES, RESPONSES, Relay, door, serving
from tests.relay.test_metering import ANTHROPIC, OF_CHAT, OF_GEMINI, OF_RESPONSES, SPENT, sse

PRICE = PRICES.of("anthropic", MODEL, relay.models.datetime.now(relay.models.UTC))
assert PRICE is not None
STREAM = sse(*ANTHROPIC)
BODIES: dict[str, Any] = {
    MESSAGES: ASKED,
    CHAT: {"model": MODEL, "messages": []},
    RESPONSES: {"model": MODEL, "input": "Hi"},
    GENERATE: {"contents": []},
}
ANSWERS: dict[str, Any] = {
    MESSAGES: {"usage": {"input_tokens": 400, "cache_read_input_tokens": 600, "output_tokens": 50}},
    CHAT: {"choices": [{}], "usage": OF_CHAT},
    RESPONSES: {"usage": {**OF_RESPONSES, "input_tokens_details": {"cached_tokens": 600}}},
    GENERATE: {"usageMetadata": OF_GEMINI},
}


def until(true: Callable[[], object]) -> None:
    while not true():
        time.sleep(0.01)


@pytest.fixture
def asked(metered: Relay) -> Relay:
    """A relay whose provider streams what it used."""
    metered.provider.parts = [STREAM[:500], STREAM[500:]]
    return metered


@pytest.mark.parametrize("path", ANSWERS)
def test_what_a_call_used_is_settled_at_its_price(metered: Relay, purse: Purse, path: str) -> None:
    metered.provider.parts = [orjson.dumps(ANSWERS[path])]
    metered.provider.headers = {"content-type": "application/json"}
    assert metered.post(path, json=BODIES[path]).status_code == 200
    (ask,), (spent,) = purse.asks, purse.spent
    # 400 of input and 600 from the cache, which costs as much here, at 2 dollars a million; 50 of output at 10.
    assert (spent.id, spent.nano_usd) == (ask.id, 1000 * 2_000 + 50 * 10_000)
    assert (spent.outcome, spent.status, spent.price) == ("whole", 200, "told 1")
    assert {"input": 400, "cache_read": 600, "output": 50}.items() <= spent.tokens.items()
    assert ask.most >= 1000 * 2_000 + 50 * 10_000
    assert (ask.owner, ask.run, ask.model) == ("ada", metered.run.id, MODEL)
    assert ask.run_cap_nano_usd == 10**9
    assert 'watchbill_relay_tokens_total{owner="ada",model="a-model",kind="cache_read"} 600' in metered.metrics.text()


@pytest.mark.parametrize(
    ("headers", "body", "known"),
    [
        ({"request-id": "req_1", "x-request-id": "other"}, {"id": "msg_1"}, "req_1"),
        ({"x-request-id": "req_2"}, {"id": "msg_1"}, "req_2"),
        ({}, {"id": "msg_1"}, "msg_1"),
        ({}, {"responseId": "r-1"}, "r-1"),
        ({}, {"id": 7}, ""),
        ({"request-id": "a b"}, {}, ""),
        ({"x-request-id": "\u2603".encode().decode("latin-1")}, {}, ""),
        ({"request-id": "x" * 201}, {"id": "\ud7ff"}, ""),
    ],
)
def test_a_calls_own_name_at_the_provider_is_kept_for_its_invoice(
    metered: Relay, purse: Purse, headers: dict[str, str], body: dict[str, Any], known: str
) -> None:
    metered.provider.headers = {"content-type": "application/json", **headers}
    metered.provider.parts = [orjson.dumps({**body, **ANSWERS[MESSAGES]})]
    metered.ask()
    assert [spent.request for spent in purse.spent] == [known]


def test_a_stream_without_a_name_in_its_head_has_the_one_beside_its_usage(metered: Relay, purse: Purse) -> None:
    told = {"id": "chatcmpl-1", "choices": [], "usage": OF_CHAT}
    metered.provider.parts = [sse({"id": "chatcmpl-1", "choices": [{}]}, told, "[DONE]", named=False)]
    metered.post(CHAT, json={**BODIES[CHAT], "stream": True})
    assert [(spent.request, spent.nano_usd is None) for spent in purse.spent] == [("chatcmpl-1", False)]


def test_a_stream_is_settled_before_its_caller_asks_again(asked: Relay, purse: Purse) -> None:
    asked.ask(body={"stream": True})
    assert PRICE is not None
    cost = PRICE.cost(SPENT)
    assert purse.spent[0].nano_usd == cost
    # There is room for one call at a time, and each finds it.
    purse.cap = purse.total + purse.asks[0].most + 5 * cost
    for _ in range(5):
        assert asked.ask(body={"stream": True}).content == STREAM
    assert [spent.nano_usd for spent in purse.spent] == [cost] * 6
    assert purse.held == {}


@pytest.mark.parametrize("path", BODIES)
def test_too_little_money_is_told_in_the_callers_own_form_and_ends_it(metered: Relay, purse: Purse, path: str) -> None:
    purse.cap = 10
    answer = metered.post(path, json=BODIES[path])
    assert answer.status_code == 402
    assert answer.headers["x-should-retry"] == "false"
    assert "retry-after" not in answer.headers
    message = answer.json()["error"]["message"]
    # OpenCode tries again what has 500 or 504 in it, as an amount may.
    assert not any(one.isdigit() and other.isdigit() for one, other in pairwise(message))
    told = message.replace("\u2060", "")
    assert f"the budget of task {metered.run.task_id} has 0.00000001 USD left of 0.00000001 USD" in told
    assert f'watchbill approve {metered.run.task_id} --budget "… USD"' in told
    assert metered.provider.asked == []
    assert 'outcome="short_task"} 1' in metered.metrics.text()


@pytest.mark.parametrize(
    ("ceiling", "raised"),
    [
        (CeilingKind.RUN, "--budget"),
        (CeilingKind.TASK, "--budget"),
        (CeilingKind.PLAN, "--plan-budget"),
        (CeilingKind.DAY, "watchbill budget --day"),
    ],
)
def test_whose_ceiling_it_is_says_how_it_is_raised(
    metered: Relay, purse: Purse, ceiling: CeilingKind, raised: str
) -> None:
    purse.cap, purse.ceiling = 10, ceiling
    assert raised in metered.ask().json()["error"]["message"]


def test_a_run_whose_word_counts_no_more_gets_no_money(metered: Relay, purse: Purse) -> None:
    purse.void = "run x is finished"
    answer = metered.ask()
    assert (answer.status_code, answer.json()["error"]["message"]) == (403, "run x is finished")
    assert metered.provider.asked == []


@pytest.mark.parametrize("path", [MESSAGES, CHAT, RESPONSES, GENERATE])
def test_an_answer_is_cut_to_what_is_left(metered: Relay, purse: Purse, path: str) -> None:
    wished = {
        MESSAGES: {**ASKED, "max_tokens": 50_000},
        CHAT: {**BODIES[CHAT], "max_tokens": 50_000},
        RESPONSES: {**BODIES[RESPONSES], "max_output_tokens": 50_000},
        GENERATE: {"contents": [], "generationConfig": {"maxOutputTokens": 50_000}},
    }[path]
    purse.cap = 20_000 * 10_000
    metered.provider.parts = [b"{}"]
    assert metered.post(path, json=wished).status_code == 200
    (ask,) = purse.asks
    assert ask.most > purse.cap > ask.least
    sent = orjson.loads(metered.provider.asked[0]["body"])
    cap = next(
        place[name]
        for place in (sent, sent.get("generationConfig", {}))
        for name in ("max_tokens", "max_output_tokens", "maxOutputTokens")
        if name in place
    )
    content = len(orjson.dumps(wished)) + 2048
    assert 1024 <= cap < 20_000
    assert PRICE is not None
    assert PRICE.cost(Usage(input=content, output=cap)) <= purse.cap


@pytest.mark.parametrize("status", [400, 403, 404, 413, 429, 503, 529])
def test_a_request_that_was_not_worked_on_costs_nothing(asked: Relay, purse: Purse, status: int) -> None:
    asked.provider.status, asked.provider.parts = status, [b'{"error": {}}']
    assert asked.ask().status_code == status
    assert (purse.released, purse.spent) == ([purse.asks[0].id], [])


@pytest.mark.parametrize(("path", "free"), [(MESSAGES, False), (CHAT, False), (RESPONSES, False), (GENERATE, True)])
def test_an_error_of_the_providers_costs_what_its_maker_says(
    metered: Relay, purse: Purse, path: str, *, free: bool
) -> None:
    metered.provider.status, metered.provider.parts = 500, [b"{}"]
    assert metered.post(path, json=BODIES[path]).status_code == 500
    assert len(purse.released) == int(free)
    assert [spent.nano_usd for spent in purse.spent] == [None] * (not free)


def test_a_refusal_that_tells_usage_costs_it(metered: Relay, purse: Purse) -> None:
    metered.provider.status, metered.provider.parts = 400, [orjson.dumps(ANSWERS[MESSAGES])]
    metered.provider.headers = {"content-type": "application/json"}
    metered.ask()
    assert [spent.nano_usd for spent in purse.spent] == [2_500_000]


POOR = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
DEPLETED = "Your prepayment credits are depleted. Please go to AI Studio."


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        (MESSAGES, 400, {"type": "error", "error": {"type": "invalid_request_error", "message": POOR}}),
        (MESSAGES, 402, {"type": "error", "error": {"type": "billing_error", "message": "x"}}),
        (f"{MESSAGES}/count_tokens", 400, {"error": {"message": POOR}}),
        (CHAT, 429, {"error": {"message": "x", "type": "insufficient_quota", "code": "insufficient_quota"}}),
        (CHAT, 400, {"error": {"message": "x", "type": "invalid", "code": "billing_hard_limit_reached"}}),
        (CHAT, 402, "Insufficient Balance"),
        (RESPONSES, 429, {"error": {"message": "x", "type": "insufficient_quota", "code": None}}),
        (GENERATE, 429, {"error": {"code": 429, "message": DEPLETED, "status": "RESOURCE_EXHAUSTED"}}),
        (GENERATE, 429, [{"error": {"code": 429, "message": DEPLETED, "status": "RESOURCE_EXHAUSTED"}}]),
    ],
)
def test_an_account_without_credit_at_the_provider_is_told_apart_from_a_budget_and_ends_the_run(
    metered: Relay, purse: Purse, path: str, status: int, told: Any
) -> None:
    metered.provider.status, metered.provider.parts = status, [orjson.dumps(told)]
    metered.provider.headers = {"content-type": "application/json", "retry-after": "7", "x-should-retry": "true"}
    answer = metered.post(path, json=BODIES.get(path, ASKED))
    assert (answer.status_code, answer.headers["x-should-retry"]) == (402, "false")
    assert "retry-after" not in answer.headers
    error = answer.json()["error"]
    assert "account at the model provider is out of credit" in error["message"]
    assert "raising one mends nothing" in error["message"]
    assert {"billing_error", "insufficient_quota", "FAILED_PRECONDITION"} & {error.get("type"), error.get("status")}
    # What a run says at its end is cut behind some words of its CLI's own.
    assert len(error["message"]) < 250
    assert (purse.held, purse.spent) == ({}, [])
    assert 'outcome="no_credit"} 1' in metered.metrics.text()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (MESSAGES, {"error": {"type": "rate_limit_error", "message": POOR}}),
        (CHAT, {"error": {"message": "insufficient_quota", "code": "rate_limit_exceeded"}}),
        (GENERATE, {"error": {"message": "Resource has been exhausted (e.g. check quota)."}}),
        (GENERATE, []),
        (CHAT, {"error": "insufficient_quota"}),
        (CHAT, {"error": {"code": ["insufficient_quota"], "type": {}}}),
    ],
)
def test_too_many_requests_are_no_want_of_credit(metered: Relay, path: str, told: Any) -> None:
    metered.provider.status, metered.provider.parts = 429, [orjson.dumps(told)]
    answer = metered.post(path, json=BODIES[path])
    assert (answer.status_code, answer.json()) == (429, told)


def test_a_provider_that_was_not_reached_costs_nothing(metered: Relay, purse: Purse) -> None:
    with serving(door(metered.graph.store, "http://127.0.0.1:9/models", purse).app()) as (url, _):
        assert httpx.post(f"{url}{MESSAGES}", headers=metered.headers(), json=ASKED).status_code == 502
    assert (len(purse.released), purse.spent) == (1, [])


@pytest.mark.parametrize("stream", [b"data: one\n\n", STREAM[:500]])
def test_an_answer_without_usage_costs_all_that_was_set_aside(metered: Relay, purse: Purse, stream: bytes) -> None:
    metered.provider.parts = [stream]
    assert metered.ask(body={"stream": True}).content == stream
    (spent,) = purse.spent
    assert (spent.nano_usd, spent.tokens) == (None, {})
    assert purse.total == purse.asks[0].most


def test_a_stream_that_broke_off_costs_all_that_was_set_aside(metered: Relay, purse: Purse) -> None:
    metered.provider.parts, metered.provider.breaks_off = [STREAM[:500]], True
    with pytest.raises(httpx.RemoteProtocolError):
        metered.ask(body={"stream": True})
    until(lambda: purse.spent)
    assert [(spent.nano_usd, spent.outcome) for spent in purse.spent] == [(None, "broken_off")]


def test_a_stream_that_broke_off_behind_its_usage_costs_that(metered: Relay, purse: Purse) -> None:
    metered.provider.parts, metered.provider.breaks_off = [STREAM], True
    with pytest.raises(httpx.RemoteProtocolError):
        metered.ask(body={"stream": True})
    until(lambda: purse.spent)
    assert PRICE is not None
    assert [spent.nano_usd for spent in purse.spent] == [PRICE.cost(SPENT)]


def test_a_compressed_answer_is_not_passed_on_and_costs_all_that_was_set_aside(asked: Relay, purse: Purse) -> None:
    asked.provider.headers = {"content-encoding": "gzip"}
    assert asked.ask().status_code == 502
    assert [spent.nano_usd for spent in purse.spent] == [None]


def test_whoever_hangs_up_pays_for_what_was_asked(asked: Relay, purse: Purse) -> None:
    asked.provider.goes_on.clear()
    with asked.stream(MESSAGES) as stream:
        assert next(stream.iter_raw())
    until(lambda: "calls_under_way 1" in asked.metrics.text())
    time.sleep(0.1)
    assert not asked.provider.hung_up.is_set()
    assert purse.spent == []
    asked.provider.goes_on.set()
    until(lambda: purse.spent)
    assert PRICE is not None
    assert [(spent.nano_usd, spent.outcome) for spent in purse.spent] == [(PRICE.cost(SPENT), "hung_up")]


def test_whoever_hangs_up_before_the_answer_begins_pays_too(
    asked: Relay, purse: Purse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay.exchange, "DRAIN_SECONDS", 0.2)
    asked.provider.silent = True
    with pytest.raises(httpx.ReadTimeout):
        asked.ask(timeout=httpx.Timeout(20, read=1))
    assert asked.provider.hung_up.wait(20)
    until(lambda: purse.spent)
    assert [(spent.nano_usd, spent.status) for spent in purse.spent] == [(None, 0)]


def test_nobody_is_read_for_without_end(asked: Relay, purse: Purse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay.exchange, "DRAIN_BYTES", 10_000)
    asked.provider.parts = [STREAM[:500], b": " + b"x" * 20_000 + b"\n\n", STREAM[500:]]
    asked.provider.goes_on.clear()
    with asked.stream(MESSAGES) as stream:
        assert next(stream.iter_raw())
    time.sleep(0.2)
    asked.provider.goes_on.set()
    until(lambda: purse.spent)
    assert [(spent.nano_usd, spent.outcome) for spent in purse.spent] == [(None, "broken_off")]


@pytest.mark.parametrize(("patience", "silent"), [("FIRST_BYTE_SECONDS", True), ("SILENCE_SECONDS", False)])
def test_a_provider_that_falls_silent_is_given_up(
    asked: Relay, purse: Purse, monkeypatch: pytest.MonkeyPatch, patience: str, *, silent: bool
) -> None:
    monkeypatch.setattr(relay.exchange, patience, 0.2)
    asked.provider.silent = silent
    asked.provider.goes_on.clear()
    if silent:
        assert asked.ask().status_code == 502
    else:
        with pytest.raises(httpx.RemoteProtocolError):
            asked.ask(body={"stream": True})
    until(lambda: purse.spent)
    assert [spent.nano_usd for spent in purse.spent] == [None]
    assert asked.provider.hung_up.wait(20)


def test_what_is_under_way_is_renewed(asked: Relay, purse: Purse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay.models, "RENEWED_EVERY", 0.0)
    asked.provider.goes_on.clear()
    with asked.stream(MESSAGES) as stream:
        chunks = stream.iter_raw()
        next(chunks)
        until(lambda: len(purse.renewed) > 1)
        asked.provider.goes_on.set()
        assert b"".join(chunks) == STREAM[500:]
    assert set(purse.renewed) == {purse.asks[0].id}


def test_a_door_that_closes_in_the_middle_settles_what_it_breaks_off(metered: Relay, purse: Purse) -> None:
    metered.provider.parts = [STREAM[:500], STREAM[500:]]
    metered.provider.goes_on.clear()
    closing = door(metered.graph.store, metered.provider_url, purse)
    with serving(closing.app(), drain=0) as (url, server):
        body = {**ASKED, "stream": True}
        with httpx.stream("POST", f"{url}{MESSAGES}", headers=metered.headers(), json=body) as stream:
            assert next(stream.iter_raw())
            server.should_exit = True
            until(lambda: purse.spent)
    assert [(spent.nano_usd, spent.outcome) for spent in purse.spent] == [(None, "broken_off")]
    assert purse.held == {}


def test_a_burst_is_not_let_in_beyond_what_there_is(asked: Relay, purse: Purse) -> None:
    body = {"stream": True}
    asked.ask(body=body)
    most = purse.asks[0].most
    purse.cap = purse.total + 3 * most + most // 2
    asked.provider.goes_on.clear()
    with ThreadPoolExecutor(32) as pool:
        calls = [pool.submit(asked.ask, MESSAGES, body) for _ in range(32)]
        until(lambda: len(purse.asks) == 33)
        asked.provider.goes_on.set()
        statuses = sorted(call.result().status_code for call in calls)
    # The cap of 100 tokens of output is less than what makes sense, so nothing is shrunk.
    assert statuses == [200] * 3 + [402] * 29
    assert purse.total <= purse.cap


@contextmanager
def patient(asked: Relay, purse: Purse, patience: float) -> Iterator[Callable[[], httpx.Response]]:
    """A door whose callers wait so long for money, and how one asks there. There is room for one call at a time."""
    asked.ask(body={"stream": True})
    purse.cap = purse.total + purse.asks[0].most + purse.asks[0].most // 2
    with serving(door(asked.graph.store, asked.provider_url, purse, patience=patience).app()) as (url, _):
        body = {**ASKED, "stream": True}
        yield lambda: httpx.post(f"{url}{MESSAGES}", headers=asked.headers(), json=body, timeout=30)


def test_two_calls_with_room_for_one_both_get_their_answer(asked: Relay, purse: Purse) -> None:
    with patient(asked, purse, 60) as ask, ThreadPoolExecutor(2) as pool:
        asked.provider.goes_on.clear()
        calls = [pool.submit(ask) for _ in range(2)]
        # One of them waits, and has asked again.
        until(lambda: len(purse.asks) > 3)
        assert len(purse.held) == 1
        asked.provider.goes_on.set()
        assert [call.result().content for call in calls] == [STREAM] * 2
    assert purse.asks[-1].lease_until > purse.asks[-2].lease_until
    assert len({ask.id for ask in purse.asks}) == 3


@pytest.mark.parametrize("patience", [0, 0.3])
def test_a_call_is_refused_when_the_other_does_not_end_in_time(asked: Relay, purse: Purse, patience: float) -> None:
    with patient(asked, purse, patience) as ask, ThreadPoolExecutor(2) as pool:
        asked.provider.goes_on.clear()
        first = pool.submit(ask)
        until(lambda: purse.held)
        assert ask().status_code == 402
        assert len(purse.asks) == 3 if not patience else len(purse.asks) > 3
        asked.provider.goes_on.set()
        assert first.result().status_code == 200


def test_money_that_is_spent_is_not_waited_for(asked: Relay, purse: Purse) -> None:
    with patient(asked, purse, 10**6) as ask:
        purse.total = purse.cap
        assert ask().status_code == 402
    assert len(purse.asks) == 2


@pytest.mark.parametrize("slow", [True, False])
def test_whoever_leaves_while_waiting_for_money_holds_nothing(asked: Relay, purse: Purse, *, slow: bool) -> None:
    """Whether the books have not answered yet, or have said that it may come back."""
    with patient(asked, purse, 10**6):
        pass
    open_ = door(asked.graph.store, asked.provider_url, purse, patience=10**6)
    with serving(open_.app()) as (url, _):
        purse.slow = slow
        purse.held["another"] = purse.asks[0].most
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}{MESSAGES}", headers=asked.headers(), json=ASKED, timeout=httpx.Timeout(20, read=1))
        until(lambda: open_.metrics.under_way == 0)
    assert purse.held.keys() == {"another"}
    assert len(asked.provider.asked) == 1
    assert 'outcome="left"} 1' in open_.metrics.text()


def test_a_chunk_of_usage_reaches_only_whoever_asked_for_it(metered: Relay, purse: Purse) -> None:
    told = {"choices": [], "usage": OF_CHAT}
    said = {"choices": [{"delta": {"content": "Hi"}}]}
    stream = sse(said, told, "[DONE]", named=False)
    metered.provider.parts = [stream[:30], stream[30:90], stream[90:]]
    body = {"model": MODEL, "messages": [], "stream": True}
    assert metered.post(CHAT, json=body).content == sse(said, "[DONE]", named=False)
    knows = {**body, "stream_options": {"include_usage": True}}
    assert metered.post(CHAT, json=knows).content == stream
    assert [spent.nano_usd for spent in purse.spent] == [1000 * 2_000 + 50 * 10_000] * 2


def test_a_call_that_cost_more_than_was_thought_possible_is_settled_as_it_is_and_told_loudly(
    metered: Relay, purse: Purse, capsys: pytest.CaptureFixture
) -> None:
    metered.provider.parts = [orjson.dumps({"usage": {"input_tokens": 10**6, "output_tokens": 1}})]
    metered.provider.headers = {"content-type": "application/json"}
    metered.ask()
    assert purse.spent[0].nano_usd == 2 * 10**9 + 10_000
    assert "more than was thought possible" in capsys.readouterr().out


def test_a_call_that_cost_more_than_was_held_is_told_loudly_although_it_might_have_held_more(
    metered: Relay, purse: Purse, capsys: pytest.CaptureFixture
) -> None:
    purse.cap = 100 * 10**6
    used = {"input_tokens": 10, "output_tokens": 15_000}
    metered.provider.parts = [orjson.dumps({"usage": used})]
    metered.provider.headers = {"content-type": "application/json"}
    metered.ask(body={"max_tokens": 16_000})
    spent = purse.spent[0].nano_usd
    assert spent == 150_020_000
    assert purse.cap < spent < purse.asks[0].most
    assert "more than was thought possible" in capsys.readouterr().out


def test_a_door_that_closes_while_a_call_waits_for_its_money_gives_it_back(metered: Relay, purse: Purse) -> None:
    purse.slow = True
    closing = door(metered.graph.store, metered.provider_url, purse)
    with ThreadPoolExecutor(1) as pool, serving(closing.app(), drain=0) as (url, server):
        call = pool.submit(httpx.post, f"{url}{MESSAGES}", headers=metered.headers(), json=ASKED)
        until(lambda: purse.asks)
        server.should_exit = True
        until(lambda: purse.released)
        assert isinstance(call.exception(), httpx.HTTPError) or call.result().status_code == 500
    assert (purse.released, purse.held, metered.provider.asked) == ([purse.asks[0].id], {}, [])
    assert 'outcome="cancelled"} 1' in closing.metrics.text()
