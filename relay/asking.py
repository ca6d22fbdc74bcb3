"""What a call asks the books for, and what becomes of it when they have less."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from pricing.prices import Price
from relay.answers import Refused
from relay.callers import Caller
from relay.shapes.shape import Shape, Wish
from store.ledger import Ask

LEASE = timedelta(seconds=180)
"""For how long money is set aside without a word from the relay."""


def require_metered(caller: Caller) -> None:
    """Raises Refused for a capability that is good for no model: a run is metered or it is not, and never half."""
    if not caller.grant.model_id:
        raise Refused(403, "this run is unmetered: it asks its model on a login of its own, and nothing here")


def require_model(wish: Wish, caller: Caller) -> None:
    """Raises Refused for another model than the capability's."""
    pinned = caller.grant.model_id
    if wish.model != pinned:
        raise Refused(400, f"this run's capability is for the model {pinned!r}, and not for {wish.model[:100]!r}")


def ask_of(caller: Caller, shape: Shape, wish: Wish, price: Price) -> Ask:
    """What the call asks the books for: the most that it can cost, as it is and cut as short as makes sense."""
    grant, at = caller.grant, datetime.now(UTC)
    content, writes_1h = wish.content, wish.writes_1h
    return Ask(
        id=uuid4().hex,
        owner=grant.owner,
        plan=grant.plan,
        task=grant.task,
        run=grant.run,
        epoch=grant.epoch,
        run_cap_nano_usd=grant.max_budget_nano_usd,
        model=wish.model,
        endpoint=shape.endpoint,
        least=price.most(content, wish.least, writes_1h=writes_1h),
        most=price.most(content, wish.output, writes_1h=writes_1h),
        price=price.version,
        at=at,
        lease_until=at + LEASE,
    )


def shrink(shape: Shape, wish: Wish, price: Price, held: int) -> None:
    """Lower the answer's cap to what is set aside for it."""
    affordable = price.affords(held, wish.content, writes_1h=wish.writes_1h)
    if affordable is not None and affordable < wish.output:
        shape.lower(wish, max(wish.least, affordable))
        wish.encode()
