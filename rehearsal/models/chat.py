"""OpenAI's Chat Completions API, which most other providers speak too."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from rehearsal.models.api import Api, Event, Json, as_json, fresh, listed, pieces, required, text_of
from rehearsal.models.conversation import Conversation, Entry, Reply, Result, Said, Schema, Tool, ToolCall, person, size
from rehearsal.models.openai import refusal
from rehearsal.models.usage import Usage


def read(body: Json) -> Conversation:
    required(body, "model", "messages")
    messages = listed(body, "messages")
    told = [message for message in messages if message.get("role") in ("system", "developer")]
    return Conversation(
        model=str(body["model"]),
        system="\n".join(_text(message) for message in told),
        entries=tuple(entry for message in messages for entry in _entries(message)),
        tools=tuple(_tool(tool.get("function") or {}) for tool in listed(body, "tools")),
        schema=_schema(body),
        stream=bool(body.get("stream")),
        stream_usage=bool((body.get("stream_options") or {}).get("include_usage")),
        size=size(body, messages, lambda message: str(message.get("role"))),
    )


def _text(message: Json) -> str:
    return text_of(message.get("content"), "text")


def _entries(message: Json) -> Iterator[Entry]:
    match message.get("role"):
        case "assistant":
            calls = listed(message, "tool_calls")
            names = {str(call.get("id")): str((call.get("function") or {}).get("name")) for call in calls}
            yield Said(_text(message), names)
        case "user":
            yield person(_text(message))
        case "tool":
            yield Result(str(message.get("tool_call_id")), _text(message))


def _tool(function: Json) -> Tool:
    return Tool(str(function.get("name")), function.get("parameters") or {})


def _schema(body: Json) -> Schema | None:
    wanted = body.get("response_format") or {}
    found: Schema | None = wanted.get("json_schema", {}).get("schema") if wanted.get("type") == "json_schema" else None
    return found


def answer(conversation: Conversation, reply: Reply, usage: Usage | None) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.calls:
        message["tool_calls"] = [_call(call) for call in reply.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(reply)}
    head = _head(conversation, "chat.completion")
    return {**head, "choices": [choice]} | ({} if usage is None else {"usage": _usage(usage)})


def events(conversation: Conversation, reply: Reply, usage: Usage | None) -> Iterator[Event]:
    """Usage comes in a chunk of its own, and only to whoever asked for it; the others then say null."""
    told = conversation.stream_usage and usage is not None
    head = _head(conversation, "chat.completion.chunk") | ({"usage": None} if told else {})

    def chunk(delta: Json, finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return Event({**head, "choices": [choice]})

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    for piece in pieces(reply.text):
        yield chunk({"content": piece})
    for index, call in enumerate(reply.calls):
        whole = _call(call)
        arguments = whole["function"]["arguments"]
        started = {**whole, "function": {**whole["function"], "arguments": ""}}
        yield chunk({"tool_calls": [{"index": index, **started}]})
        for piece in pieces(arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish_reason(reply))
    if told and usage is not None:
        yield Event({**head, "choices": [], "usage": _usage(usage)})
    yield Event("[DONE]")


def failure(message: str) -> Sequence[Event]:
    return (Event(refusal(500, message, "")),)


def _head(conversation: Conversation, kind: str) -> Json:
    return {
        "id": fresh("chatcmpl"),
        "object": kind,
        "created": int(time.time()),
        "model": conversation.model,
        "service_tier": "default",
    }


def _call(call: ToolCall) -> Json:
    function: Json = {"name": call.tool.name, "arguments": as_json(call.input)}
    return {"id": fresh("call"), "type": "function", "function": function}


def _finish_reason(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _usage(usage: Usage) -> Json:
    """Cached tokens are a part of the prompt, reasoning of the completion."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


CHAT = Api("chat", read, answer, events, refusal, failure, "x-request-id")
