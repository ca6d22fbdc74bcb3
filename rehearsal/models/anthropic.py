"""Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rehearsal.models.api import Api, Event, Json, as_json, fresh, listed, pieces, required, text_of
from rehearsal.models.conversation import Conversation, Entry, Reply, Result, Said, Schema, Size, Tool, person, size
from rehearsal.models.usage import Usage

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}
_UNCACHED = 4
"""How many tokens at a request's end are in no cache, as usage from the real API shows."""


def read(body: Json) -> Conversation:
    required(body, "model", "max_tokens", "messages")
    messages = listed(body, "messages")
    # Instructions also come between the messages, with a role of their own.
    system = [text_of(body.get("system"), "text")]
    system += [text_of(message.get("content"), "text") for message in messages if message.get("role") == "system"]
    return Conversation(
        model=str(body["model"]),
        system="\n".join(system),
        entries=tuple(entry for message in messages for entry in _entries(message)),
        tools=tuple(_tool(tool) for tool in listed(body, "tools")),
        schema=_schema(body),
        stream=bool(body.get("stream")),
        size=_size(body, messages),
    )


def _entries(message: Json) -> Iterator[Entry]:
    content, role = message.get("content"), message.get("role")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else listed(message, "content")
    if role == "assistant":
        calls = {str(block.get("id")): str(block.get("name")) for block in blocks if block.get("type") == "tool_use"}
        yield Said(text_of(blocks, "text"), calls)
    if role != "user":
        return
    for block in blocks:
        if block.get("type") == "tool_result":
            yield Result(str(block.get("tool_use_id")), text_of(block.get("content"), "text"))
        elif block.get("type") == "text":
            yield person(str(block.get("text", "")))


def _tool(tool: Json) -> Tool:
    return Tool(str(tool.get("name")), tool.get("input_schema") or {})


def _schema(body: Json) -> Schema | None:
    wanted = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    found: Schema | None = wanted.get("schema") if wanted.get("type") == "json_schema" else None
    return found


def _size(body: Json, messages: list[Json]) -> Size:
    found = size(body, messages, lambda message: str(message.get("role")))
    if '"cache_control"' not in as_json(body):
        return replace(found, cached=0)
    return replace(found, written=max(0, found.tokens - found.cached - _UNCACHED))


def answer(conversation: Conversation, reply: Reply, usage: Usage | None) -> Json:
    text: list[Json] = [{"type": "text", "text": reply.text}] if reply.text else []
    message = _message(conversation, [*text, *(_tool_use(call.tool.name, call.input) for call in reply.calls)])
    message |= {"stop_reason": _stop_reason(reply)}
    return message if usage is None else message | {"usage": _usage(usage, usage.output)}


def events(conversation: Conversation, reply: Reply, usage: Usage | None) -> Iterator[Event]:
    begun = _message(conversation, [])
    yield _event("message_start", message=begun if usage is None else begun | {"usage": _usage(usage, 1)})
    blocks: list[tuple[Json, Json, list[str]]] = []
    if reply.text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta"}, pieces(reply.text)))
    for call in reply.calls:
        # An input begins with an empty piece.
        arrives = ["", *pieces(as_json(call.input))]
        blocks.append((_tool_use(call.tool.name, {}), {"type": "input_json_delta"}, arrives))
    for index, (start, delta, arrives) in enumerate(blocks):
        yield _event("content_block_start", index=index, content_block=start)
        if index == 0:
            yield _event("ping")
        name = "text" if delta["type"] == "text_delta" else "partial_json"
        for piece in arrives:
            yield _event("content_block_delta", index=index, delta={**delta, name: piece})
        yield _event("content_block_stop", index=index)
    end: Json = {"delta": {"stop_reason": _stop_reason(reply), "stop_sequence": None}}
    yield _event("message_delta", **end, **({} if usage is None else {"usage": _usage(usage, usage.output)}))
    yield _event("message_stop")


def refusal(status: int, message: str, request: str) -> Json:
    return {
        "type": "error",
        "error": {"type": _ERRORS.get(status, "api_error"), "message": message},
        "request_id": request,
    }


def failure(message: str) -> Sequence[Event]:
    return (_event("error", error={"type": "overloaded_error", "message": message}),)


def _event(kind: str, **data: Any) -> Event:
    return Event({"type": kind, **data}, kind)


def _message(conversation: Conversation, content: list[Json]) -> Json:
    return {
        "id": fresh("msg"),
        "type": "message",
        "role": "assistant",
        "model": conversation.model,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
    }


def _tool_use(name: str, given: Any) -> Json:
    return {"type": "tool_use", "id": fresh("toolu"), "name": name, "input": given}


def _stop_reason(reply: Reply) -> str:
    return "tool_use" if reply.calls else "end_turn"


def _usage(usage: Usage, output: int) -> Json:
    """Input tokens are told without those of either side of the cache, output tokens with the reasoning."""
    return {
        "input_tokens": usage.input - usage.cached - usage.written,
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": usage.written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    }


ANTHROPIC = Api("anthropic", read, answer, events, refusal, failure, "request-id")
