"""Money is exact, and what is no amount of money is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.budget import NANO_PER_USD, format_usd, parse_usd

AMOUNTS = st.integers(1, 999_999_999 * NANO_PER_USD + 999_999_999)


@pytest.mark.parametrize(
    ("text", "nano_usd"),
    [
        ("12.00 USD", 12_000_000_000),
        ("$12", 12_000_000_000),
        ("12", 12_000_000_000),
        ("  2.5 usd ", 2_500_000_000),
        ("$ 0.10 USD", 100_000_000),
        ("0.000000001", 1),
        ("999999999.999999999", 999_999_999_999_999_999),
        ("0.1", 100_000_000),
        ("1.005", 1_005_000_000),
    ],
)
def test_an_amount_is_read_to_the_last_nano_dollar(text: str, nano_usd: int) -> None:
    assert parse_usd(text) == nano_usd


@pytest.mark.parametrize(
    "text",
    [
        "", "0", "0.00 USD", "0.0000000001", "-1", "+1", "1e3", "1,000", "1_000", ".5", "5.", "inf", "nan",
        "12 EUR", "€12", "1 2", "USD 12", "1234567890", "twelve", "12 USD USD", "12\n13",
    ],
)  # fmt: skip
def test_what_is_no_amount_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not an amount of money such as 2\.50 USD"):
        parse_usd(text)


@given(AMOUNTS)
def test_an_amount_survives_being_shown_and_read_again(nano_usd: int) -> None:
    assert parse_usd(format_usd(nano_usd)) == nano_usd


@given(AMOUNTS, AMOUNTS)
def test_two_amounts_look_the_same_only_when_they_are(one: int, other: int) -> None:
    assert (format_usd(one) == format_usd(other)) == (one == other)


@given(st.text())
def test_any_text_is_a_positive_amount_or_refused(text: str) -> None:
    try:
        amount, refusal = parse_usd(text), ""
    except ValueError as error:
        amount, refusal = 0, str(error)
    assert amount > 0 or repr(text) in refusal


@pytest.mark.parametrize(
    ("nano_usd", "shown"),
    [
        (0, "0.00 USD"),
        (1, "0.000000001 USD"),
        (2_500_000_000, "2.50 USD"),
        (12_000_000_000, "12.00 USD"),
        (100_000_000_000, "100.00 USD"),
        (1_234_500_000, "1.2345 USD"),
        (-2_500_000_000, "-2.50 USD"),
    ],
)
def test_an_amount_is_shown_with_the_places_it_needs(nano_usd: int, shown: str) -> None:
    assert format_usd(nano_usd) == shown
