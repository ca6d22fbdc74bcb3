"""What is let through of each API, what its bound is, and what is refused because nobody can bound it."""

from __future__ import annotations

import copy
import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.datastructures import Headers

from relay.answers import Refused
from relay.shapes import SHAPES
from relay.shapes.images import sides
from relay.shapes.shape import LEAST_OUTPUT, Shape, Wish, judged
from relay.upstreams import Upstream

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))


def png(width: int, height: int) -> str:
    """The head of one, which is all that is looked at."""
    size = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + size).decode()


IMAGE = png(640, 480)
DATA = f"data:image/png;base64,{IMAGE}"
TOOL = {"name": "t", "input_schema": {"type": "object"}}
FUNCTION = {"type": "function", "name": "t", "parameters": {}}
SHAPE = {shape.endpoint: shape for shape in SHAPES}
LEAST: dict[str, dict[str, Any]] = {
    "anthropic.messages": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]},
    "openai.responses": {"model": "m", "input": "Hi"},
    "openai.chat": {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    "gemini.generate": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
}


def read(endpoint: str, body: dict[str, Any], output: int = 16_384) -> Wish:
    return judged(SHAPE[endpoint], orjson.loads(orjson.dumps(body)), "m", output)


def more(endpoint: str, **fields: Any) -> dict[str, Any]:
    return {**LEAST[endpoint], **fields}


def said(endpoint: str, *content: dict[str, Any]) -> dict[str, Any]:
    """A request with this content in its one message."""
    body = copy.deepcopy(LEAST[endpoint])
    match endpoint:
        case "openai.responses":
            body["input"] = [{"role": "user", "content": list(content)}]
        case "gemini.generate":
            body["contents"][0]["parts"] = list(content)
        case _:
            body["messages"][0]["content"] = list(content)
    return body


