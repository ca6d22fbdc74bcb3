"""What calls of models cost, reckoned again from their tokens by whoever proves the ledger."""

from __future__ import annotations

from typing import Any

from pricing.prices import Prices

_MAKERS = {"anthropic": "anthropic", "openai": "openai", "gemini": "google"}
"""Whose prices count, by how the name of an endpoint begins."""

_PRICES = Prices()


def reckoned(used: Any) -> int | None:
    """What a row of usage cost in nano-dollars; None where its price is not of the list that is here.

    The list has a rehearsal's too. An owner's own prices are the relay's, and a list of another version is not at hand:
    those are not reckoned again.
    """
    maker = _MAKERS.get(used.endpoint.partition(".")[0])
    price = _PRICES.of(maker, used.model, used.asked_at) if maker else None
    return price.cost(used) if price is not None and price.version == used.price else None
