"""The migrations lead to exactly the tables that the code knows, and carry rows along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import store.migrations
from store import database
from store.audit import audit
from store.database import Store, open_store
from store.tables import metadata


@pytest.fixture
def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(Path(store.migrations.__file__).parent))
    return ScriptDirectory.from_config(config)


def test_migrations_and_tables_agree(store_url: str) -> None:
    engine = sa.create_engine(store_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = compare_metadata(context, metadata)
    engine.dispose()

    assert differences == []


def test_every_constraint_and_index_is_named_as_the_tables_say(store_url: str) -> None:
    engine = sa.create_engine(store_url)
    found = sa.inspect(engine)
    for table in metadata.sorted_tables:
        named = {str(constraint.name) for constraint in table.constraints}
        there = {str(found.get_pk_constraint(table.name)["name"])}
        there |= {str(key["name"]) for key in found.get_foreign_keys(table.name)}
        there |= {str(unique["name"]) for unique in found.get_unique_constraints(table.name)}
        assert there == named
    engine.dispose()


def test_the_code_is_written_for_the_newest_migration(scripts: ScriptDirectory) -> None:
    assert scripts.get_current_head() == database.SCHEMA


def test_migrations_only_go_forward(scripts: ScriptDirectory) -> None:
    for script in scripts.walk_revisions():
        assert not hasattr(script.module, "downgrade")


def test_a_migration_carries_the_rows_of_a_store_in_use(store: Store, confirmed: Any) -> None:
    """While there is one migration, it has nothing to carry: the rows only have to be there afterwards."""
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin"), confirmed.run(), confirmed.ask())

    database.migrate(store.url)

    reopened = open_store(store.url)
    with reopened.read() as connection:
        assert audit(connection) == ()
    reopened.close()