def shape_of(path: str) -> Shape:
    return next(shape for shape in SHAPES if shape.matches(path.removeprefix("/models/")) is not None)


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_what_the_real_clis_send_is_let_through_as_it_is(file: Path) -> None:
    asked = json.loads(file.read_text())
    shape, body = shape_of(asked["path"]), asked["body"]
    wish = judged(shape, copy.deepcopy(body), "", 16_384)
    additions: dict[str, dict[str, Any]] = {
        "openai.responses": {"max_output_tokens": 16_384, "service_tier": "default", "store": False},
        "openai.chat": {},
        "anthropic.messages": {"service_tier": "standard_only"},
    }
    added = additions[shape.endpoint]
    if body["model"] == "rehearsal":
        added.pop("service_tier", None)
    expected = {**added, **body}
    assert orjson.loads(wish.encoded) == expected
    assert wish.model == body["model"]
    assert wish.stream
    assert wish.content >= len(orjson.dumps(body))
    assert not wish.strips_usage


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    *(("anthropic.messages", more("anthropic.messages", **{name: value}), name) for name, value in {
        "container": "c", "mcp_servers": [], "fallbacks": [{"model": "x"}], "speed": "fast", "inference_geo": "us",
        "service_tier": "priority", "anything_new": 1,
    }.items()),
    *(("anthropic.messages", said("anthropic.messages", block), why) for block, why in (
        ({"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}, "not inline"),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, "not inline"),
        ({"type": "document", "source": {"type": "base64", "data": "JVBERi0="}}, "no inline text"),
        ({"type": "document", "source": {"type": "url", "url": "https://x"}}, "no inline text"),
        ({"type": "container_upload", "file_id": "f"}, "container_upload"),
        ({"type": "server_tool_use", "name": "web_search"}, "server_tool_use"),
        ({"type": "tool_result", "content": [{"type": "image", "source": {"type": "url"}}]}, "not inline"),
        ({"type": "document", "source": {"type": "content", "content": [{"type": "audio"}]}}, "audio"),
        ({"type": "tool_addition", "tool": {"definition": {"type": "web_search_20260209"}}}, "web_search"),
    )),
    *(("anthropic.messages", more("anthropic.messages", tools=[{"type": kind, "name": "t"}]), kind) for kind in (
        "web_search_20250305", "web_fetch_20250910", "code_execution_20250825", "computer_20250124",
        "tool_search_tool_regex_20251119", "mcp_toolset", "advisor_20260301",
    )),
    ("anthropic.messages", more("anthropic.messages", context_management={"edits": [{"type": "compact_20260112"}]}),
     "compact_20260112"),
    *(("openai.responses", more("openai.responses", **{name: value}), name) for name, value in {
        "previous_response_id": "resp_1", "conversation": "conv_1", "background": True, "prompt": {"id": "p"},
        "service_tier": "flex", "anything_new": 1, "include": ["web_search_call.action.sources"],
        "context_management": [{"type": "compaction"}],
    }.items()),
    *(("openai.responses", said("openai.responses", part), why) for part, why in (
        ({"type": "input_image", "image_url": "https://x/y.png"}, "image_url"),
        ({"type": "input_image", "file_id": "f", "image_url": DATA}, "file_id"),
        ({"type": "input_file", "file_url": "https://x"}, "input_file"),
        ({"type": "input_audio", "data": "x"}, "input_audio"),
    )),
    *(("openai.responses", more("openai.responses", input=[item]), why) for item, why in (
        ({"type": "item_reference", "id": "i"}, "item_reference"),
        ({"id": "msg_1"}, "without role"), ({"type": None, "id": "msg_1"}, "without role"),
        ({"id": "msg_1", "role": "assistant"}, "without content"),
        ({"type": "message", "id": "msg_1"}, "without role"),
        ({"type": "reasoning", "id": "rs_1"}, "encrypted_content"),
        ({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None}, "encrypted_content"),
        ({"type": "function_call", "id": "fc_1"}, "without arguments"),
        ({"type": "function_call_output", "id": "fc_1"}, "without output"),
        ({"type": "web_search_call"}, "web_search_call"),
        ({"type": "compaction", "encrypted_content": "x"}, "compaction"),
        ({"type": "tool_search_call", "execution": "server"}, "tool_search_call"),
        ({"type": "function_call_output", "output": [{"type": "input_file"}]}, "input_file"),
    )),
    *(("openai.responses", more("openai.responses", tools=[tool]), str(tool["type"])) for tool in (
        {"type": "web_search"}, {"type": "file_search"}, {"type": "code_interpreter"}, {"type": "image_generation"},
        {"type": "mcp"}, {"type": "computer_use_preview"}, {"type": "shell"},
    )),
    ("openai.responses", more("openai.responses", tools=[{"type": "namespace", "tools": [{"type": "mcp"}]}]), "mcp"),
    ("openai.responses", more("openai.responses", tools=[{"type": "tool_search"}]), "search for tools"),
    *(("openai.chat", more("openai.chat", **{name: value}), name) for name, value in {
        "n": 2, "service_tier": "priority", "web_search_options": {}, "prediction": {}, "audio": {},
        "modalities": ["text", "audio"], "anything_new": 1, "tools": [{"type": "web_search"}],
    }.items()),
    *(("openai.chat", said("openai.chat", part), why) for part, why in (
        ({"type": "image_url", "image_url": {"url": "https://x"}}, "image_url"),
        ({"type": "input_audio", "input_audio": {}}, "input_audio"), ({"type": "file", "file": {}}, "file"),
    )),
    ("openai.chat", more("openai.chat", messages=[{"role": "assistant", "audio": {"id": "a"}}]), "audio"),
    *(("gemini.generate", more("gemini.generate", **{name: value}), name) for name, value in {
        "cachedContent": "c", "cached_content": "c", "generation_config": {}, "model": "other", "anything_new": 1,
    }.items()),
    *(("gemini.generate", more("gemini.generate", generationConfig=config), why) for config, why in (
        ({"candidateCount": 2}, "candidateCount"), ({"responseModalities": ["IMAGE"]}, "responseModalities"),
        ({"max_output_tokens": 9}, "max_output_tokens"), ({"speechConfig": {}}, "speechConfig"),
        ({"thinkingConfig": {"thinking_budget": 9}}, "thinking_budget"),
    )),
    *(("gemini.generate", more("gemini.generate", tools=[{name: {}}]), name) for name in (
        "googleSearch", "google_search", "codeExecution", "urlContext", "fileSearch", "computerUse", "googleMaps",
    )),
    *(("gemini.generate", said("gemini.generate", part), why) for part, why in (
        ({"fileData": {"fileUri": "x"}}, "fileData"), ({"file_data": {}}, "file_data"),
        ({"inlineData": {"mimeType": "audio/wav", "data": "x"}}, "inlineData"),
        ({"inlineData": {"mimeType": "application/pdf", "data": "x"}}, "inlineData"),
        ({"inlineData": {"mimeType": "image/png", "data": png(768, 40_000)}}, "768 by 40000"),
        ({"inlineData": {"mimeType": "image/png", "data": png(0, 1)}}, "no PNG"),
        ({"inlineData": {"mimeType": "image/heic", "data": "AAAAGGZ0eXBoZWlj"}}, "no PNG"),
        ({"executableCode": {}}, "executableCode"),
        ({"functionResponse": {"name": "f", "response": {}, "parts": [{"fileData": {}}]}}, "parts"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(
    ("endpoint", "body", "named"), REFUSED, ids=[f"{n}-{case[2]}" for n, case in enumerate(REFUSED)]
)
def test_what_nobody_can_bound_is_refused_and_named(endpoint: str, body: dict[str, Any], named: str) -> None:
    with pytest.raises(Refused) as told:
        read(endpoint, body)
    assert told.value.status == 400
    assert named in str(told.value)
    assert "\n" not in str(told.value)


MALFORMED: list[tuple[str, dict[str, Any]]] = [
    *((endpoint, more(endpoint, **{name: value})) for endpoint, name, value in (
        ("anthropic.messages", "max_tokens", "9"), ("anthropic.messages", "max_tokens", 0),
        ("anthropic.messages", "max_tokens", True), ("anthropic.messages", "max_tokens", 9.5),
        ("anthropic.messages", "messages", {"role": "user"}), ("anthropic.messages", "messages", ["Hi"]),
        ("anthropic.messages", "model", 7), ("anthropic.messages", "stream", "yes"),
        ("anthropic.messages", "thinking", {"budget_tokens": "many"}), ("anthropic.messages", "thinking", []),
        ("openai.responses", "input", 7), ("openai.responses", "max_output_tokens", -1),
        ("openai.responses", "background", "true"), ("openai.responses", "include", "everything"),
        ("openai.chat", "stream_options", []), ("openai.chat", "stream_options", {"include_usage": 1}),
        ("gemini.generate", "generationConfig", {"maxOutputTokens": "9"}), ("gemini.generate", "contents", "Hi"),
    )),
    ("openai.chat", more("openai.chat", max_tokens=9, max_completion_tokens=9)),
    ("openai.chat", said("openai.chat", {"type": "image_url", "image_url": {"url": 7}})),
    ("anthropic.messages", said("anthropic.messages", {"type": "image", "source": {"type": "base64"}})),
]  # fmt: skip


@pytest.mark.parametrize(("endpoint", "body"), MALFORMED, ids=range(len(MALFORMED)))
def test_what_is_of_another_form_is_refused_and_never_taken_for_nothing(endpoint: str, body: dict[str, Any]) -> None:
    with pytest.raises(Refused) as told:
        read(endpoint, {**body, "stream": True} if "stream_options" in body else body)
    assert told.value.status == 400


@pytest.mark.parametrize("endpoint", LEAST)
def test_what_a_caller_named_is_told_back_in_one_line_that_can_be_shown(endpoint: str) -> None:
    with pytest.raises(Refused) as refused:
        judged(SHAPE[endpoint], {**LEAST[endpoint], "a\nfield\x1b[2J\u2028": {}}, "m", 4096)
    assert str(refused.value).startswith("a\ufffdfield\ufffd[2J\ufffd is not let through")


@pytest.mark.parametrize("endpoint", LEAST)
def test_null_asks_for_nothing(endpoint: str) -> None:
    wish = read(endpoint, more(endpoint, previous_response_id=None, n=None, tools=None, anything_new=None))
    assert wish.output == (9 if endpoint == "anthropic.messages" else 16_384)


@pytest.mark.parametrize(
    ("endpoint", "image"),
    [
        ("anthropic.messages", {"type": "image", "source": {"type": "base64", "data": IMAGE}}),
        ("openai.responses", {"type": "input_image", "image_url": DATA}),
        ("openai.chat", {"type": "image_url", "image_url": {"url": DATA}}),
        ("gemini.generate", {"inlineData": {"mimeType": "image/png", "data": IMAGE}}),
    ],
)
def test_an_inline_image_counts_for_what_a_model_makes_of_it_at_most(endpoint: str, image: dict[str, Any]) -> None:
    none, one, two = (read(endpoint, said(endpoint, *[image] * number)) for number in range(3))
    assert 5_000 <= one.content - none.content <= two.content - one.content < 21_000
    heavy = json.loads(json.dumps(image).replace(IMAGE, IMAGE * 10_000))
    assert read(endpoint, said(endpoint, heavy)).content == one.content


FORMS = {
    "png": b64decode(png(300, 200)),
    "gif": b"GIF89a" + (300).to_bytes(2, "little") + (200).to_bytes(2, "little"),
    "jpeg": b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc4\x00\x03c\xff\xc2\x00\x0b\x08\x00\xc8\x01\x2c\x03",
    "webp": b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x2c\x01\xc8\x00",
    "webp without loss": b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + (299 | 199 << 14).to_bytes(4, "little") + b"\0" * 5,
    "webp in parts": b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x2b\x01\0\xc7\0\0",
}


@pytest.mark.parametrize("form", FORMS)
def test_the_size_of_an_image_is_read_from_its_head(form: str) -> None:
    assert sides(b64encode(FORMS[form] + b"\0" * 300).decode()) == (300, 200)
    for end in range(len(FORMS[form])):
        assert sides(b64encode(FORMS[form][:end]).decode()) in (None, (300, 200))
    assert sides("!" + b64encode(FORMS[form]).decode()) is None


def test_a_tool_that_is_referred_to_counts_each_time() -> None:
    tools = [{**TOOL, "name": "small"}, {**TOOL, "name": "large", "description": "x" * 10_000, "defer_loading": True}]
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": "t", "content": []}
    none = read("anthropic.messages", {**said("anthropic.messages", result), "tools": tools})
    for name in ("large", "unknown"):
        result["content"] = [{"type": "tool_reference", "tool_name": name}] * 40
        many = read("anthropic.messages", {**said("anthropic.messages", result), "tools": tools})
        assert many.content - none.content > 40 * 10_000
    result["content"] = [{"type": "tool_reference", "tool_name": "small"}] * 40
    few = read("anthropic.messages", {**said("anthropic.messages", result), "tools": tools})
    assert few.content - none.content < 10_000


@pytest.mark.parametrize("endpoint", LEAST)
def test_a_cap_is_put_where_there_is_none_and_lowered_to_what_there_is(endpoint: str) -> None:
    body = {name: value for name, value in LEAST[endpoint].items() if name != "max_tokens"}
    wish = read(endpoint, body, 5_000)
    assert (wish.output, wish.least) == (5_000, LEAST_OUTPUT)
    assert caps(wish) == [5_000]
    SHAPE[endpoint].lower(wish, 1_500)
    assert (wish.output, caps(wish)) == (1_500, [1_500])


def caps(wish: Wish) -> list[int]:
    places = (wish.body, wish.body.get("generationConfig", {}))
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
    return [place[name] for place in places for name in names if name in place]


def test_a_cap_has_the_name_that_whoever_answers_knows() -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        wish = read("openai.chat", more("openai.chat", model="gpt-5.5", **{name: 3_000}))
        SHAPE["openai.chat"].lower(wish, 2_000)
        assert {key: value for key, value in wish.body.items() if key.startswith("max")} == {name: 2_000}
    assert "max_completion_tokens" in read("openai.chat", more("openai.chat", model="gpt-5.5")).body
    for model in ("qwen3", "gpt-oss-120b"):
        for name in ("max_tokens", "max_completion_tokens"):
            body = read("openai.chat", more("openai.chat", model=model, **{name: 3_000})).body
            assert {key: value for key, value in body.items() if key.startswith("max")} == {"max_tokens": 3_000}
        assert "max_tokens" in read("openai.chat", more("openai.chat", model=model)).body


@pytest.mark.parametrize(
    ("budget", "cap", "kept"),
    [(16_383, 8_096, 4_000), (2_000, 8_096, 2_000), (8_000, 5_120, 1_024), (16_383, 16_384, 16_383)],
)
def test_thinking_that_is_cut_leaves_room_for_an_answer(budget: int, cap: int, kept: int) -> None:
    thinking = {"type": "enabled", "budget_tokens": budget}
    wish = read("anthropic.messages", more("anthropic.messages", max_tokens=16_384, thinking=thinking))
    assert wish.least == LEAST_OUTPUT + 1_024
    SHAPE["anthropic.messages"].lower(wish, cap)
    assert (wish.body["max_tokens"], wish.body["thinking"]["budget_tokens"]) == (cap, kept)


def test_thinking_above_the_cap_is_refused_where_it_costs_something() -> None:
    body = more("anthropic.messages", max_tokens=1_024, thinking={"type": "enabled", "budget_tokens": 150_000})
    with pytest.raises(Refused, match="below max_tokens"):
        read("anthropic.messages", body)
    del body["max_tokens"]
    assert "max_tokens" not in read("anthropic.count_tokens", body).body


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_the_trials_that_the_real_clis_take_part_in_are_let_through_and_no_others(file: Path) -> None:
    told = json.loads(file.read_text())["headers"].get("anthropic-beta", "")
    for betas in (told, f"{told}, task-budgets-2026-03-13" if told else "task-budgets-2026-03-13"):
        passed = Upstream("https://x").headers(Headers({"anthropic-beta": betas}), "a-run")
        assert passed.get("anthropic-beta", "") == told


@pytest.mark.parametrize("model", ["gpt-4o-search-preview", "gpt-5-search-api", "o3-deep-research"])
def test_models_that_search_by_themselves_are_refused(model: str) -> None:
    for endpoint in ("openai.chat", "openai.responses"):
        with pytest.raises(Refused, match="searches by itself"):
            read(endpoint, more(endpoint, model=model))


def test_geminis_thinking_is_not_cut() -> None:
    config = {"maxOutputTokens": 9_000, "thinkingConfig": {"thinkingBudget": 4_000}}
    assert read("gemini.generate", more("gemini.generate", generationConfig=config)).least == 4_000 + LEAST_OUTPUT


def test_a_short_answer_needs_no_more_than_it_asks_for() -> None:
    wish = read("anthropic.messages", LEAST["anthropic.messages"])
    assert (wish.output, wish.least) == (9, 9)
    assert read("anthropic.messages", more("anthropic.messages", max_tokens=10**18)).output == 1_000_000


def test_an_hour_in_the_cache_is_seen_however_it_is_written() -> None:
    block = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    raw = orjson.dumps(said("anthropic.messages", block)).replace(b'"1h"', b'"\\u0031h"')
    wish = judged(SHAPE["anthropic.messages"], orjson.loads(raw), "", 9)
    assert wish.writes_1h
    assert not read("anthropic.messages", LEAST["anthropic.messages"]).writes_1h


def test_nothing_is_left_at_the_provider_that_a_later_call_could_refer_to() -> None:
    for stored in (True, None):
        assert read("openai.responses", more("openai.responses", store=stored)).body["store"] is False
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    assert read("openai.responses", more("openai.responses", input=[thought])).body["input"] == [thought]


def test_the_prices_that_are_listed_are_asked_for() -> None:
    for endpoint in ("openai.chat", "openai.responses"):
        assert read(endpoint, more(endpoint, model="gpt-5.5", service_tier="auto")).body["service_tier"] == "default"
        for model in ("qwen3", "gpt-oss-120b"):
            assert "service_tier" not in read(endpoint, more(endpoint, model=model)).body
    for tier in (None, "auto"):
        asked = more("anthropic.messages", model="claude-sonnet-4-6", service_tier=tier)
        assert read("anthropic.messages", asked).body["service_tier"] == "standard_only"
        assert "service_tier" not in read("anthropic.count_tokens", asked).body


def test_a_stream_of_chunks_is_made_to_tell_its_usage() -> None:
    asked = read("openai.chat", more("openai.chat", stream=True))
    assert (asked.body["stream_options"], asked.strips_usage) == ({"include_usage": True}, True)
    knows = read("openai.chat", more("openai.chat", stream=True, stream_options={"include_usage": True}))
    assert not knows.strips_usage
    assert "stream_options" not in read("openai.chat", LEAST["openai.chat"]).body


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.endpoint)
def test_every_api_is_told_no_in_its_own_words(shape: Shape) -> None:
    for status in (400, 401, 402, 403, 404, 413, 426, 500, 502, 503):
        error = shape.refusal(status, "a sentence")["error"]
        assert error["message"] == "a sentence"
    match shape.provider:
        case "anthropic":
            assert shape.refusal(402, "")["error"]["type"] == "billing_error"
        case "openai":
            assert shape.refusal(402, "")["error"]["code"] == "insufficient_quota"
        case _:
            assert shape.refusal(402, "")["error"]["code"] == 402
