"""Anthropic's Messages: https://platform.claude.com/docs/en/api/messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relay.answers import Refused
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
    malformed,
    objects,
    only,
    packed,
    text,
    tokens,
    unbounded,
)
from relay.usage import Usage, count, needed, require_listed

_FIELDS = frozenset(
    {
        "cache_control", "context_management", "max_tokens", "messages", "metadata", "model", "output_config",
        "output_format", "service_tier", "stop_sequences", "stream", "system", "temperature", "thinking",
        "tool_choice", "tools", "top_k", "top_p",
    }
)  # fmt: skip
_MESSAGE = frozenset({"role", "content", "output_config"})
_TOOLS = ("custom", "bash_", "text_editor_", "memory_")
"""Tools that the caller itself runs; all others run at the provider, and cost what they cost."""

_INLINE = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "tool_removal", "search_result"})
_NESTED = frozenset({"tool_result", "document"})
_IMAGE_TOKENS = 5_000
"""No model of theirs takes an image for more (4,784 tokens at the highest resolution)."""

_ORDINARY = {
    "service_tier": frozenset({"standard", "batch"}),
    "inference_geo": frozenset({"global", "not_available"}),
    "speed": frozenset({"standard"}),
}
"""How an answer says that it was served at the listed price. Other regions, tiers and speeds cost more:
https://platform.claude.com/docs/en/about-claude/pricing.
"""

_LEAST_THINKING = 1024
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}


class Messages(Shape):
    endpoint = "anthropic.messages"
    provider = "anthropic"
    prices = "anthropic"

    def matches(self, path: str) -> str | None:
        return "" if path == "anthropic/v1/messages" else None

    def read(self, body: Json, model: str, output: int) -> Wish:
        only(body, _FIELDS)
        images = _Seen(_IMAGE_TOKENS)
        for message in objects(body.get("messages"), "messages"):
            only(message, _MESSAGE, "messages.")
            _content(message.get("content"), images, "messages.content")
        _content(body.get("system"), images, "system")
        offered = objects(body.get("tools"), "tools")
        _tools(offered)
        for edit in objects(an_object(body.get("context_management"), "context_management").get("edits"), "edits"):
            # What clears makes the input shorter; what compacts asks the model once more.
            if not (kind := kind_of(edit, "context_management.edits")).startswith("clear_"):
                raise unbounded(f"context_management.edits.type {kind}")
        if body.get("service_tier") not in (None, "auto", "standard_only"):
            raise unbounded("service_tier")
        named = text(body.get("model"), "model")
        if named.startswith("claude-"):
            # Left open, an organisation's own setting would decide.
            body["service_tier"] = "standard_only"
        cap = tokens(body.get("max_tokens"), "max_tokens") or output
        if _budget(body) >= cap and not self.free:
            # Thinking that goes on between calls of tools may be allowed more than the answer as a whole.
            raise Refused(400, f"thinking.budget_tokens has to be below max_tokens, which is {cap}")
        body["max_tokens"] = cap
        least = LEAST_OUTPUT + (_LEAST_THINKING if _budget(body) else 0)
        wish = Wish(body, named, flag(body, "stream"), cap, min(cap, least))
        wish.image_bytes, wish.image_tokens = images.bytes, images.tokens + _referred(offered, images.references)
        return wish

    def lower(self, wish: Wish, output: int) -> None:
        budget = _budget(wish.body)
        if budget and output < wish.output:
            # Room for an answer is left.
            wish.body["thinking"]["budget_tokens"] = min(budget, max(_LEAST_THINKING, output - LEAST_OUTPUT))
        wish.body["max_tokens"] = wish.output = output

    def used(self, answer: Any) -> Usage | None:
        told = answer.get("usage") if isinstance(answer, dict) else None
        return None if told is None else _usage(an_answer(told))

    def watch(self) -> Watch:
        return _Watch()

    def is_out_of_credit(self, status: int, error: Json) -> bool:
        """It has a type for that, and says it in words of a request that is wrong all the same."""
        return super().is_out_of_credit(status, error) or (
            status == 400 and "credit balance is too low" in str(error.get("message"))
        )

    def refusal(self, status: int, message: str) -> Json:
        return {"type": "error", "error": {"type": _ERRORS.get(status, "api_error"), "message": message}}

    def listing(self, model: str) -> Json:
        entry = {"type": "model", "id": model, "display_name": model, "created_at": "2026-01-01T00:00:00Z"}
        return {"data": [entry] if model else [], "has_more": False, "first_id": model, "last_id": model}

    def target(self, path: str, query: Mapping[str, str]) -> str:
        return super().target(path, query) + ("?beta=true" if query.get("beta") == "true" else "")


class CountTokens(Messages):
    """Where a request's tokens are counted beforehand."""

    endpoint = "anthropic.count_tokens"
    free = True

    def matches(self, path: str) -> str | None:
        return "" if path == "anthropic/v1/messages/count_tokens" else None

    def read(self, body: Json, model: str, output: int) -> Wish:
        wish = super().read(body, model, output)
        # It takes the same request but for the cap and the tier.
        del wish.body["max_tokens"]
        wish.body.pop("service_tier", None)
        return wish


