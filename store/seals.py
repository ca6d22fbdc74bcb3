"""Seals that were given out, and the public keys that check them. Neither is ever taken back."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, select

from store.database import insert_into
from store.tables import public_keys, seals


def keep_key(connection: Connection, kid: str, pem: str, at: datetime) -> None:
    """Keep a public key for as long as there is something that it signed. A repeat changes nothing."""
    row = {"kid": kid, "pem": pem, "since": at}
    connection.execute(insert_into(connection, public_keys).on_conflict_do_nothing(), row)


def known_keys(connection: Connection) -> dict[str, str]:
    """Every public key as PEM, by its kid."""
    return {row.kid: row.pem for row in connection.execute(select(public_keys.c.kid, public_keys.c.pem))}


def keep_seal(connection: Connection, chain: str, seq: int, token: str) -> None:
    """Keep the seal of the chain at receipt `seq`. A repeat changes nothing."""
    row = {"chain": chain, "seq": seq, "token": token}
    connection.execute(insert_into(connection, seals).on_conflict_do_nothing(), row)


def seals_of(connection: Connection, chain: str | None = None) -> list[str]:
    """The seals that were given out for a chain, or for all, oldest first."""
    query = select(seals.c.token).order_by(seals.c.chain, seals.c.seq)
    return list(connection.scalars(query if chain is None else query.where(seals.c.chain == chain)))


def newest_seal(connection: Connection, chain: str) -> tuple[int, str]:
    """`(seq, token)` of the chain's last seal; `(0, "")` where none was given out."""
    query = select(seals.c.seq, seals.c.token).where(seals.c.chain == chain).order_by(seals.c.seq.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return (row.seq, row.token) if row else (0, "")
