"""Whatever JSON is sent in a request's place, it is refused, or bounded by no less than its provider can charge."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay.answers import Refused
from relay.shapes.shape import Wish, judged
from tests.relay.conftest import CHAT, MESSAGES, RESPONSES, Relay
from tests.relay.test_shapes import DATA, FUNCTION, IMAGE, SHAPE, TOOL, caps

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}
RICH: dict[str, dict[str, Any]] = {
    "anthropic.messages": {
        "model": "m", "max_tokens": 9_000, "stream": True, "system": [{"type": "text", "text": "Be brief."}],
        "thinking": {"type": "enabled", "budget_tokens": 2_000}, "tools": [TOOL],
        "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}, PICTURE]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "u", "name": "t", "input": {"a": [1]}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "u", "content": [PICTURE, {"type": "text", "text": "x"}]},
                {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "y"}]}},
                {"type": "tool_result", "tool_use_id": "u", "content": [{"type": "tool_reference", "tool_name": "t"}]},
                {"type": "tool_addition", "tool": {"definition": TOOL}},
            ]},
        ],
    },
    "openai.responses": {
        "model": "m", "instructions": "Be brief.", "max_output_tokens": 9_000, "stream": True, "store": True,
        "include": ["reasoning.encrypted_content"],
        "tools": [FUNCTION, {"type": "namespace", "tools": [FUNCTION]}, {"type": "tool_search", "execution": "client"}],
        "input": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "input_image", "image_url": DATA}]},
            {"type": "reasoning", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": DATA}]},
            {"type": "tool_search_output", "execution": "client", "tools": [FUNCTION]},
        ],
    },
    "openai.chat": {
        "model": "m", "max_tokens": 9_000, "stream": True, "stream_options": {"include_usage": False},
        "tools": [{"type": "function", "function": {"name": "t", "parameters": {}}}], "n": 1,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": DATA, "detail": "high"}},
            ]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "x"},
        ],
    },
    "gemini.generate": {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [{"name": "t"}]}],
        "generationConfig": {"maxOutputTokens": 9_000, "candidateCount": 1, "thinkingConfig": {"thinkingBudget": 500}},
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}, {"inlineData": {"mimeType": "image/png", "data": IMAGE}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "t", "args": {"a": [1]}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "t", "response": {"b": None}}}]},
        ],
    },
}  # fmt: skip
DEAR: list[Any] = [
    {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
    {"type": "document", "source": {"type": "file", "file_id": "f"}},
    {"type": "input_image", "image_url": "https://x/y.png"}, {"type": "input_file", "file_id": "f"},
    {"type": "image_url", "image_url": {"url": "https://x/y.png"}}, {"type": "item_reference", "id": "i"},
    {"fileData": {"fileUri": "x"}}, {"inlineData": {"mimeType": "audio/wav", "data": "x"}},
    {"type": "web_search_20250305", "name": "w"}, {"type": "web_search"}, {"googleSearch": {}}, {"type": "mcp"},
]  # fmt: skip
"""What costs more than its bytes, or nobody knows what, where a provider reads it."""
NAMES = ["type", "text", "content", "parts", "source", "data", "tools", "input", "image_url", "url", "name", "n"]
WORDS = [*NAMES, "image", "base64", "tool_result", "message", "tool_reference", "1h", DATA, IMAGE, ""]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
    | st.sampled_from(DEAR).map(copy.deepcopy),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip

EACH = {"anthropic.messages": 4_784, "openai.responses": 10_000, "openai.chat": 10_000, "gemini.generate": 258}
"""Tokens that a model makes of an image at the least that its provider tells of as its most; of Gemini's, one tile."""


@st.composite
def mutated(draw: st.DrawFn, endpoint: str) -> dict[str, Any]:
    """A legal request, into which up to four times something was put anywhere."""
    body = copy.deepcopy(RICH[endpoint])
    for _ in range(draw(st.integers(1, 4))):
        holder = draw(st.sampled_from(list(holders(body))))
        value = draw(JSON)
        if isinstance(holder, list):
            at = draw(st.integers(0, len(holder)))
            holder[at : at + draw(st.integers(0, 1))] = [value]
        else:
            holder[draw(st.sampled_from([*holder, *NAMES]))] = value
    return body


def holders(value: Any) -> Iterator[Any]:
    if isinstance(value, list | dict):
        yield value
        for each in value if isinstance(value, list) else value.values():
            yield from holders(each)


def images(endpoint: str, sent: dict[str, Any]) -> list[str]:
    """The images that a provider sees, each as it came. AssertionError for what it would have to fetch or to run."""

    def listed(place: Any, name: str) -> list[Any]:
        found = (place or {}).get(name)
        return found if isinstance(found, list) else []

    tools = listed(sent, "tools")
    match endpoint:
        case "anthropic.messages":
            assert all(edit["type"].startswith("clear_") for edit in listed(sent.get("context_management"), "edits"))
            assert all((tool.get("type") or "custom") == "custom" for tool in tools)
            contents = [sent.get("system"), *(message.get("content") for message in listed(sent, "messages"))]
            return [image for content in contents for image in of_blocks(content)]
        case "gemini.generate":
            assert all(tool.keys() <= {"functionDeclarations"} or None in tool.values() for tool in tools)
            contents = [*listed(sent, "contents"), sent.get("systemInstruction")]
            parts = [part for content in contents for part in listed(content, "parts")]
            assert not [part for part in parts if part.get("fileData")]
            return [part["inlineData"]["data"] for part in parts if part.get("inlineData")]
        case "openai.chat":
            assert all(tool["type"] == "function" for tool in tools)
            return of_parts([message.get("content") for message in listed(sent, "messages")])
    items = listed(sent, "input")
    tools += [tool for item in items if item.get("type") == "tool_search_output" for tool in listed(item, "tools")]
    assert all(tool["type"] in ("function", "namespace", "tool_search") for tool in tools)
    kinds = {"", "message", *(kind for kind in (item.get("type") for item in items) if kind and "output" in kind)}
    read = [item for item in items if (item.get("type") or "") in kinds]
    assert all(item.get("type") != "item_reference" for item in items)
    return of_parts([item.get("output" if "output" in (item.get("type") or "") else "content") for item in read])