class _Seen(Images):
    """Images, and the names of the tools that are referred to."""

    def __init__(self, tokens_each: int) -> None:
        super().__init__(tokens_each)
        self.references: list[Any] = []


def _referred(offered: list[Json], references: list[Any]) -> int:
    """The most tokens that references come to: the whole tool stands in the place of each."""
    if not references:
        return 0
    sizes = {str(tool.get("name")): len(packed(tool)) for tool in offered}
    largest = max(sizes.values(), default=0)
    return sum(sizes.get(str(name), largest) for name in references)


def _content(content: Any, images: _Seen, where: str) -> None:
    if content is None or isinstance(content, str):
        return
    for block in objects(content, where):
        kind = kind_of(block, where)
        if kind == "image":
            source = _source(block, where)
            if kind_of(source, f"{where}.source") != "base64":
                raise unbounded(f"{where}: an image that is not inline")
            images.inline(source.get("data"), f"{where}.source.data")
        elif kind == "tool_reference":
            images.references.append(block.get("tool_name"))
        elif kind in _NESTED:
            _nested(block, images, where)
        elif kind == "tool_addition":
            # By its name, or defined in this place.
            added = an_object(block.get("tool"), f"{where}.tool")
            _tools([an_object(added.get("definition"), f"{where}.tool.definition")])
        elif kind not in _INLINE:
            raise unbounded(f"{where}: a block of the type {kind}")


def _nested(block: Json, images: _Seen, where: str) -> None:
    if block["type"] == "tool_result":
        _content(block.get("content"), images, where)
        return
    source = _source(block, where)
    # Pages of a PDF are pictures, and nobody has counted them.
    if kind_of(source, f"{where}.source") not in ("text", "content"):
        raise unbounded(f"{where}: a document that is no inline text")
    _content(source.get("content"), images, where)


def _source(block: Json, where: str) -> Json:
    return an_object(block.get("source"), f"{where}.source")


def _tools(offered: list[Json]) -> None:
    for tool in offered:
        kind = kind_of(tool, "tools")
        if kind and not kind.startswith(_TOOLS):
            raise unbounded(f"tools: a tool of the type {kind}")


def _budget(body: Json) -> int:
    budget = an_object(body.get("thinking"), "thinking").get("budget_tokens")
    if budget is not None and type(budget) is not int:
        raise malformed("thinking.budget_tokens", "a whole number")
    return budget or 0


class _Watch(Watch):
    """`message_start` tells the input, each `message_delta` all that was used so far, and the last why it stops."""

    def __init__(self) -> None:
        self._told: Json = {}
        self._ended = False

    def see(self, event: Any) -> None:
        kind = event.get("type") if isinstance(event, dict) else None
        if kind == "message_start":
            self._told.update(an_answer(an_answer(event.get("message")).get("usage")))
        elif kind == "message_delta":
            told = an_answer(event.get("usage"))
            self._told.update({name: value for name, value in told.items() if value is not None})
            # What the beginning told of the output is not what there is of it by now.
            self._told["output_tokens"] = told.get("output_tokens")
            self._ended = bool(an_answer(event.get("delta")).get("stop_reason"))

    def used(self, *, whole: bool) -> Usage | None:
        return _usage(self._told) if self._ended else None


def an_answer(told: Any) -> Json:
    """An object in an answer. ValueError for anything else."""
    if not isinstance(told, dict):
        raise ValueError("usage is no object")
    return told


def _usage(told: Json) -> Usage:
    """Input is told without either side of the cache. What passes of one call went beside the total is in it."""
    total = _counted(told)
    rounds = told.get("iterations")
    if not isinstance(rounds, list) or not rounds:
        return total
    each = [_counted(an_answer(one)) for one in rounds]
    names = total.as_tokens()
    return Usage(**{name: max(names[name], sum(one.as_tokens()[name] for one in each)) for name in names})


def _counted(told: Json) -> Usage:
    for name, ordinary in _ORDINARY.items():
        require_listed(told, name, ordinary)
    if told.get("server_tool_use") is not None and any(an_answer(told["server_tool_use"]).values()):
        raise ValueError("tools ran at the provider, whose price is not known")
    written = count(told, "cache_creation_input_tokens")
    hour = count(told, "cache_creation", "ephemeral_1h_input_tokens")
    brief = count(told, "cache_creation", "ephemeral_5m_input_tokens")
    return Usage(
        input=needed(told, "input_tokens"),
        cache_read=count(told, "cache_read_input_tokens"),
        cache_write_5m=max(written - hour, brief),
        cache_write_1h=hour,
        output=needed(told, "output_tokens"),
        reasoning=count(told, "output_tokens_details", "thinking_tokens"),
    )
