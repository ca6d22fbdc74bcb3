"""Prices in whole numbers say what the public list says, to the nano-dollar, and never less than a call can cost."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import Usage as Told
from hypothesis import given
from hypothesis import strategies as st

from domain.agents import AGENTS
from domain.errors import WatchbillError
from pricing.prices import REHEARSAL, Price, Prices, own_price
from relay.price_file import own_prices
from relay.usage import Usage

NOW = datetime(2026, 11, 29, tzinfo=UTC)
MODELS = [
    *(("anthropic", f"claude-{name}") for name in (
        "sonnet-4-6", "sonnet-4-5", "sonnet-4-0", "sonnet-5-5", "opus-4-0", "opus-4-1", "opus-4-5", "opus-4-7",
        "opus-4-8", "opus-5", "opus-5-5", "haiku-4-5", "haiku-5-5", "fable-5", "fable-5-1", "3-5-haiku-latest",
        "3-7-sonnet-latest", "3-opus-latest",
    )),
    *(("openai", name) for name in (
        "gpt-5.5", "gpt-5.6", "gpt-5.4", "gpt-5.2", "gpt-5.1", "gpt-5", "gpt-5-mini", "gpt-5-nano", "gpt-4.1",
        "gpt-4.1-mini", "gpt-4.1-nano", "gpt-4o", "gpt-4o-mini", "o1", "o3", "o3-mini", "o4-mini", "gpt-5-codex",
        "gpt-5.1-codex-max", "gpt-4-turbo", "gpt-3.5-turbo",
    )),
    *(("google", f"gemini-{name}") for name in (
        "1.5-flash", "1.5-pro", "2.0-flash", "2.0-flash-lite", "2.5-flash", "2.5-flash-lite", "2.5-pro",
        "3-flash-preview", "3-pro-preview", "3.1-pro-preview", "3.5-flash", "3.6-flash", "4-argon",
    )),
]  # fmt: skip
TOKENS = st.one_of(st.integers(0, 2_000_000), st.sampled_from([0, 1, 100_000, 200_000, 200_001, 272_000, 272_001]))
USAGES = st.builds(Usage, *(TOKENS for _ in range(5)))


def listed(provider: str, model: str, usage: Usage, at: datetime = NOW) -> int:
    """What genai-prices says, in nano-dollars, rounded up."""
    maker = next(each for each in get_snapshot().providers if each.id == provider)
    found = maker.find_model(model)
    assert found is not None
    told = Told(
        input_tokens=usage.whole_input,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write_5m + usage.cache_write_1h,
        cache_write_5m_tokens=usage.cache_write_5m,
        cache_write_1h_tokens=usage.cache_write_1h,
        output_tokens=usage.output,
        input_audio_tokens=0,
        cache_audio_read_tokens=0,
    )
    return math.ceil(found.calc_price(told, maker, genai_request_timestamp=at).total_price * 10**9)


def price(provider: str, model: str, at: datetime = NOW) -> Price:
    found = Prices().of(provider, model, at)
    assert found is not None, model
    return found


@pytest.mark.parametrize(("provider", "model"), MODELS)
@given(usage=USAGES)
def test_a_call_costs_what_the_list_says(provider: str, model: str, usage: Usage) -> None:
    assert PRICED[provider, model].cost(usage) == listed(provider, model, usage)


PRICED = {(provider, model): price(provider, model) for provider, model in MODELS}


@given(st.sampled_from(sorted(PRICED)), st.lists(st.integers(0, 400_000), min_size=4, max_size=4), st.data())
def test_nothing_that_fits_a_bound_costs_more_than_it(name, kinds: list[int], data) -> None:
    asked, output = PRICED[name], data.draw(st.integers(0, 200_000))
    read, cached, brief, hour = kinds
    usage = Usage(read, cached, brief, hour, data.draw(st.integers(0, output)))
    content = usage.whole_input + data.draw(st.integers(0, 400_000))
    writes_1h = usage.cache_write_1h > 0
    most = asked.most(content, output, writes_1h=writes_1h)
    assert asked.cost(usage) <= most
    # What is set aside pays for as much output as it was reckoned for, and not for more than it says.
    affordable = asked.affords(most, content, writes_1h=writes_1h)
    assert affordable is not None
    assert affordable >= output
    assert asked.most(content, affordable, writes_1h=writes_1h) <= most


def test_the_models_that_are_used_by_themselves_have_prices() -> None:
    for provider, agent in (("anthropic", AGENTS["claude"]), ("openai", AGENTS["codex"])):
        assert "genai-prices 0.2.3" in price(provider, agent.model).version
    assert price("anthropic", REHEARSAL) == price("openai", REHEARSAL)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "claude-of-tomorrow"), ("openai", "claude-sonnet-4-6"),
        ("openai", "gpt-image-1"), ("openai", "gpt-realtime"), ("google", "gemini-2.5-flash-image"),
        ("openai", "text-embedding-3-small"), ("google", "gemma-3-27b-it"), ("anthropic", ""),
    ],
)  # fmt: skip
def test_what_has_no_price_of_its_text_has_none(provider: str, model: str) -> None:
    assert Prices().of(provider, model, NOW) is None


def test_a_price_that_changes_counts_from_its_day_on() -> None:
    prices = Prices()
    before, after = (datetime(2026, 8, day, 12, tzinfo=UTC) for day in (20, 21))
    usage = Usage(input=1_000, output=1_000)
    for at in (before, after, before):
        found = prices.of("openai", "gpt-5.6", at)
        assert found is not None
        assert found.cost(usage) == listed("openai", "gpt-5.6", usage, at)
    assert price("openai", "gpt-5.6", before).version != price("openai", "gpt-5.6", after).version
    assert price("openai", "gpt-5.6", after).version.endswith("since 2026-08-21")


@pytest.mark.parametrize("name", ["prices.toml", "prices.json"])
def test_an_owner_tells_prices_of_models_that_no_list_knows(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(
        '{"models": {"qwen": {"input": "0.1", "output": 0.3, "cache_read": 0}, "free": {"input": 0, "output": 0}}}'
        if name.endswith("json")
        else '[models.qwen]\ninput = "0.1"\noutput = 0.3\ncache_read = 0\n[models.free]\ninput = 0\noutput = "0"\n'
    )
    prices = Prices(own_prices(file))
    qwen, free = (prices.of("openai", model, NOW) for model in ("qwen", "free"))
    assert qwen is not None
    assert free is not None
    # 0.1 and 0.3 are no binary fractions, and are exact all the same.
    assert qwen.cost(Usage(input=10, cache_read=5, cache_write_5m=10, output=10)) == 100 * 10 + 100 * 10 + 300 * 10
    assert (free.cost(Usage(input=10**9, output=10**9)), free.affords(0, 10**9)) == (0, None)
    assert qwen.version.startswith(name)
    assert prices.of("openai", "gpt-5.5", NOW) is not None


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "[models]", "[models.a]\ninput = 1", "[models.a]\ninput = 1\noutput = -1",
        "[models.a]\ninput = 1\noutput = true", "[models.a]\ninput = 1\noutput = nan", "[other]\n",
        '[models.a]\ninput = 1\noutput = "cheap"', "[models.a]\ninput = 1\noutput = 2\ncached = 1",
        "[models.a]\ninput = 1\noutput = 1e30", "models = 1",
    ],
)  # fmt: skip
def test_prices_that_are_none_are_told_in_one_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(WatchbillError, match=r"prices\.toml") as told:
        own_prices(file)
    assert "\n" not in str(told.value).split(" cannot be read")[0]
    with pytest.raises(WatchbillError, match="cannot be read"):
        own_prices(tmp_path / "nothing.toml")


def test_a_price_is_never_rounded_down() -> None:
    tiny = own_price("tiny", "told", {"input": Decimal("0.0000000001"), "output": Decimal(0)})
    assert tiny.cost(Usage(input=1)) == 1
    assert price("anthropic", "claude-sonnet-4-6").cost(Usage()) == 0
