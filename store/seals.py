"""Seals that were given out. None is ever taken back."""

from __future__ import annotations

from sqlalchemy import Connection, select

from store.database import insert_into
from store.tables import seals


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
