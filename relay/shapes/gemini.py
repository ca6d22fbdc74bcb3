"""Google's generateContent and streamGenerateContent: https://ai.google.dev/api/generate-content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from relay.answers import Refused
from relay.shapes.images import sides
from relay.shapes.shape import (
    LEAST_OUTPUT,
    Images,
    Json,
    Shape,
    Watch,
    Wish,
    an_object,
    malformed,
    objects,
    only,
    text,
    tokens,
    unbounded,
)
from relay.usage import Usage, count, needed, require_listed

_PATH = re.compile(r"gemini/(v1|v1beta)/models/([A-Za-z0-9][A-Za-z0-9._-]{0,100}):(generate|streamGenerate)Content")
_FIELDS = frozenset(
    {"contents", "generationConfig", "labels", "safetySettings", "systemInstruction", "toolConfig", "tools"}
)
_CONFIG = frozenset(
    {
        "candidateCount", "frequencyPenalty", "logprobs", "maxOutputTokens", "mediaResolution", "presencePenalty",
        "responseJsonSchema", "responseLogprobs", "responseMimeType", "responseModalities", "responseSchema", "seed",
        "stopSequences", "temperature", "thinkingConfig", "topK", "topP",
    }
)  # fmt: skip
_THINKING = frozenset({"includeThoughts", "thinkingBudget", "thinkingLevel"})
_CONTENT = frozenset({"role", "parts"})
_PART = frozenset({"text", "thought", "thoughtSignature", "inlineData", "functionCall", "functionResponse"})
_RESPONSE = frozenset({"id", "name", "response"})
_INLINE = frozenset({"data", "mimeType"})
_TOOL = frozenset({"functionDeclarations"})
_IMAGE_TOKENS = 20_000
"""Images are cut into tiles of 258 tokens each, two thirds of their shorter side long: 2 · ⌈1.5 · MOST_LONG⌉ tiles
come to less.

https://ai.google.dev/gemini-api/docs/tokens
"""
_MOST_LONG = 20
"""How many times as long as they are wide images may be."""

_ORDINARY = frozenset({"standard", "flex", "batch", "unspecified", "service_tier_unspecified"})
"""Tiers that cost what is listed, or less."""

_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    503: "UNAVAILABLE",
}


class GenerateContent(Shape):
    """Names in snake case are not read: one field under two names could say two things."""

    endpoint = "gemini.generate"
    provider = "gemini"
    prices = "google"
    tells = re.compile(rb'"usageMetadata"\s*:\s*\{')

    def matches(self, path: str) -> str | None:
        found = _PATH.fullmatch(path)
        return found[2] if found else None

    def read(self, body: Json, model: str, output: int) -> Wish:
        only(body, _FIELDS)
        images = Images(_IMAGE_TOKENS)
        contents = objects(body.get("contents"), "contents")
        for content in (*contents, an_object(body.get("systemInstruction"), "systemInstruction")):
            _content(content, images)
        for tool in objects(body.get("tools"), "tools"):
            only(tool, _TOOL, "tools.")
        config = an_object(body.get("generationConfig"), "generationConfig")
        only(config, _CONFIG, "generationConfig.")
        if config.get("candidateCount") not in (None, 1):
            raise unbounded("generationConfig.candidateCount")
        if config.get("responseModalities") not in (None, [], ["TEXT"]):
            raise unbounded("generationConfig.responseModalities")
        cap = tokens(config.get("maxOutputTokens"), "generationConfig.maxOutputTokens") or output
        body["generationConfig"] = {**config, "maxOutputTokens": cap}
        least = LEAST_OUTPUT + max(0, _thinking(config))
        wish = Wish(body, model, False, cap, min(cap, least))
        wish.image_bytes, wish.image_tokens = images.bytes, images.tokens
        return wish

    def lower(self, wish: Wish, output: int) -> None:
        wish.body["generationConfig"]["maxOutputTokens"] = wish.output = output

    def used(self, answer: Any) -> Usage | None:
        told = answer.get("usageMetadata") if isinstance(answer, dict) else None
        return None if told is None else _usage(told)

    def watch(self) -> Watch:
        return _Watch(self)

    def is_out_of_credit(self, status: int, error: Json) -> bool:
        """By its words alone: too many requests have the same status."""
        return super().is_out_of_credit(status, error) or (
            status == 429 and "credits are depleted" in str(error.get("message"))
        )

    def refusal(self, status: int, message: str) -> Json:
        return {"error": {"code": status, "message": message, "status": _STATUS.get(status, "INTERNAL")}}

    def listing(self, model: str) -> Json:
        entry = {"name": f"models/{model}", "supportedGenerationMethods": ["generateContent", "streamGenerateContent"]}
        return {"models": [entry] if model else []}

    def target(self, path: str, query: Mapping[str, str]) -> str:
        """A stream has to be one of events: its other form is one JSON document, to be read only at its end."""
        if path.endswith(":generateContent"):
            return super().target(path, query)
        if query.get("alt") != "sse":
            raise Refused(400, "streamGenerateContent needs ?alt=sse here")
        return f"{super().target(path, query)}?alt=sse"

    def charges(self, status: int) -> bool:
        """Requests that fail are not charged for: https://ai.google.dev/gemini-api/docs/billing."""
        return False


