"""Alembic's entry point: runs the migrations on the connection, and in the transaction, that it is handed."""

from __future__ import annotations

from alembic import context

from store import indexes  # noqa: F401 - they are a part of what is compared
from store.tables import metadata

# SQLite, too, takes back a table that it made in a transaction that failed.
context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
context.run_migrations()
