"""The owner's own prices: a file of models that no public list knows, such as those of a server in the house.

[models."qwen3-coder"]        # dollars for a million tokens; a price of 0 has to be written down
input = 0.20
output = 0.80
cache_read = 0.02             # these three cost as much as `input` where they are not told
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from domain.errors import Misconfigured
from domain.identity import digest
from pricing.prices import Price, own_price

_NEEDED = ("input", "output")
_KINDS = frozenset({*_NEEDED, "cache_read", "cache_write_5m", "cache_write_1h"})
_MOST = Decimal(1_000_000)


def own_prices(path: Path) -> Mapping[str, Price]:
    """The prices in a TOML or JSON file, by model. Misconfigured, in one sentence, for a file that has none."""
    try:
        raw = path.read_bytes()
        told = _read(path, raw.decode())
    except (OSError, ValueError, RecursionError) as error:
        raise Misconfigured(f"the prices in {path} cannot be read: {error}") from error
    models = told.get("models") if isinstance(told, dict) else None
    if not isinstance(models, dict) or not models or len(told) > 1:
        raise Misconfigured(f"{path} needs one table, models, with a table of prices for each model")
    source = f"{path.name} {digest(raw)[:12]}"
    return {name: own_price(name, source, _usd(f"{path}: {name}", prices)) for name, prices in models.items()}


def _read(path: Path, text: str) -> Any:
    if path.suffix == ".json":
        return json.loads(text, parse_float=Decimal)
    return tomllib.loads(text, parse_float=Decimal)


def _usd(what: str, prices: Any) -> Mapping[str, Decimal]:
    if not isinstance(prices, dict) or not set(_NEEDED) <= prices.keys() <= _KINDS:
        raise Misconfigured(f"{what}: needs input and output, and may have {', '.join(sorted(_KINDS - {*_NEEDED}))}")
    return {kind: _amount(f"{what}: {kind}", value) for kind, value in prices.items()}


def _amount(what: str, value: Any) -> Decimal:
    try:
        amount = Decimal(value) if isinstance(value, str | int | Decimal) and not isinstance(value, bool) else None
    except InvalidOperation:
        amount = None
    if amount is None or not amount.is_finite() or not 0 <= amount <= _MOST:
        raise Misconfigured(f"{what} is no price in dollars for a million tokens, such as 0.20 or 0")
    return amount
