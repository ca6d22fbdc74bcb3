"""Capabilities: what one run may do at the relay, signed, and good for a few minutes up to two hours.

A capability names the run and the epoch that it was given to, so it is void as soon as the graph says
that the run has ended or that a newer one has begun. There is no renewal: a run ends before its
capability does, and longer work goes on as a new run with a new one. `signing.minting` makes them; what is here
only reads and checks them, which is all that a relay may do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from domain.budget import NANO_PER_USD
from domain.errors import Unauthorized
from signing.checking import verified

KIND = "watchbill-capability"
USE = "capability"
"""What a key that signs capabilities is kept for. A key of another use vouches for none."""

ISSUER = "watchbill"
AUDIENCE = "watchbill-relay"
LONGEST = timedelta(hours=2)
SKEW = timedelta(seconds=30)
"""How far the clocks of who mints and who checks may be apart."""

MAX_TOKEN = 4096
"""Characters of the longest token that is looked at; those that are minted here have about 900."""

_USD = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_TEXTS = ("sub", "plan", "task", "run", "role", "model_id", "max_budget_usd", "iss", "aud", "jti")
_NUMBERS = ("epoch", "iat", "exp")


@dataclass(frozen=True)
class Grant:
    """What a capability allows: this run of this task, this model, up to this much money in nano-dollars.

    Without a model it is good for none: for what a run says to us, and for nothing that costs.
    """

    owner: str
    plan: str
    task: str
    run: str
    epoch: int
    role: str
    model_id: str = ""
    max_budget_nano_usd: int = 0


def checked(token: str, keys: Mapping[str, str], now: datetime) -> Grant:
    """What the token allows at `now`; as `checked_until`."""
    return checked_until(token, keys, now)[0]


def checked_until(token: str, keys: Mapping[str, str], now: datetime) -> tuple[Grant, datetime]:
    """What the token allows at `now`, and from when on it no longer does, if one of `keys` signed it.

    `keys` are PEM by kid, those of this use only.

    Issuer, audience, kind, algorithm and the set of claims are pinned: a claim that is missing, too
    many, or of another form is refused, as an older relay must not overlook what a newer claim forbids.
    Raises Unauthorized in one sentence, without the token in it.
    """
    if len(token) > MAX_TOKEN:
        raise Unauthorized("it is too long for a capability")
    claims = verified(token, KIND, keys)
    _require_form(claims)
    if claims["iss"] != ISSUER or claims["aud"] != AUDIENCE:
        raise Unauthorized("it is a capability for another door")
    issued, expires = _moment(claims["iat"]), _moment(claims["exp"])
    if issued > now + SKEW:
        raise Unauthorized("it was issued in the future; compare the clocks of the worker and of the relay")
    if expires <= now - SKEW:
        raise Unauthorized(f"it expired at {expires.isoformat()}")
    if not issued < expires <= issued + LONGEST:
        raise Unauthorized("it claims to live for longer than any capability does")
    grant = Grant(
        owner=claims["sub"],
        plan=claims["plan"],
        task=claims["task"],
        run=claims["run"],
        epoch=claims["epoch"],
        role=claims["role"],
        model_id=claims["model_id"],
        max_budget_nano_usd=int(Decimal(claims["max_budget_usd"]) * NANO_PER_USD),
    )
    return grant, expires + SKEW


def _require_form(claims: Mapping[str, Any]) -> None:
    missing = [name for name in (*_TEXTS, *_NUMBERS) if name not in claims]
    if missing:
        raise Unauthorized(f"it lacks the claim {missing[0]}")
    if len(claims) > len(_TEXTS) + len(_NUMBERS):
        raise Unauthorized("it makes a claim that is not known here")
    wrong = [name for name in _TEXTS if not isinstance(claims[name], str)]
    # A bool is an int to Python, and no number to anybody else.
    wrong += [name for name in _NUMBERS if type(claims[name]) is not int]
    if not wrong and not _USD.fullmatch(claims["max_budget_usd"]):
        wrong = ["max_budget_usd"]
    if wrong:
        raise Unauthorized(f"its claim {wrong[0]} is not of the form that a capability has")


def _moment(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise Unauthorized("it claims a time that no calendar has") from error