def _content(content: Json, images: Images) -> None:
    only(content, _CONTENT, "contents.")
    for part in objects(content.get("parts"), "contents.parts"):
        only(part, _PART, "contents.parts.")
        only(an_object(part.get("functionResponse"), "functionResponse"), _RESPONSE, "functionResponse.")
        inline = an_object(part.get("inlineData"), "contents.parts.inlineData")
        if inline:
            only(inline, _INLINE, "contents.parts.inlineData.")
            if not text(inline.get("mimeType"), "contents.parts.inlineData.mimeType").startswith("image/"):
                raise unbounded("contents.parts.inlineData (of another type than an image)")
            images.inline(inline.get("data"), "contents.parts.inlineData.data")
            _require_form(inline["data"])


def _require_form(data: str) -> None:
    """Raises Refused for an image that is very long, or whose form cannot be told."""
    where = "contents.parts.inlineData.data"
    found = sides(data)
    if found is None:
        raise unbounded(f"{where} (an image that is no PNG, JPEG, WebP or GIF)")
    if max(found) > _MOST_LONG * min(found):
        raise unbounded(f"{where} (an image of {found[0]} by {found[1]} pixels)")


def _thinking(config: Json) -> int:
    thinking = an_object(config.get("thinkingConfig"), "generationConfig.thinkingConfig")
    only(thinking, _THINKING, "generationConfig.thinkingConfig.")
    budget = thinking.get("thinkingBudget")
    if budget is not None and type(budget) is not int:
        raise malformed("generationConfig.thinkingConfig.thinkingBudget", "a whole number")
    return budget or 0


class _Watch(Watch):
    """Each chunk tells what was used so far; the last counts, and the one that says why it ends is the last."""

    def __init__(self, shape: GenerateContent) -> None:
        self._shape = shape
        self._last: Any = None
        self._ended = False

    def see(self, event: Any) -> None:
        if not isinstance(event, dict) or event.get("usageMetadata") is None:
            return
        self._last, candidates = event, event.get("candidates")
        if isinstance(candidates, list):
            self._ended |= any(isinstance(one, dict) and one.get("finishReason") for one in candidates)

    def used(self, *, whole: bool) -> Usage | None:
        return self._shape.used(self._last) if whole or self._ended else None


def _usage(told: Any) -> Usage:
    """The prompt is told with what was cached of it, the answer without its thoughts.

    What is nothing is left out, so an answer may be told by the total alone.
    """
    if not isinstance(told, dict):
        raise ValueError("usageMetadata is no object")
    require_listed(told, "serviceTier", _ORDINARY)
    prompt = needed(told, "promptTokenCount") + count(told, "toolUsePromptTokenCount")
    cached, thoughts = count(told, "cachedContentTokenCount"), count(told, "thoughtsTokenCount")
    if told.get("candidatesTokenCount") is None:
        needed(told, "totalTokenCount")
    if cached > prompt:
        raise ValueError("usageMetadata does not add up")
    return Usage(
        input=prompt - cached,
        cache_read=cached,
        output=max(count(told, "candidatesTokenCount") + thoughts, count(told, "totalTokenCount") - prompt),
        reasoning=thoughts,
    )
