"""Making capabilities. Workers do; a relay never loads this, so nobody who takes it over has the means at hand."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from uuid import uuid4

from domain.budget import NANO_PER_USD
from signing.capabilities import AUDIENCE, ISSUER, KIND, LONGEST, Grant
from signing.keys import Signer


def mint(signer: Signer, grant: Grant, now: datetime, ttl: timedelta) -> str:
    """A capability for the grant, good until `now + ttl`. No two are alike.

    ValueError for a time to live below a second or above two hours.
    """
    if not timedelta(seconds=1) <= ttl <= LONGEST:
        raise ValueError(f"a capability lives for a second at least and two hours at most, and not for {ttl}")
    issued = int(now.timestamp())
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": grant.owner,
        "plan": grant.plan,
        "task": grant.task,
        "run": grant.run,
        "epoch": grant.epoch,
        "role": grant.role,
        "model_id": grant.model_id,
        "max_budget_usd": f"{Decimal(grant.max_budget_nano_usd) / NANO_PER_USD:f}",
        "iat": issued,
        # Never longer than was asked for: the seconds are cut off.
        "exp": int((now + ttl).timestamp()),
        "jti": uuid4().hex,
    }
    return signer.sign(KIND, claims)
