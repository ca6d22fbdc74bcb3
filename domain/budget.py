"""Money is whole nano-dollars; nothing here ever sees a float."""

from __future__ import annotations

import re
from decimal import Decimal

NANO_PER_USD = 1_000_000_000
_AMOUNT = re.compile(r"\$?\s*(\d{1,9}(?:\.\d{1,9})?)\s*(?:USD)?", re.IGNORECASE)


def parse_usd(text: str) -> int:
    """`"12.00 USD"`, `"$12"` or `"12"` in nano-dollars; ValueError for anything else, and for zero."""
    match = _AMOUNT.fullmatch(text.strip())
    amount = int(Decimal(match[1]) * NANO_PER_USD) if match else 0
    if amount <= 0:
        raise ValueError(f"{text!r} is not an amount of money such as 2.50 USD")
    return amount


def format_usd(nano_usd: int) -> str:
    """Nano-dollars as `2.50 USD`, with as many places as the amount needs and at least two."""
    whole = Decimal(nano_usd) / NANO_PER_USD
    places = max(2, -int(whole.normalize().as_tuple().exponent)) if nano_usd else 2
    return f"{whole:.{places}f} USD"
