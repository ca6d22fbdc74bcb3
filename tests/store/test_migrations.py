"""The migrations lead to exactly the tables that the code knows, and carry rows along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import store.migrations
from domain.identity import digest
from domain.ledger import DAY_NANO_USD
from domain.lifecycle import GENESIS, receipt_hash
from store import (
    database,
    indexes,  # noqa: F401 - they are a part of what is compared
)
from store.audit import audit
from store.caps import day_budget
from store.columns import instant
from store.database import Store, open_store
from store.evidence import content
from store.keys import SEAL, keys_of, known_keys
from store.receipts import receipts_of
from store.tables import metadata
from store.views import confinement_of, metering_of
from tests.store.conftest import AT


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


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_key_from_before_there_were_two_uses_is_a_seals(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    url = old_store(request, tmp_path, engine, "two_uses")
    old = sa.create_engine(url)
    with old.begin() as connection:
        upgrade(connection, "0002")
        connection.execute(
            sa.text("INSERT INTO public_keys (kid, pem, since) VALUES ('k', 'pem', '2026-01-01T00:00:00+00:00')")
        )
    old.dispose()

    database.migrate(url)

    reopened = open_store(url)
    with reopened.read() as connection:
        assert known_keys(connection, SEAL) == {"k": "pem"}
        assert known_keys(connection, "capability") == {}
        assert [key.retired_at for key in keys_of(connection)] == [None]
    reopened.close()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_an_owner_from_before_there_were_budgets_has_the_usual_one(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    url = old_store(request, tmp_path, engine, "no_budgets")
    old = sa.create_engine(url)
    with old.begin() as connection:
        upgrade(connection, "0004")
        owner = "INSERT INTO owners (id, state, reason, receipt_seq, receipt_hash) VALUES ('ada', 'open', '', 1, 'h')"
        connection.execute(sa.text(owner))
    old.dispose()

    database.migrate(url)

    reopened = open_store(url)
    with reopened.read() as connection:
        assert day_budget(connection, "ada") == (DAY_NANO_USD, "UTC")
    reopened.close()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_usage_from_before_requests_had_names_has_none(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    url = old_store(request, tmp_path, engine, "no_requests")
    old = sa.create_engine(url)
    with old.begin() as connection:
        upgrade(connection, "0007")
        for table in ("plans", "tasks", "runs", "reservations", "usage"):
            connection.execute(row_of(connection, table))
    old.dispose()

    database.migrate(url)

    with sa.create_engine(url).connect() as connection:
        assert connection.execute(sa.text("SELECT id, request_id FROM usage")).all() == [("x", "")]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_evidence_from_before_there_was_a_folder_has_its_bytes_in_the_graph(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    url = old_store(request, tmp_path, engine, "no_folder")
    old = sa.create_engine(url)
    with old.begin() as connection:
        upgrade(connection, "0009")
        made = {"digest": digest(b"2 passed"), "size": 8, "content": b"2 passed"}
        table = sa.Table("artifacts", sa.MetaData(), autoload_with=connection)
        connection.execute(sa.insert(table), made)
        connection.execute(row_of(connection, "plans"))
        connection.execute(row_of(connection, "evidence").values(digest=made["digest"], task_id=None, run_id=None))
    old.dispose()

    database.migrate(url)

    reopened = open_store(url)
    with reopened.read() as connection:
        assert connection.execute(sa.text("SELECT epoch FROM evidence")).all() == [(0,)]
        assert content(connection, made["digest"]) == b"2 passed"
    reopened.close()


def old_store(request: pytest.FixtureRequest, folder: Path, engine: str, name: str) -> str:
    """The URL of an empty store, for migrations to begin in."""
    if engine == "sqlite":
        return f"sqlite:///{folder / 'old.db'}"
    server = request.getfixturevalue("postgres_server")
    with sa.create_engine(server, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    return str(server.set(database=name).render_as_string(hide_password=False))


def upgrade(connection: sa.Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(store.migrations.__file__).parent))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_run_from_before_there_was_confinement_was_unconfined(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    if engine == "sqlite":
        url = f"sqlite:///{tmp_path / 'old.db'}"
    else:
        server = request.getfixturevalue("postgres_server")
        with sa.create_engine(server, isolation_level="AUTOCOMMIT").connect() as connection:
            connection.execute(sa.text("CREATE DATABASE before_confinement"))
        url = server.set(database="before_confinement").render_as_string(hide_password=False)
    old = sa.create_engine(url)
    with old.begin() as connection:
        upgrade(connection, "0004")
        for table in ("plans", "tasks", "runs"):
            connection.execute(row_of(connection, table))
    old.dispose()

    database.migrate(url)

    reopened = open_store(url)
    with reopened.read() as connection:
        assert confinement_of(connection, plan_id="x") == "unconfined"
    reopened.close()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_an_agents_run_from_before_there_was_another_way_was_metered(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    url = old_store(request, tmp_path, engine, "before_metering")
    old = sa.create_engine(url)
    with old.begin() as connection:
        upgrade(connection, "0009")
        for table in ("plans", "tasks", "runs"):
            connection.execute(row_of(connection, table))
        connection.execute(sa.text("UPDATE runs SET runtime = 'claude'"))
    old.dispose()

    database.migrate(url)

    reopened = open_store(url)
    with reopened.read() as connection:
        assert metering_of(connection, plan_id="x") == "metered"
    reopened.close()


def row_of(connection: sa.Connection, name: str) -> sa.Insert:
    """A row of a table as it is now, all of whose texts are `x`."""
    table = sa.Table(name, sa.MetaData(), autoload_with=connection)
    needed = [column for column in table.c if not column.nullable]
    return sa.insert(table).values({each.name: "x" if isinstance(each.type, sa.Text) else 0 for each in needed})


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_what_is_from_before_there_were_revisions_is_of_the_first_text(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    url = old_store(request, tmp_path, engine, "no_revisions")
    old = sa.create_engine(url)
    with old.begin() as connection:
        upgrade(connection, "0009")
        for table in ("plans", "tasks", "runs"):
            connection.execute(row_of(connection, table))
    old.dispose()

    database.migrate(url)

    with sa.create_engine(url).connect() as connection:
        found = connection.execute(
            sa.text(
                "SELECT p.judged, t.revision, t.proven_by, r.revision FROM plans p "
                "JOIN tasks t ON t.plan_id = p.id JOIN runs r ON r.task_id = t.id"
            )
        )
        assert found.all() == [(0, 0, 0, 0)]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_receipt_from_before_there_were_actors_is_nobodys_and_its_hash_holds(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    url = old_store(request, tmp_path, engine, "no_actors")
    said: dict[str, Any] = {
        "chain": "owner:ada", "seq": 1, "kind": "owner", "subject": "ada", "before": None, "after": "open",
        "event": "open", "key": "open", "cause": "open by ada", "refused": "", "previous": GENESIS,
    }  # fmt: skip
    link = receipt_hash(**said, at=AT, facts={})
    old = sa.create_engine(url)
    with old.begin() as connection:
        upgrade(connection, "0013")
        kept = {"at": instant(AT), "facts": "{}", "hash": link, "mark": 1}
        table = sa.Table("receipts", sa.MetaData(), autoload_with=connection)
        connection.execute(sa.insert(table).values({**said, **kept}))
        head = sa.Table("chains", sa.MetaData(), autoload_with=connection)
        connection.execute(sa.insert(head).values(chain="owner:ada", owner="ada", seq=1, hash=link))
        row = {"id": "ada", "state": "open", "reason": "", "receipt_seq": 1, "receipt_hash": link}
        connection.execute(sa.insert(sa.Table("owners", sa.MetaData(), autoload_with=connection)).values(row))
    old.dispose()

    database.migrate(url)

    reopened = open_store(url)
    with reopened.read() as connection:
        assert [receipt.actor for receipt in receipts_of(connection, "owner:ada")] == [""]
        assert audit(connection) == ()
    reopened.close()
