"""What OpenAI's two APIs have in common: its models, their prices, and how they tell what was used."""

from __future__ import annotations

import re
from typing import Any

from relay.shapes.shape import Json, unbounded
from relay.usage import Usage, count, needed, require_listed


def image_tokens(model: str) -> int:
    """No model takes an image for more: tiles of 5,667 tokens for one of them, 10,000 patches for the others."""
    return 50_000 if model.startswith("gpt-4o-mini") else 12_000


def is_openais(model: str) -> bool:
    """Whether a name is one of OpenAI's own models'; other servers know less of what their API has."""
    return model.startswith(("gpt-", "o1", "o3", "o4", "codex-", "chatgpt-")) and not model.startswith("gpt-oss")


_SEARCHES = re.compile(r"-(search|deep-research)\b")


def standard_tier(body: Json) -> None:
    """Have the request served at the prices that are listed. Left open, a project's own setting would decide.

    Raises Refused for another tier, and for models that cost more than their tokens.
    """
    if body.get("service_tier") not in (None, "auto", "default"):
        raise unbounded("service_tier")
    model = str(body.get("model"))
    if is_openais(model):
        if _SEARCHES.search(model):
            raise unbounded(f"the model {model[:100]}, which searches by itself for a fee,")
        body["service_tier"] = "default"


_ORDINARY = frozenset({"auto", "default", "standard", "on_demand", "flex", "batch"})
"""Tiers that cost what is listed, or less; `on_demand` is Groq's word for its own."""


def unpaid(error: Json) -> bool:
    """https://platform.openai.com/docs/guides/error-codes; with the status of too many requests."""
    codes = ("insufficient_quota", "billing_hard_limit_reached")
    return error.get("code") in codes or error.get("type") in codes


def usage_of(answer: Any, input: str, output: str) -> Usage | None:
    """Cached tokens are a part of the input, whether read or written, reasoning one of the output.

    Some servers tell reasoning beside the output; in their total it is. None for an answer that tells no usage;
    ValueError for one that tells too little of it, or that it was served at another price.
    """
    told = answer.get("usage") if isinstance(answer, dict) else None
    if told is None:
        return None
    if not isinstance(told, dict):
        raise ValueError("usage is no object")
    require_listed(answer, "service_tier", _ORDINARY)
    details = f"{input}_tokens_details"
    whole, said = needed(told, f"{input}_tokens"), needed(told, f"{output}_tokens")
    read, written = count(told, details, "cached_tokens"), count(told, details, "cache_write_tokens")
    if read + written > whole:
        raise ValueError("usage does not add up")
    beside = count(told, "total_tokens") - whole
    return Usage(
        input=whole - read - written,
        cache_read=read,
        cache_write_5m=written,
        output=max(said, beside),
        reasoning=count(told, f"{output}_tokens_details", "reasoning_tokens"),
    )
