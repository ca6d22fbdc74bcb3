"""OpenAI's Responses: https://platform.openai.com/docs/api-reference/responses."""

from __future__ import annotations

from typing import Any

from relay.shapes.openai import image_tokens, standard_tier, unpaid, usage_of
from relay.shapes.shape import (
    LEAST_OUTPUT,
    Images,
    Json,
    Shape,
    Watch,
    Wish,
    flag,
    kind_of,
    listed_like_openai,
    objects,
    only,
    refused_like_openai,
    text,
    tokens,
    unbounded,
)
from relay.usage import Usage

_FIELDS = frozenset(
    {
        "background", "client_metadata", "include", "input", "instructions", "max_output_tokens", "max_tool_calls",
        "metadata", "model", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention", "reasoning",
        "safety_identifier", "service_tier", "store", "stream", "stream_options", "temperature", "text",
        "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
    }
)  # fmt: skip
_INCLUDED = frozenset({"reasoning.encrypted_content", "message.output_text.logprobs"})
_WHOLE = {
    "function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action",
    "tool_search_call": "arguments",
}  # fmt: skip
"""What an item has in it that is there as a whole. With an id alone it is looked up, and may be of any length."""
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_TEXTS = frozenset({"input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text"})
_TOOLS = frozenset({"function", "custom", "local_shell"})


class Responses(Shape):
    endpoint = "openai.responses"
    provider = "openai"
    prices = "openai"

    def matches(self, path: str) -> str | None:
        return "" if path == "openai/v1/responses" else None

    def read(self, body: Json, model: str, output: int) -> Wish:
        only(body, _FIELDS)
        if flag(body, "background"):
            raise unbounded("background")
        standard_tier(body)
        body["store"] = False
        named = text(body.get("model"), "model")
        images = Images(image_tokens(named))
        _items(body.get("input"), images)
        _tools(objects(body.get("tools"), "tools"))
        included = body.get("include")
        if included is not None and not (isinstance(included, list) and set(map(str, included)) <= _INCLUDED):
            raise unbounded("include")
        cap = tokens(body.get("max_output_tokens"), "max_output_tokens") or output
        body["max_output_tokens"] = cap
        wish = Wish(body, named, flag(body, "stream"), cap, min(cap, LEAST_OUTPUT))
        wish.image_bytes, wish.image_tokens = images.bytes, images.tokens
        return wish

    def lower(self, wish: Wish, output: int) -> None:
        wish.body["max_output_tokens"] = wish.output = output

    def used(self, answer: Any) -> Usage | None:
        return usage_of(answer, "input", "output")

    def watch(self) -> Watch:
        return _Watch(self)

    def is_out_of_credit(self, status: int, error: Json) -> bool:
        return super().is_out_of_credit(status, error) or unpaid(error)

    def refusal(self, status: int, message: str) -> Json:
        return refused_like_openai(status, message)

    def listing(self, model: str) -> Json:
        return listed_like_openai(model)


def _items(given: Any, images: Images) -> None:
    if isinstance(given, str):
        return
    for item in objects(given, "input"):
        kind = kind_of(item, "input") or "message"
        if kind == "message":
            _require(item, "role", "content")
            _parts(item.get("content"), images, "input.content")
        elif kind == "reasoning":
            text(item.get("encrypted_content"), "input: reasoning.encrypted_content")
        elif kind in _OUTPUTS:
            _require(item, "output")
            _parts(item.get("output"), images, "input.output")
        elif kind == "tool_search_output":
            if item.get("execution") != "client":
                raise unbounded("input: a search for tools that is not the client's")
            _tools(objects(item.get("tools"), "input.tools"))
        elif kind not in _WHOLE or (kind == "tool_search_call" and item.get("execution") != "client"):
            raise unbounded(f"input: an item of the type {kind}")
        else:
            _require(item, _WHOLE[kind])


def _require(item: Json, *names: str) -> None:
    for name in names:
        if item.get(name) is None:
            raise unbounded(f"input: an item without {name}, which is a reference to a stored one,")


def _parts(content: Any, images: Images, where: str) -> None:
    if content is None or isinstance(content, str):
        return
    for part in objects(content, where):
        kind = kind_of(part, where)
        if kind == "input_image":
            if part.get("file_id") is not None:
                raise unbounded(f"{where}.file_id")
            images.data_url(part.get("image_url"), f"{where}.image_url")
        elif kind not in _TEXTS:
            raise unbounded(f"{where}: a part of the type {kind}")


def _tools(offered: list[Json]) -> None:
    for tool in offered:
        kind = kind_of(tool, "tools")
        if kind == "namespace":
            _tools(objects(tool.get("tools"), "tools.tools"))
        elif kind == "tool_search":
            if tool.get("execution") != "client":
                raise unbounded("tools: a search for tools that is not the client's")
        elif kind not in _TOOLS:
            raise unbounded(f"tools: a tool of the type {kind}")


class _Watch(Watch):
    """Every event carries the response with usage null until the one that ends it, well or not."""

    def __init__(self, shape: Responses) -> None:
        self._shape = shape
        self._used: Usage | None = None

    def see(self, event: Any) -> None:
        response = event.get("response") if isinstance(event, dict) else None
        self._used = self._shape.used(response) or self._used

    def used(self, *, whole: bool) -> Usage | None:
        return self._used
