"""OpenAI's Responses API."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Any

from rehearsal.models.api import Api, Event, Json, Unreadable, as_json, fresh, listed, pieces, required, text_of
from rehearsal.models.conversation import Conversation, Entry, Reply, Result, Said, Schema, Tool, ToolCall, person, size
from rehearsal.models.openai import refusal
from rehearsal.models.usage import Usage

_BY_MODEL = ("message", "reasoning", "function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
_SEARCH = "tool_search"


def read(body: Json) -> Conversation:
    required(body, "model", "input")
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else listed(body, "input")
    if body.get("previous_response_id"):
        raise Unreadable("previous_response_id: nothing is kept between requests; send the whole input")
    system = [str(body.get("instructions") or "")]
    system += [_text(item) for item in items if _role(item) in ("developer", "system")]
    # Tools that a search has found are offered by its answer in the conversation, and again by the next one.
    found = [tool for item in items if item.get("type") == "tool_search_output" for tool in listed(item, "tools")]
    tools = [tool for each in (*listed(body, "tools"), *found) for tool in _tools(each)]
    return Conversation(
        model=str(body["model"]),
        system="\n".join(system),
        entries=tuple(_entries(items)),
        tools=tuple({(tool.namespace, tool.name): tool for tool in tools}.values()),
        schema=_schema(body),
        stream=bool(body.get("stream")),
        size=size(body, items, _role),
    )


def _role(item: Json) -> str:
    kind = item.get("type", "message")
    if kind == "message":
        return str(item.get("role"))
    return "assistant" if kind in _BY_MODEL else "tool"


def _text(item: Json) -> str:
    return text_of(item.get("content"), "input_text", "output_text", "text")


def _entries(items: list[Json]) -> Iterator[Entry]:
    """Each run of items that the model made is one turn of it."""
    for role, group in itertools.groupby(items, _role):
        run = list(group)
        if role == "assistant":
            calls = {str(item["call_id"]): str(item.get("name") or _SEARCH) for item in run if item.get("call_id")}
            yield Said("\n".join(_text(item) for item in run if "content" in item), calls)
        elif role == "user":
            yield from (person(_text(item)) for item in run)
        elif role == "tool":
            yield from (Result(str(item.get("call_id")), _output(item)) for item in run)


def _output(item: Json) -> str:
    output = item.get("output", item.get("tools"))
    return text_of(output, "input_text", "output_text", "text") if isinstance(output, list) else str(output)


def _tools(tool: Json, namespace: str = "") -> Iterator[Tool]:
    kind = tool.get("type")
    if kind == "namespace":
        for each in listed(tool, "tools"):
            yield from _tools(each, str(tool.get("name")))
    elif kind in ("function", "custom", _SEARCH):
        yield Tool(str(tool.get("name", kind)), tool.get("parameters") or {}, namespace, searches=kind == _SEARCH)


def _schema(body: Json) -> Schema | None:
    wanted = (body.get("text") or {}).get("format") or {}
    found: Schema | None = wanted.get("schema") if wanted.get("type") == "json_schema" else None
    return found


def answer(conversation: Conversation, reply: Reply, usage: Usage | None) -> Json:
    output = [_message(reply.text)] if reply.text else []
    output += [_call(call) for call in reply.calls]
    return _completed(_response(conversation), output, usage)


def events(conversation: Conversation, reply: Reply, usage: Usage | None) -> Iterator[Event]:
    response = _response(conversation)
    yield from _numbered(itertools.chain(_opening(response), _body(response, reply, usage)))


def failure(message: str) -> Sequence[Event]:
    response = {"id": fresh("resp"), "object": "response", "output": []}
    failed = {**response, "status": "failed", "error": {"code": "server_error", "message": message}}
    return tuple(_numbered(iter([_event("response.failed", response=failed)])))


def _opening(response: Json) -> Iterator[Event]:
    yield _event("response.created", response=response)
    yield _event("response.in_progress", response=response)


def _body(response: Json, reply: Reply, usage: Usage | None) -> Iterator[Event]:
    output: list[Json] = []
    if reply.text:
        output.append(_message(reply.text))
        yield from _message_events(output[0])
    for call in reply.calls:
        output.append(_call(call))
        yield from _call_events(len(output) - 1, output[-1])
    yield _event("response.completed", response=_completed(response, output, usage))


def _message_events(item: Json) -> Iterator[Event]:
    where: Json = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    [part] = item["content"]
    yield _event("response.output_item.added", output_index=0, item={**item, "status": "in_progress", "content": []})
    yield _event("response.content_part.added", **where, part={**part, "text": ""})
    for piece in pieces(part["text"]):
        yield _event("response.output_text.delta", **where, delta=piece, logprobs=[])
    yield _event("response.output_text.done", **where, text=part["text"], logprobs=[])
    yield _event("response.content_part.done", **where, part=part)
    yield _event("response.output_item.done", output_index=0, item=item)


def _call_events(index: int, item: Json) -> Iterator[Event]:
    where: Json = {"item_id": item["id"], "output_index": index}
    # A search comes whole; the input of any other call in pieces.
    name, kind = {
        "function_call": ("arguments", "function_call_arguments"),
        "custom_tool_call": ("input", "custom_tool_call_input"),
    }.get(item["type"], ("", ""))
    started = {**item, "status": "in_progress"} | ({name: ""} if name else {})
    yield _event("response.output_item.added", output_index=index, item=started)
    if name:
        for piece in pieces(item[name]):
            yield _event(f"response.{kind}.delta", **where, delta=piece)
        yield _event(f"response.{kind}.done", **where, **{name: item[name]})
    yield _event("response.output_item.done", output_index=index, item=item)


def _event(kind: str, **data: Any) -> Event:
    return Event({"type": kind, **data}, kind)


def _numbered(unnumbered: Iterator[Event]) -> Iterator[Event]:
    for number, event in enumerate(unnumbered):
        assert isinstance(event.data, dict), "every event of this API is an object"
        yield Event({**event.data, "sequence_number": number}, event.name)


def _response(conversation: Conversation) -> Json:
    return {
        "id": fresh("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": conversation.model,
        "output": [],
        "parallel_tool_calls": True,
        "tools": [],
        "usage": None,
    }


def _message(text: str) -> Json:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": fresh("msg"), "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def _call(call: ToolCall) -> Json:
    tool = call.tool
    if tool.searches:
        return {
            "id": fresh("tsc"),
            "type": "tool_search_call",
            "status": "completed",
            "call_id": fresh("call"),
            "execution": "client",
            "arguments": call.input,
        }
    raw = isinstance(call.input, str)
    return {
        "id": fresh("ctc" if raw else "fc"),
        "type": "custom_tool_call" if raw else "function_call",
        "status": "completed",
        "call_id": fresh("call"),
        "name": tool.name,
        **({"namespace": tool.namespace} if tool.namespace else {}),
        "input" if raw else "arguments": as_json(call.input),
    }


def _completed(response: Json, output: list[Json], usage: Usage | None) -> Json:
    """Cached tokens are a part of the input, reasoning of the output."""
    used = usage and {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
    return {**response, "status": "completed", "output": output, "usage": used}


RESPONSES = Api("responses", read, answer, events, refusal, failure, "x-request-id")