def of_blocks(content: Any) -> Iterator[str]:
    """Of Anthropic's blocks, which may hold others."""
    for block in content if isinstance(content, list) else []:
        source = block.get("source") or {}
        match block["type"]:
            case "image":
                assert source["type"] == "base64"
                yield source["data"]
            case "document":
                assert source["type"] in ("text", "content")
                yield from of_blocks(source.get("content"))
            case "tool_result":
                yield from of_blocks(block.get("content"))


def of_parts(contents: list[Any]) -> list[str]:
    parts = [part for content in contents if isinstance(content, list) for part in content]
    assert not [part for part in parts if part["type"] == "input_file"]
    urls = [part["image_url"] for part in parts if part["type"] in ("input_image", "image_url")]
    found = [url["url"] if isinstance(url, dict) else url for url in urls]
    assert all(url.lower().startswith("data:") for url in found)
    return found


def bounded(endpoint: str, body: dict[str, Any]) -> Wish | None:
    try:
        return judged(SHAPE[endpoint], orjson.loads(orjson.dumps(body)), "m", 16_384)
    except Refused as error:
        refused = error
    assert refused.status == 400
    assert "\n" not in str(refused)
    return None


@pytest.mark.parametrize("endpoint", RICH)
def test_a_request_with_everything_in_it_that_is_let_through_is_let_through(endpoint: str) -> None:
    wish = bounded(endpoint, RICH[endpoint])
    assert wish is not None
    assert images(endpoint, orjson.loads(wish.encoded))


@pytest.mark.parametrize("endpoint", RICH)
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_any_json_is_refused_or_costs_no_more_than_its_bound(endpoint: str, data: st.DataObject) -> None:
    wish = bounded(endpoint, data.draw(mutated(endpoint)))
    if wish is None:
        return
    sent = orjson.loads(wish.encoded)
    assert caps(wish) == [wish.output]
    assert 1 <= wish.least <= wish.output
    assert not sent.get("background")
    seen = images(endpoint, sent)
    assert wish.content >= len(wish.encoded) - sum(map(len, seen)) + len(seen) * EACH[endpoint]


DEEP = [
    (MESSAGES, '"messages":[{"content":', '[{"type":"tool_result","content":', "}]", "}]"),
    (MESSAGES, '"messages":[{"content":', '[{"type":"document","source":{"type":"content","content":', "}}]", "}]"),
    (RESPONSES, '"input":"Hi","tools":', '[{"type":"namespace","tools":', "}]", ""),
]


@pytest.mark.parametrize(("path", "head", "opens", "closes", "tail"), DEEP)
@pytest.mark.parametrize("times", [50, 200, 330, 500, 3_000])
def test_what_is_nested_without_end_is_refused(
    metered: Relay, path: str, head: str, opens: str, closes: str, tail: str, times: int
) -> None:
    raw = f'{{"model":"a-model","max_tokens":9,{head}{opens * times}[]{closes * times}{tail}}}'
    answer = metered.post(path, content=raw.replace('"max_tokens":9,', "") if path == RESPONSES else raw)
    assert answer.status_code == (200 if times == 50 else 400)


def test_a_tool_that_is_nested_too_deeply_to_be_counted_is_refused(metered: Relay) -> None:
    body = RICH["anthropic.messages"] | {"model": "a-model", "tools": ["deep"]}
    deep = b'{"name":"t","input_schema":' + b"[" * 300 + b"]" * 300 + b"}"
    assert metered.post(MESSAGES, content=orjson.dumps(body).replace(b'"deep"', deep)).status_code == 400


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (MESSAGES, {"messages": [{"content": [{"type": {}}]}]}),
        (MESSAGES, {"messages": [{"content": [{"type": "image", "source": {"type": []}}]}]}),
        (CHAT, {"tools": [{"type": []}]}),
        (CHAT, {"messages": [{"content": [{"type": [1]}]}]}),
        (RESPONSES, {"input": [{"type": {"a": 1}}]}),
        (RESPONSES, {"input": [{"role": "user", "content": [{"type": []}]}]}),
        (RESPONSES, {"input": "Hi", "tools": [{"type": {}}]}),
    ],
)
def test_what_does_not_say_its_kind_in_a_text_is_refused_and_named(
    metered: Relay, path: str, body: dict[str, Any]
) -> None:
    answer = metered.post(path, json={"model": "a-model", **body})
    assert answer.status_code == 400
    assert "type: a text is expected" in answer.json()["error"]["message"]
