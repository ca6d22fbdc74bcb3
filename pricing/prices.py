"""What tokens cost, in whole numbers: nano-dollars for a million tokens, by kind and by length of the input.

The public list is that of genai-prices, which is read offline; its decimals become whole numbers once a
model and day. A model that stands neither there nor in the owner's own file has no price, and is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cached_property
from importlib.metadata import version
from typing import Protocol

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, ModelPrice, TieredPrices

from domain.budget import NANO_PER_USD

MILLION = 1_000_000
REHEARSAL = "rehearsal"
"""The model of the stand-in. It costs nothing, and is reckoned as if it did, so that budgets can be rehearsed."""

_KINDS = {
    "input": "input_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write_5m": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "output": "output_mtok",
}
_WITHOUT = {"cache_read": "input", "cache_write_5m": "input", "cache_write_1h": "cache_write_5m"}
"""What a kind costs that has no price of its own."""

_NEVER = frozenset({"web_searches_kcount", "storage_searches_kcount", "input_audio_mtok", "cache_audio_read_mtok"})
"""Prices of what no request that is let through can use."""


class Tokens(Protocol):
    """Tokens by what they cost, each counted under one kind; `input` is what went through no cache."""

    @property
    def input(self) -> int: ...
    @property
    def cache_read(self) -> int: ...
    @property
    def cache_write_5m(self) -> int: ...
    @property
    def cache_write_1h(self) -> int: ...
    @property
    def output(self) -> int: ...


@dataclass(frozen=True)
class Tier:
    """Nano-dollars for a million tokens of each kind, where the whole input has more than `above` tokens."""

    above: int
    input: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    output: int

    def dearest_input(self, *, writes_1h: bool) -> int:
        return max(self.input, self.cache_read, self.cache_write_5m, self.cache_write_1h if writes_1h else 0)


@dataclass(frozen=True)
class Price:
    """What a model costs. `tiers` begin with the one above -1, and rise; `version` says where they are from."""

    model: str
    version: str
    tiers: tuple[Tier, ...]
    own: bool = False

    def cost(self, usage: Tokens) -> int:
        """Nano-dollars, rounded up once, for all tokens together."""
        whole_input = usage.input + usage.cache_read + usage.cache_write_5m + usage.cache_write_1h
        tier = next(tier for tier in reversed(self.tiers) if whole_input > tier.above)
        millionths = (
            usage.input * tier.input
            + usage.cache_read * tier.cache_read
            + usage.cache_write_5m * tier.cache_write_5m
            + usage.cache_write_1h * tier.cache_write_1h
            + usage.output * tier.output
        )
        return -(-millionths // MILLION)

    def most(self, content: int, output: int, *, writes_1h: bool = False) -> int:
        """Nano-dollars that at most `content` tokens of input and `output` tokens of output can cost at most."""
        return max(
            -(-(content * tier.dearest_input(writes_1h=writes_1h) + output * tier.output) // MILLION)
            for tier in self._within(content)
        )

    def affords(self, nano_usd: int, content: int, *, writes_1h: bool = False) -> int | None:
        """How many tokens of output are paid for beside `content` tokens of input; None for any number of them."""
        left = [
            (nano_usd * MILLION - content * tier.dearest_input(writes_1h=writes_1h)) // tier.output
            for tier in self._within(content)
            if tier.output
        ]
        return max(0, min(left)) if left else None

    def _within(self, content: int) -> Iterable[Tier]:
        return (tier for tier in self.tiers if tier.above < content or tier.above < 0)


class Prices:
    """Prices by provider (`anthropic`, `openai`, `google`) and model. `own` are the owner's, and count first."""

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        self._own = {REHEARSAL: rehearsal_price(), **(own or {})}
        self._known: dict[tuple[str, str], Price | None] = {}
        self._day = date.min

    @cached_property
    def _public(self) -> str:
        return f"genai-prices {version('genai-prices')}"

    def of(self, provider: str, model: str, at: datetime) -> Price | None:
        """The price at that moment (aware UTC); None where nobody knows one, or not for all that a call can use."""
        if model in self._own:
            return self._own[model]
        day = at.astimezone(UTC).date()
        if day != self._day:
            self._known, self._day = {}, day
        key = (provider, model)
        if key not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = self._look_up(provider, model, day)
        return self._known[key]

    def _look_up(self, provider: str, model: str, day: date) -> Price | None:
        maker = next(each for each in get_snapshot().providers if each.id == provider)
        found = maker.find_model(model.lower())
        return None if found is None else price_from(found, day, self._public)


_MOST_KNOWN = 4096


def price_from(model: ModelInfo, day: date, source: str) -> Price | None:
    """A model of the public list in whole numbers; None where it has no price of its text alone."""
    listed = model.get_prices(datetime.combine(day, time(), UTC))
    prices: dict[str, Decimal | TieredPrices] = {
        name: value for name, value in vars(listed).items() if value is not None and name not in _NEVER
    }
    counted = not prices.keys() - set(_KINDS.values()) and {"input_mtok", "output_mtok"} <= prices.keys()
    if not counted:
        return None
    starts = {tier.start for value in prices.values() if isinstance(value, TieredPrices) for tier in value.tiers}
    tiers = tuple(_tier(above, prices) for above in sorted({-1, *starts}))
    since = _since(model, listed)
    return Price(model.id, f"{source}, {model.id}{f' since {since}' if since else ''}", tiers)


def own_price(model: str, source: str, usd: Mapping[str, Decimal]) -> Price:
    """A price that the owner tells, by kind, in dollars for a million tokens."""
    tier = _tier(-1, {_KINDS[kind]: value for kind, value in usd.items()})
    return Price(model, source, (tier,), own=True)


def rehearsal_price() -> Price:
    usd = {"input": "3", "cache_read": "0.3", "cache_write_5m": "3.75", "cache_write_1h": "6", "output": "15"}
    return own_price(REHEARSAL, "rehearsal 1", {kind: Decimal(value) for kind, value in usd.items()})


def _tier(above: int, prices: Mapping[str, Decimal | TieredPrices]) -> Tier:
    nano: dict[str, int] = {}
    for kind, name in _KINDS.items():
        price = prices.get(name)
        nano[kind] = nano[_WITHOUT[kind]] if price is None else _nano(_at(price, above))
    return Tier(above, **nano)


def _at(price: Decimal | TieredPrices, above: int) -> Decimal:
    if isinstance(price, Decimal):
        return price
    return next((tier.price for tier in reversed(price.tiers) if tier.start <= above), price.base)


def _nano(usd: Decimal) -> int:
    nano = usd * NANO_PER_USD
    # Never less than it is.
    return int(nano) + (nano != int(nano))


def _since(model: ModelInfo, listed: ModelPrice) -> str:
    """From when on the price counts, where the list has several of them."""
    if isinstance(model.prices, ModelPrice):
        return ""
    starts = [getattr(each.constraint, "start_date", None) for each in model.prices if each.prices is listed]
    return next((f"{start:%Y-%m-%d}" for start in starts if start), "")
