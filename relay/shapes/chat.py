"""OpenAI's Chat Completions, which most other providers and servers speak too.

https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from typing import Any

from relay.answers import Refused
from relay.shapes.openai import image_tokens, is_openais, standard_tier, unpaid, usage_of
from relay.shapes.shape import (
    LEAST_OUTPUT,
    Images,
    Json,
    Shape,
    Watch,
    Wish,
    an_object,
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
        "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens",
        "max_tokens", "messages", "metadata", "min_p", "modalities", "model", "n", "parallel_tool_calls",
        "presence_penalty", "prompt_cache_key", "prompt_cache_retention", "reasoning_effort", "repetition_penalty",
        "response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options",
        "temperature", "tool_choice", "tools", "top_k", "top_logprobs", "top_p", "user", "verbosity",
    }
)  # fmt: skip
_MESSAGE = frozenset(
    {
        "role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "reasoning",
        "reasoning_content", "cache_control",
    }
)  # fmt: skip
_TEXTS = frozenset({"text", "refusal"})
_TOOLS = frozenset({"function", "custom"})


class ChatCompletions(Shape):
    endpoint = "openai.chat"
    provider = "openai"
    prices = "openai"

    def matches(self, path: str) -> str | None:
        return "" if path == "openai/v1/chat/completions" else None

    def read(self, body: Json, model: str, output: int) -> Wish:
        only(body, _FIELDS)
        if body.get("n") not in (None, 1):
            raise unbounded("n")
        if body.get("modalities") not in (None, ["text"]):
            raise unbounded("modalities")
        standard_tier(body)
        named = text(body.get("model"), "model")
        images = Images(image_tokens(named))
        for message in objects(body.get("messages"), "messages"):
            only(message, _MESSAGE, "messages.")
            _parts(message.get("content"), images)
        for tool in objects(body.get("tools"), "tools"):
            if (kind := kind_of(tool, "tools")) not in _TOOLS:
                raise unbounded(f"tools: a tool of the type {kind}")
        wish = _capped(body, named, output)
        wish.image_bytes, wish.image_tokens = images.bytes, images.tokens
        if wish.stream:
            # A stream tells what it used only to whoever asks for it.
            options = an_object(body.get("stream_options"), "stream_options")
            wish.strips_usage = not flag(options, "include_usage")
            body["stream_options"] = {**options, "include_usage": True}
        return wish

    def lower(self, wish: Wish, output: int) -> None:
        wish.body[_cap_of(wish.body)] = wish.output = output

    def used(self, answer: Any) -> Usage | None:
        return usage_of(answer, "prompt", "completion")

    def watch(self) -> Watch:
        return _Watch(self)

    def is_out_of_credit(self, status: int, error: Json) -> bool:
        return super().is_out_of_credit(status, error) or unpaid(error)

    def refusal(self, status: int, message: str) -> Json:
        return refused_like_openai(status, message)

    def listing(self, model: str) -> Json:
        return listed_like_openai(model)


def _capped(body: Json, model: str, output: int) -> Wish:
    """With the cap by the name that it came by for OpenAI's own models, and as `max_tokens` for all others.

    Not every server knows the newer name, and one that does not would answer without end.
    """
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        raise Refused(400, "max_tokens and max_completion_tokens say the same; send one of them")
    asked = "max_completion_tokens" if body.get("max_completion_tokens") is not None else "max_tokens"
    cap = tokens(body.get(asked), asked) or output
    name = _cap_of(body)
    body.pop("max_completion_tokens", None)
    body[name] = cap
    return Wish(body, model, flag(body, "stream"), cap, min(cap, LEAST_OUTPUT))


def _cap_of(body: Json) -> str:
    # OpenAI's own models that reason take the newer name alone.
    newer = body.get("max_tokens") is None and is_openais(str(body.get("model")))
    return "max_completion_tokens" if newer else "max_tokens"


def _parts(content: Any, images: Images) -> None:
    if content is None or isinstance(content, str):
        return
    for part in objects(content, "messages.content"):
        kind = kind_of(part, "messages.content")
        if kind == "image_url":
            image = an_object(part.get("image_url"), "messages.content.image_url")
            images.data_url(image.get("url"), "messages.content.image_url.url")
        elif kind not in _TEXTS:
            raise unbounded(f"messages.content: a part of the type {kind}")


class _Watch(Watch):
    """A chunk without choices tells the whole. Servers that tell it in every chunk mean what there was so far."""

    def __init__(self, shape: ChatCompletions) -> None:
        self._shape = shape
        self._used: Usage | None = None
        self._ended = False

    def see(self, event: Any) -> None:
        found = self._shape.used(event)
        if found is not None:
            self._used, self._ended = found, not event.get("choices")

    def used(self, *, whole: bool) -> Usage | None:
        return self._used if whole or self._ended else None
