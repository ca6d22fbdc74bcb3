"""What a call used is read from every form of answer, wherever it is cut, and is never taken for nothing."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st

import relay.metering
from pricing.prices import Prices
from relay.metering import Meter
from relay.shapes import SHAPES
from relay.shapes.shape import Shape, Wish
from relay.sse import Splitter, data_of
from relay.usage import Usage

SHAPE = {shape.endpoint: shape for shape in SHAPES}
NOW = datetime.now(UTC)


def sse(*events: Any, named: bool = True, end: str = "\n\n") -> bytes:
    lines = []
    for event in events:
        data = event if isinstance(event, str) else orjson.dumps(event).decode()
        name = f"event: {event['type']}{end[: len(end) // 2]}" if named and "type" in event else ""
        lines.append(f"{name}data: {data}{end}")
    return "".join(lines).encode()


def message(**usage: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "model": "claude-sonnet-4-6", "content": [], "usage": usage}


BEGUN = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 70,
    "cache_read_input_tokens": 300,
    "cache_creation": {"ephemeral_5m_input_tokens": 50, "ephemeral_1h_input_tokens": 20},
    "output_tokens": 1,
    "service_tier": "standard",
}
SAYS = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 'a "usage": {"x": 1}\n\n'}}
ANTHROPIC: list[dict[str, Any]] = [
    {"type": "message_start", "message": message(**BEGUN)},
    {"type": "ping"},
    SAYS,
    {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 40}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"},
     "usage": {"output_tokens": 90, "cache_read_input_tokens": 300, "input_tokens": None}},
    {"type": "message_stop"},
]  # fmt: skip
SPENT = Usage(input=100, cache_read=300, cache_write_5m=50, cache_write_1h=20, output=90)

OF_RESPONSES = {
    "input_tokens": 1000,
    "input_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 100},
    "output_tokens": 50,
    "output_tokens_details": {"reasoning_tokens": 30},
    "total_tokens": 1050,
}
RESPONDED = Usage(input=300, cache_read=600, cache_write_5m=100, output=50, reasoning=30)


def responses(kind: str, usage: Any = OF_RESPONSES) -> list[dict[str, Any]]:
    open_ = {"id": "r", "model": "gpt-5.6", "status": "in_progress", "usage": None}
    return [
        {"type": "response.created", "response": open_},
        {"type": "response.output_text.delta", "delta": '"usage": {"input_tokens": 1}'},
        {"type": f"response.{kind}", "response": {**open_, "status": kind, "usage": usage}},
    ]


OF_CHAT = {
    "prompt_tokens": 1000,
    "completion_tokens": 50,
    "total_tokens": 1050,
    "prompt_tokens_details": {"cached_tokens": 600},
    "completion_tokens_details": {"reasoning_tokens": 30},
}
CHATTED = Usage(input=400, cache_read=600, output=50, reasoning=30)
CHUNK = {"id": "c", "object": "chat.completion.chunk", "model": "gpt-5.5"}
CHAT = [
    {**CHUNK, "choices": [{"index": 0, "delta": {"content": '"usage": {'}}], "usage": None},
    {**CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": None},
]
TOLD = {**CHUNK, "choices": [], "usage": OF_CHAT}

OF_GEMINI = {
    "promptTokenCount": 1000,
    "cachedContentTokenCount": 600,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 30,
    "totalTokenCount": 1050,
}
GEMINI = [
    {"candidates": [{"content": {"parts": [{"text": "a"}]}}], "usageMetadata": {"promptTokenCount": 1000}},
    {"candidates": [{"content": {}, "finishReason": "STOP"}], "modelVersion": "gemini-2.5-pro",
     "usageMetadata": OF_GEMINI},
]  # fmt: skip
GENERATED = CHATTED

STREAMS: list[tuple[str, bytes, Usage]] = [
    ("anthropic.messages", sse(*ANTHROPIC), SPENT),
    ("anthropic.messages", sse(*ANTHROPIC, end="\r\n\r\n"), SPENT),
    ("openai.responses", sse(*responses("completed")), RESPONDED),
    ("openai.responses", sse(*responses("incomplete")), RESPONDED),
    ("openai.responses", sse(*responses("failed")), RESPONDED),
    ("openai.chat", sse(*CHAT, TOLD, "[DONE]", named=False), CHATTED),
    ("openai.chat", sse(*CHAT, TOLD, "[DONE]", named=False, end="\r\n\r\n"), CHATTED),
    ("gemini.generate", sse(*GEMINI, named=False, end="\r\n\r\n"), GENERATED),
]


def metered(endpoint: str, pieces: list[bytes], *, streamed: bool = True, strips: bool = False) -> tuple[Meter, bytes]:
    wish = Wish({}, "m", streamed, 1, 1, strips_usage=strips)
    meter, passed = Meter(SHAPE[endpoint], wish, streamed=streamed), b""
    for piece in pieces:
        passed += meter.passing(piece)
        meter.look(piece)
    return meter, passed + meter.rest()


def cut(whole: bytes, at: list[int]) -> list[bytes]:
    marks = [0, *sorted(place % (len(whole) + 1) for place in at), len(whole)]
    return [whole[begin:end] for begin, end in itertools.pairwise(marks)]


@pytest.mark.parametrize(("endpoint", "stream", "used"), STREAMS, ids=range(len(STREAMS)))
def test_a_stream_may_be_cut_at_any_byte(endpoint: str, stream: bytes, used: Usage) -> None:
    for place in range(len(stream)):
        meter, passed = metered(endpoint, [stream[:place], stream[place:]])
        assert (passed, meter.used(whole=True)) == (stream, used), place
    meter, passed = metered(endpoint, [stream[place : place + 1] for place in range(len(stream))])
    assert (passed, meter.used(whole=True)) == (stream, used)


@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 10_000), max_size=30))
def test_a_stream_may_come_in_any_pieces(told: tuple[str, bytes, Usage], at: list[int]) -> None:
    endpoint, stream, used = told
    meter, passed = metered(endpoint, cut(stream, at))
    assert (passed, meter.used(whole=True)) == (stream, used)


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
def test_wherever_a_stream_is_cut_once_only_what_is_ours_is_taken_out(end: str) -> None:
    asked = sse(*CHAT, "[DONE]", named=False, end=end)
    stream = sse(*CHAT, TOLD, "[DONE]", named=False, end=end)
    for place in range(len(stream) + 1):
        meter, passed = metered("openai.chat", cut(stream, [place]), strips=True)
        assert (passed, meter.used(whole=True)) == (asked, CHATTED), place


@given(st.lists(st.integers(0, 10_000), max_size=30), st.sampled_from(["\n\n", "\r\n\r\n", "\r\r"]))
def test_what_the_caller_did_not_ask_for_is_taken_out_and_nothing_else(at: list[int], end: str) -> None:
    asked = sse(*CHAT, "[DONE]", named=False, end=end)
    stream = sse(*CHAT, TOLD, "[DONE]", named=False, end=end)
    meter, passed = metered("openai.chat", cut(stream, at), strips=True)
    assert (passed, meter.used(whole=True)) == (asked, CHATTED)


def test_a_last_event_that_cannot_be_read_is_passed_on_and_tells_nothing() -> None:
    broken = b'data: {"choices": [], "usage": {"prompt_tokens": }\r\r'
    meter, passed = metered("openai.chat", [sse(*CHAT, named=False, end="\r\r"), broken], strips=True)
    assert passed.endswith(broken)
    assert meter.used(whole=True) is None


def test_what_is_held_back_comes_when_the_stream_ends_in_the_middle() -> None:
    stream = sse(*CHAT, named=False) + b'data: {"choices": [], "usa'
    meter, passed = metered("openai.chat", [stream], strips=True)
    assert (passed, meter.used(whole=False)) == (stream, None)


@pytest.mark.parametrize(("endpoint", "stream", "used"), STREAMS, ids=range(len(STREAMS)))
def test_a_stream_that_breaks_off_before_its_usage_tells_none(endpoint: str, stream: bytes, used: Usage) -> None:
    for place in range(len(stream)):
        meter, _ = metered(endpoint, [stream[:place]])
        assert meter.used(whole=False) in (None, used)
    assert metered(endpoint, [stream[: len(stream) // 3]])[0].used(whole=False) is None


def test_an_error_in_the_stream_tells_none() -> None:
    for endpoint, told in (
        ("anthropic.messages", [*ANTHROPIC[:3], {"type": "error", "error": {"type": "overloaded_error"}}]),
        ("openai.responses", responses("failed", None)),
        ("openai.chat", [*CHAT[:1], {"type": "error", "error": {"message": "x"}}]),
        ("gemini.generate", [{"type": "error", "error": {"code": 500}}]),
    ):
        assert metered(endpoint, [sse(*told)])[0].used(whole=True) is None


@pytest.mark.parametrize(
    ("endpoint", "answer", "used", "flavor"),
    [
        ("anthropic.messages", message(**BEGUN), SPENT, "default"),
        ("openai.responses", responses("completed")[-1]["response"], RESPONDED, "responses"),
        ("openai.chat", {**CHUNK, "choices": [{}], "usage": OF_CHAT}, CHATTED, "chat"),
        ("gemini.generate", GEMINI[-1], GENERATED, "default"),
    ],
)
def test_an_answer_that_is_whole_costs_what_the_list_reads_from_it(
    endpoint: str, answer: dict[str, Any], used: Usage, flavor: str
) -> None:
    raw = orjson.dumps(answer)
    meter, passed = metered(endpoint, cut(raw, [7, 90]), streamed=False)
    found = meter.used(whole=True)
    assert passed == raw
    assert found is not None
    assert {**found.as_tokens(), "output": 0} == {**used.as_tokens(), "output": 0}
    assert meter.used(whole=False) is None
    shape = SHAPE[endpoint]
    oracle = get_snapshot().extract_usage(answer, shape.prices, api_flavor=flavor)
    assert oracle.model is not None
    price = Prices().of(shape.prices, oracle.model.id, NOW)
    assert price is not None
    assert price.cost(found) == oracle.calc_price(genai_request_timestamp=NOW).total_price * 10**9


def test_what_passes_of_a_call_used_beside_its_total_is_in_the_total() -> None:
    one = {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 5}
    passes = [{"type": "compaction", **one}, {"type": "message", **one}]
    used = SHAPE["anthropic.messages"].used(message(**one, iterations=passes))
    assert used == Usage(input=200, output=20, cache_read=10)
    assert SHAPE["anthropic.messages"].used(message(**one, iterations=[])) == Usage(input=100, output=10, cache_read=5)
    # Where the total has them already, they are not counted twice.
    whole = {"input_tokens": 200, "output_tokens": 20, "cache_read_input_tokens": 10}
    assert SHAPE["anthropic.messages"].used(message(**whole, iterations=passes)) == used


@pytest.mark.parametrize("endpoint", ["openai.chat", "openai.responses", "gemini.generate"])
def test_reasoning_that_is_told_beside_the_output_is_in_the_total(endpoint: str) -> None:
    told = {
        "openai.chat": {"usage": {"prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 309}},
        "openai.responses": {"usage": {"input_tokens": 100, "output_tokens": 9, "total_tokens": 309}},
        "gemini.generate": {
            "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 9, "totalTokenCount": 309}
        },
    }[endpoint]
    assert SHAPE[endpoint].used(told) == Usage(input=100, output=209)


def test_written_tokens_without_a_word_on_how_long_are_counted_once() -> None:
    used = SHAPE["anthropic.messages"].used(message(input_tokens=1, output_tokens=1, cache_creation_input_tokens=70))
    assert used == Usage(input=1, output=1, cache_write_5m=70)


@pytest.mark.parametrize(
    ("endpoint", "answer"),
    [
        ("anthropic.messages", {"usage": {"input_tokens": "100", "output_tokens": 1}}),
        ("anthropic.messages", {"usage": {"input_tokens": -1, "output_tokens": 1}}),
        ("anthropic.messages", {"usage": []}),
        ("anthropic.messages", {"usage": {}}),
        ("anthropic.messages", {"usage": {"input_tokens": None, "output_tokens": 1}}),
        ("anthropic.messages", {"usage": {"input_tokens": 1, "output_tokens": None}}),
        ("anthropic.messages", {"usage": {"output_tokens": 1, "cache_read_input_tokens": 9}}),
        ("anthropic.messages", {"usage": {**BEGUN, "iterations": [{"output_tokens": 1}]}}),
        ("anthropic.messages", {"usage": {**BEGUN, "server_tool_use": [1]}}),
        ("openai.responses", {"usage": {}}),
        ("openai.responses", {"usage": {"output_tokens": 1}}),
        ("openai.responses", {"usage": {"input_tokens": 1, "output_tokens": None}}),
        ("openai.chat", {"usage": {}}),
        ("openai.chat", {"usage": {"completion_tokens": 1}}),
        ("openai.chat", {"usage": {"prompt_tokens": None, "completion_tokens": 1, "total_tokens": 9}}),
        ("openai.chat", {"usage": {"prompt_tokens": 1, "completion_tokens": None, "total_tokens": 9}}),
        ("gemini.generate", {"usageMetadata": {}}),
        ("gemini.generate", {"usageMetadata": {"promptTokenCount": None, "candidatesTokenCount": 1}}),
        ("gemini.generate", {"usageMetadata": {"promptTokenCount": 1}}),
        ("gemini.generate", {"usageMetadata": {"promptTokenCount": 1, "thoughtsTokenCount": 1}}),
        ("openai.responses", {"usage": {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 2}}}),
        ("openai.chat", {"usage": {"prompt_tokens": 1.5, "completion_tokens": 1}}),
        ("openai.chat", {"usage": {"prompt_tokens": 1}}),
        ("gemini.generate", {"usageMetadata": {"candidatesTokenCount": 1}}),
        ("gemini.generate", {"usageMetadata": {"promptTokenCount": True}}),
        ("openai.chat", []),
        ("openai.chat", {"choices": []}),
    ],
)
def test_usage_that_cannot_be_is_not_taken_for_little(endpoint: str, answer: Any) -> None:
    meter, _ = metered(endpoint, [orjson.dumps(answer)], streamed=False)
    assert meter.used(whole=True) is None


ENDS = ANTHROPIC[-2]


@pytest.mark.parametrize(
    ("endpoint", "events"),
    [
        ("anthropic.messages", ANTHROPIC[3:]),
        ("anthropic.messages", [{"type": "message_start", "message": {"usage": None}}, *ANTHROPIC[1:]]),
        ("anthropic.messages", [{"type": "message_start", "message": {"usage": {}}}, *ANTHROPIC[1:]]),
        ("anthropic.messages", [*ANTHROPIC[:-2], {**ENDS, "usage": {}}]),
        ("anthropic.messages", [*ANTHROPIC[:-2], {**ENDS, "usage": {"output_tokens": None}}]),
        ("anthropic.messages", [*ANTHROPIC[:-2], {**ENDS, "usage": {"input_tokens": 100}}]),
        ("openai.responses", responses("completed", {"output_tokens": 50})),
        ("openai.responses", responses("completed", {})),
        ("openai.chat", [*CHAT, {**TOLD, "usage": {"completion_tokens": 50}}]),
        ("openai.chat", [*CHAT, {**TOLD, "usage": {}}]),
        ("gemini.generate", GEMINI[:1]),
        ("gemini.generate", [{**GEMINI[1], "usageMetadata": {"candidatesTokenCount": 20}}]),
    ],
)
def test_a_stream_that_tells_a_part_of_its_usage_tells_none(endpoint: str, events: list[Any]) -> None:
    assert metered(endpoint, [sse(*events)])[0].used(whole=True) is None


@pytest.mark.parametrize(
    ("endpoint", "where", "name", "ordinary", "dear"),
    [
        ("anthropic.messages", "usage", "service_tier", ("standard", "batch", None), ("priority", 1, ["standard"])),
        ("anthropic.messages", "usage", "inference_geo", ("global", "not_available", "", None), ("us", "eu")),
        ("anthropic.messages", "usage", "speed", ("standard", None), ("fast",)),
        ("anthropic.messages", "usage", "server_tool_use", ({"web_search_requests": 0}, None),
         ({"web_search_requests": 1},)),
        ("openai.responses", "", "service_tier", ("default", "auto", "flex", None), ("priority", "scale", "ultrafast")),
        ("openai.chat", "", "service_tier", ("default", "on_demand", None), ("priority", {})),
        ("gemini.generate", "usageMetadata", "serviceTier", ("standard", "STANDARD", "flex", None), ("priority",)),
    ],
)  # fmt: skip
def test_an_answer_that_was_served_at_another_price_is_not_counted_at_the_listed_one(
    endpoint: str, where: str, name: str, ordinary: tuple[Any, ...], dear: tuple[Any, ...], capsys: Any
) -> None:
    answers: dict[str, tuple[Any, list[Any]]] = {
        "anthropic.messages": (message(**BEGUN), ANTHROPIC),
        "openai.responses": (responses("completed")[-1]["response"], responses("completed")),
        "openai.chat": ({**CHUNK, "choices": [{}], "usage": OF_CHAT}, [*CHAT, TOLD]),
        "gemini.generate": (GEMINI[-1], GEMINI),
    }
    whole, events = answers[endpoint]
    for word in (*ordinary, *dear):
        raw = orjson.dumps(saying(whole, where, name, word))
        meters = [metered(endpoint, [raw], streamed=False)[0]]
        meters += [metered(endpoint, [sse(*saying(events, where, name, word))])[0]]
        assert [meter.used(whole=True) is not None for meter in meters] == [word in ordinary] * 2, word
    assert "cannot be told" in capsys.readouterr().out


def saying(told: Any, where: str, name: str, word: Any) -> Any:
    """The same with one more thing told in its usage, or beside it."""
    if isinstance(told, list):
        return [saying(each, where, name, word) for each in told]
    if not isinstance(told, dict):
        return told
    found = {key: saying(value, where, name, word) for key, value in told.items()}
    place = found.get(where) if where else found if "usage" in found else None
    if isinstance(place, dict):
        place[name] = word
    return found


def test_an_answer_of_gemini_that_says_nothing_is_told_by_its_total() -> None:
    answer = {"usageMetadata": {"promptTokenCount": 100, "thoughtsTokenCount": 200, "totalTokenCount": 300}}
    assert SHAPE["gemini.generate"].used(answer) == Usage(input=100, output=200, reasoning=200)


def test_an_answer_that_is_too_long_to_be_kept_is_passed_on_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay.metering, "LONGEST", 1000)
    raw = orjson.dumps({"x": "x" * 2000, "usage": OF_CHAT})
    for streamed in (False, True):
        for strips in (False, True):
            meter, passed = metered("openai.chat", cut(raw, [500, 1500]), streamed=streamed, strips=strips)
            assert (passed, meter.used(whole=True)) == (raw, None)


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b"data: x"]), max_size=12), st.lists(st.integers(0, 60)))
def test_events_are_cut_alike_wherever_the_pieces_end(parts: list[bytes], at: list[int]) -> None:
    whole = b"".join(parts) + b"\n\n"

    def data(pieces: list[bytes]) -> list[bytes]:
        splitter = Splitter(1000)
        events = [event for piece in pieces for event in splitter.feed(piece)]
        assert b"".join(events) + splitter.rest() == whole
        return [each for event in events for each in data_of(event)]

    assert data(cut(whole, at)) == data([whole])


def test_shapes_have_names_of_their_own() -> None:
    assert len(SHAPE) == len(SHAPES)
    assert all(isinstance(shape, Shape) for shape in SHAPES)
