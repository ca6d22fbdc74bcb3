"""Each API's replies, event by event, as the providers send them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rehearsal.models.provider import APIS, Provider, request

CALL = {"text": "I run it.", "tool": "bash", "input": {"command": "make " + "x" * 40}}
USED = {"input": 100, "cached": 60, "written": 30, "output": 20, "reasoning": 5}


def test_a_stream_of_messages_has_anthropics_shape(provider: Provider) -> None:
    provider.script(CALL, usage=USED)
    events = provider.events("anthropic", request("anthropic"))
    assert all(event.name == event.data["type"] for event in events)
    names = [event.name for event in events]
    text_pieces = names.index("content_block_stop") - 3
    assert names == [
        "message_start", "content_block_start", "ping", *["content_block_delta"] * text_pieces, "content_block_stop",
        "content_block_start", *["content_block_delta"] * 4, "content_block_stop", "message_delta", "message_stop",
    ]  # fmt: skip
    message = events[0].data["message"]
    assert (message["role"], message["content"], message["stop_reason"]) == ("assistant", [], None)
    assert message["usage"] == {
        "input_tokens": 10,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 60,
        "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 1,
        "service_tier": "standard",
    }
    started = [event.data for event in events if event.name == "content_block_start"]
    assert [block["index"] for block in started] == [0, 1]
    assert started[0]["content_block"] == {"type": "text", "text": ""}
    assert (started[1]["content_block"]["name"], started[1]["content_block"]["input"]) == ("bash", {})
    deltas = [event.data for event in events if event.name == "content_block_delta"]
    assert "".join(each["delta"]["text"] for each in deltas if each["index"] == 0) == "I run it."
    partial = [each["delta"]["partial_json"] for each in deltas if each["index"] == 1]
    assert (partial[0], json.loads("".join(partial))) == ("", CALL["input"])
    assert events[-2].data["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert events[-2].data["usage"]["output_tokens"] == 20


def test_a_stream_of_responses_has_openais_shape(provider: Provider) -> None:
    provider.script(CALL, usage=USED)
    events = provider.events("responses", request("responses"))
    assert all(event.name == event.data["type"] for event in events)
    assert [event.data["sequence_number"] for event in events] == list(range(len(events)))
    names = [event.name.removeprefix("response.") for event in events]
    argument_pieces = names.count("function_call_arguments.delta")
    assert names == [
        "created", "in_progress",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done",
        "output_item.done",
        "output_item.added", *["function_call_arguments.delta"] * argument_pieces, "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]  # fmt: skip
    assert argument_pieces > 1
    arguments = [event.data["delta"] for event in events if event.name.endswith("arguments.delta")]
    assert json.loads("".join(arguments)) == CALL["input"]
    done = [event.data["item"] for event in events if event.name == "response.output_item.done"]
    assert [item["type"] for item in done] == ["message", "function_call"]
    completed = events[-1].data["response"]
    assert (completed["status"], completed["output"]) == ("completed", done)
    assert completed["usage"] == {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 120,
    }


def test_a_stream_of_chat_has_openais_shape(provider: Provider) -> None:
    provider.script(CALL, usage=USED)
    events = provider.events("chat", request("chat", stream_options={"include_usage": True}))
    assert {event.name for event in events} == {""}
    assert events[-1].data == "[DONE]"
    *chunks, used = [event.data for event in events[:-1]]
    assert {chunk["object"] for chunk in [*chunks, used]} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in [*chunks, used]}) == 1
    assert all(chunk["usage"] is None for chunk in chunks)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0]["role"] == "assistant"
    assert "".join(delta.get("content") or "" for delta in deltas) == "I run it."
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert (calls[0]["type"], calls[0]["function"]["name"]) == ("function", "bash")
    assert json.loads("".join(call["function"]["arguments"] for call in calls)) == CALL["input"]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["tool_calls"]
    assert used["choices"] == []
    assert used["usage"] == {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }


def test_a_stream_of_chat_tells_no_usage_to_whoever_did_not_ask(provider: Provider) -> None:
    events = provider.events("chat", request("chat"))
    assert all("usage" not in event.data for event in events[:-1])


def whole(api: str, answer: Any) -> tuple[str, list[tuple[str, Any]]]:
    """The text and the calls of a reply that was not streamed."""
    if api == "anthropic":
        content = answer["content"]
        text = "".join(block["text"] for block in content if block["type"] == "text")
        return text, [(block["name"], block["input"]) for block in content if block["type"] == "tool_use"]
    if api == "responses":
        output = answer["output"]
        text = "".join(item["content"][0]["text"] for item in output if item["type"] == "message")
        calls = [item for item in output if item["type"] == "function_call"]
        return text, [(item["name"], json.loads(item["arguments"])) for item in calls]
    message = answer["choices"][0]["message"]
    functions = [call["function"] for call in message.get("tool_calls", [])]
    return message["content"] or "", [(each["name"], json.loads(each["arguments"])) for each in functions]


@pytest.mark.parametrize("api", APIS)
def test_a_reply_that_is_not_streamed_says_the_same(provider: Provider, api: str) -> None:
    provider.script({"text": "Both.", "tools": [CALL, {"tool": "watchbill_submit_result", "input": {"summary": "x"}}]})
    answer = provider.answer(api, request(api))
    assert whole(api, answer) == ("Both.", [("bash", CALL["input"]), ("watchbill_submit_result", {"summary": "x"})])
    assert answer["usage"]


def test_codexs_tools_that_take_text_and_those_in_groups_are_called_by_their_own_kind(provider: Provider) -> None:
    body = request("responses", tools={})
    body["tools"] = [
        {"type": "custom", "name": "apply_patch"},
        {"type": "namespace", "name": "mcp__watchbill", "tools": [{"type": "function", "name": "submit_result"}]},
    ]
    provider.script({"tools": [{"tool": "apply_patch", "input": "*** Begin"}, {"tool": "submit_result", "input": {}}]})
    patch, submit = provider.answer("responses", body)["output"]
    assert (patch["type"], patch["name"], patch["input"]) == ("custom_tool_call", "apply_patch", "*** Begin")
    assert (submit["type"], submit["namespace"], submit["arguments"]) == ("function_call", "mcp__watchbill", "{}")
    events = provider.events("responses", body)
    assert "response.custom_tool_call_input.delta" in [event.name for event in events]


def test_models_are_listed_and_tokens_counted(provider: Provider) -> None:
    for maker in ("anthropic", "openai"):
        [model] = provider.http.get(f"{provider.url}/{maker}/v1/models").json()["data"]
        assert model["id"] == "rehearsal"
    asked = request("anthropic")
    counted = provider.http.post(f"{provider.url}/anthropic/v1/messages/count_tokens", json=asked).json()
    assert counted == {"input_tokens": -(-len(json.dumps(asked)) // 4)}


@pytest.mark.parametrize("api", APIS)
def test_a_request_without_what_it_needs_is_refused_as_the_provider_would(provider: Provider, api: str) -> None:
    answer = provider.ask(api, {"model": "rehearsal"})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert "Field required" in error["message"]


def test_a_path_that_there_is_not_is_refused_as_the_provider_would(provider: Provider) -> None:
    assert provider.http.get(f"{provider.url}/anthropic/v1/nothing").json()["error"]["type"] == "not_found_error"
    assert provider.http.get(f"{provider.url}/openai/v1/nothing").json()["error"]["code"] == "not_found"
