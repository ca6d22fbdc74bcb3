"""Public keys, each for one use. None is ever taken back: what a key signed before it was retired stays checkable."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select, update

from domain.errors import NotFound, Unauthorized
from store.database import insert_into
from store.tables import public_keys

SEAL = "seal"
"""The use of keys that seal the heads of receipt chains."""

SHORTEST = 8
"""Characters of a kid that name its key, as long as no other begins with them."""


@dataclass(frozen=True)
class Key:
    """A public key as PEM, what it is for, since when, and from when on nothing that it signs counts any more."""

    kid: str
    use: str
    since: datetime
    retired_at: datetime | None
    pem: str


def keep_key(connection: Connection, kid: str, pem: str, use: str, at: datetime) -> None:
    """Keep a public key for good. A repeat changes nothing.

    Raises Unauthorized for a key that is kept for another use, as one key never vouches for two things, and for one
    that was retired.
    """
    row = {"kid": kid, "pem": pem, "use": use, "since": at}
    connection.execute(insert_into(connection, public_keys).on_conflict_do_nothing(), row)
    kept = connection.scalar(select(public_keys.c.use).where(public_keys.c.kid == kid))
    if kept != use:
        raise Unauthorized(f"key {kid} is for every {kept}; give what signs a {use} a key of its own")
    require_in_use(connection, kid)


def require_in_use(connection: Connection, kid: str) -> None:
    """Raises Unauthorized for a key that was retired."""
    row = connection.execute(
        select(public_keys.c.use, public_keys.c.retired_at).where(public_keys.c.kid == kid)
    ).one_or_none()
    if row is not None and row.retired_at is not None:
        raise Unauthorized(
            f"the {row.use} key {kid} was retired at {row.retired_at.isoformat(timespec='seconds')}; move its file "
            "away on that host and start the worker anew, which makes another"
        )


def known_keys(connection: Connection, use: str) -> dict[str, str]:
    """Every public key of this use that vouches for something now, as PEM, by its kid."""
    return {key.kid: key.pem for key in keys_of(connection, use) if key.retired_at is None}


def keys_of(connection: Connection, use: str = "") -> list[Key]:
    """Every key there ever was, of one use or of all, the oldest first."""
    columns = (public_keys.c.kid, public_keys.c.use, public_keys.c.since, public_keys.c.retired_at, public_keys.c.pem)
    query = select(*columns).order_by(public_keys.c.since, public_keys.c.kid)
    return [Key(*row) for row in connection.execute(query.where(public_keys.c.use == use) if use else query)]


def retire(connection: Connection, named: str, at: datetime) -> Key:
    """Let nothing count that this key signs from now on; a repeat leaves the moment as it was.

    `named` is a kid or how one begins. Raises NotFound where that is no key's name, or several keys'.
    """
    found = [key for key in keys_of(connection) if key.kid == named or _is_short_for(named, key.kid)]
    if len(found) != 1:
        many = "several keys begin with" if found else "there is no key"
        raise NotFound(f"{many} {named!r}; `watchbill keys` lists them, and {SHORTEST} characters or more name one")
    never = public_keys.c.retired_at.is_(None)
    connection.execute(update(public_keys).where(public_keys.c.kid == found[0].kid, never).values(retired_at=at))
    return next(key for key in keys_of(connection) if key.kid == found[0].kid)


def _is_short_for(named: str, kid: str) -> bool:
    return len(named) >= SHORTEST and kid.startswith(named)
