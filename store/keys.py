"""Public keys, each for one use. What a key signed stays checkable, so none is ever taken back."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, select

from domain.errors import Unauthorized
from store.database import insert_into
from store.tables import public_keys

SEAL = "seal"
"""The use of keys that seal the heads of receipt chains."""


def keep_key(connection: Connection, kid: str, pem: str, use: str, at: datetime) -> None:
    """Keep a public key for as long as there is something that it signed. A repeat changes nothing.

    Raises Unauthorized for a key that is kept for another use: one key never vouches for two things.
    """
    row = {"kid": kid, "pem": pem, "use": use, "since": at}
    connection.execute(insert_into(connection, public_keys).on_conflict_do_nothing(), row)
    kept = connection.scalar(select(public_keys.c.use).where(public_keys.c.kid == kid))
    if kept != use:
        raise Unauthorized(f"key {kid} is for every {kept}; give what signs a {use} a key of its own")


def known_keys(connection: Connection, use: str) -> dict[str, str]:
    """Every public key of this use as PEM, by its kid."""
    query = select(public_keys.c.kid, public_keys.c.pem).where(public_keys.c.use == use)
    return {row.kid: row.pem for row in connection.execute(query)}
