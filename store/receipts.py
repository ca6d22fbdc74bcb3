"""Reading the receipts: what happened, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, select

from domain.lifecycle import GENESIS, Receipt
from store.moves import SAID, receipt_of
from store.tables import chains, receipts, watermarks


def receipts_of(connection: Connection, chain: str, after: int = 0, limit: int = 1000) -> tuple[Receipt, ...]:
    """The chain's receipts with a seq above `after`, in order, refusals among them; at most `limit`."""
    query = select(*SAID).where(receipts.c.chain == chain, receipts.c.seq > after).order_by(receipts.c.seq).limit(limit)
    return tuple(map(receipt_of, connection.execute(query)))


def head_of(connection: Connection, chain: str) -> tuple[int, str]:
    """`(seq, hash)` of the chain's last receipt; `(0, GENESIS)` for a chain that has not begun."""
    row = connection.execute(select(chains.c.seq, chains.c.hash).where(chains.c.chain == chain)).one_or_none()
    return (row.seq, row.hash) if row else (0, GENESIS)


class Head(NamedTuple):
    """The last receipt of a chain."""

    seq: int
    hash: str


def heads_of(connection: Connection, names: Collection[str]) -> dict[str, Head]:
    """The heads of these chains; those that have not begun are left out."""
    query = select(chains.c.chain, chains.c.seq, chains.c.hash).where(chains.c.chain.in_(names))
    return {row.chain: Head(row.seq, row.hash) for row in connection.execute(query)}


def seq_of_key(connection: Connection, chain: str, key: str) -> int:
    """The seq of the receipt that spent this key; 0 when none did."""
    query = select(receipts.c.seq).where(receipts.c.chain == chain, receipts.c.key == key, receipts.c.refused == "")
    return connection.scalar(query) or 0


def watermark_of(connection: Connection, owner: str) -> int:
    """How many moves the owner's plans have made and been refused; it stands still while no fact changes."""
    query = select(watermarks.c.mark).where(watermarks.c.owner == owner)
    return connection.scalar(query) or 0


def hash_and_moment_at(connection: Connection, chain: str, seq: int) -> tuple[str, datetime | None]:
    """The hash of the chain's receipt `seq`, and when it was made; empty and None where there is none."""
    query = select(receipts.c.hash, receipts.c.at).where(receipts.c.chain == chain, receipts.c.seq == seq)
    row = connection.execute(query).one_or_none()
    return (row.hash, row.at) if row else ("", None)
