"""What a call cost, reckoned again by whoever proves the ledger."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from pricing.prices import Prices
from relay.shapes import anthropic, chat, gemini, responses
from relay.usage import Usage
from starter.reckoning import reckoned

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
USED = Usage(input=70_000, cache_read=11_111, cache_write_5m=3, cache_write_1h=5, output=1_234, reasoning=200)
SHAPES = {
    each.endpoint: each.prices
    for each in (anthropic.Messages, chat.ChatCompletions, responses.Responses, gemini.GenerateContent)
}


def row(endpoint: str, model: str, price: str) -> Any:
    return SimpleNamespace(**vars(USED), endpoint=endpoint, model=model, price=price, asked_at=AT)


@pytest.mark.parametrize(
    ("endpoint", "model"),
    [
        ("anthropic.messages", "claude-sonnet-4-6"),
        ("openai.chat", "gpt-5.5"),
        ("openai.responses", "gpt-5.5"),
        ("gemini.generate", "gemini-2.5-pro"),
        ("anthropic.messages", "rehearsal"),
    ],
)
def test_a_call_is_reckoned_as_the_relay_did(endpoint: str, model: str) -> None:
    price = Prices().of(SHAPES[endpoint], model, AT)
    assert price is not None
    assert reckoned(row(endpoint, model, price.version)) == price.cost(USED) > 0
    assert reckoned(row(endpoint, model, f"{price.version}, another")) is None


def test_every_endpoint_that_costs_anything_is_known_here() -> None:
    for endpoint, maker in SHAPES.items():
        model = {"anthropic": "claude-sonnet-4-6", "openai": "gpt-5.5", "google": "gemini-2.5-pro"}[maker]
        price = Prices().of(maker, model, AT)
        assert price is not None
        assert reckoned(row(endpoint, model, price.version)) is not None


def test_what_nobody_has_a_price_for_is_left_out() -> None:
    assert reckoned(row("anthropic.messages", "a-model-of-ours", "prices.toml 0123456789ab")) is None
    assert reckoned(row("nobodys.endpoint", "claude-sonnet-4-6", "p1")) is None
