"""The indexes over some of a table's rows only, for whoever compares the tables with a schema.

They stand apart from the tables, because to name an option of PostgreSQL's loads its dialect, which a command that
reads a store of SQLite has no use for. Migrations make them; no statement needs them here.
"""

from __future__ import annotations

from sqlalchemy import Index

from store.tables import inbox, receipts, reservations

# A key is spent only by a move that was made: what was refused may be legal later.
Index(
    "uq_receipts_chain_key",
    receipts.c.chain,
    receipts.c.key,
    unique=True,
    sqlite_where=receipts.c.refused == "",
    postgresql_where=receipts.c.refused == "",
)
Index(
    "ix_receipts_refused",
    receipts.c.chain,
    receipts.c.key,
    sqlite_where=receipts.c.refused != "",
    postgresql_where=receipts.c.refused != "",
)
Index(
    "ix_reservations_lease_until",
    reservations.c.lease_until,
    sqlite_where=reservations.c.state == "held",
    postgresql_where=reservations.c.state == "held",
)
Index(
    "ix_inbox_unhandled",
    inbox.c.received_at,
    sqlite_where=inbox.c.handled_at.is_(None),
    postgresql_where=inbox.c.handled_at.is_(None),
)
