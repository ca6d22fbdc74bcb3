"""The connection to the work graph: one transaction at a time, reading or writing.

Nothing remote happens inside a transaction, and writes are short. On SQLite a write is
`BEGIN IMMEDIATE`: it waits for its turn at the start and cannot fail halfway for want of the lock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, exc, inspect, make_url, pool, text

from domain.errors import Misconfigured, NotFound, Unavailable, said

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

SCHEMA = "0014"
"""The migration that this code is written for; a test holds it equal to Alembic's head."""

BUSY_SECONDS = 10
"""How long a writer waits for its turn before it gives up with `Unavailable`."""

_DRIVERS = {"sqlite": ("", "pysqlite"), "postgresql": ("", "psycopg")}

_SQLITE_SETTINGS = (
    f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}",
    "PRAGMA foreign_keys = ON",
    # NORMAL would let a power cut take back acknowledged moves whose receipts are already quoted
    # in pull requests. A commit cost 0.38 ms with FULL and 0.03 ms with NORMAL when measured on
    # ext4: a task makes some tens of moves, so the promise is cheap.
    "PRAGMA synchronous = FULL",
)
_POSTGRES_SETTINGS = f"-c lock_timeout={BUSY_SECONDS}s -c idle_in_transaction_session_timeout={6 * BUSY_SECONDS}s"
# https://sqlite.org/rescode.html: the primary codes that speak of the file or of its lock.
_SQLITE_UNAVAILABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
    }
)


@dataclass(frozen=True, slots=True)
class Store:
    """An open work graph, shared by all threads of a process. `url` may hold a password: do not show it."""

    url: str = field(repr=False)
    _reader: Engine
    _writer: Engine
    _turn: Lock | None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One transaction that sees one moment of the graph throughout.

        Raises Unavailable when the store does not answer.
        """
        with _translated(), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction, committed at the end of the block and rolled back by an exception.

        PostgreSQL runs it as READ COMMITTED: whoever decides from what it read holds a lock first,
        as a move does. Raises Unavailable when the store does not answer, or when the turn to write
        did not come in time.
        """
        with _translated(), _in_turn(self._turn), self._writer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close the pool's connections; the store is not used afterwards."""
        self._writer.dispose()


def open_store(url: str) -> Store:
    """Open the store at a SQLAlchemy URL such as `sqlite:////var/lib/watchbill/store.db`.

    Raises Misconfigured for what is no such URL, Unavailable when it does not answer, NotFound when it lacks this
    version's tables.
    """
    address = _address(url)
    if address.get_backend_name() == "sqlite" and not Path(address.database or "").is_file():
        raise NotFound(f"there is no store at {address.database}; `watchbill up` makes one")
    engine = _engine(address)
    try:
        with _translated():
            _require_schema(engine)
    except Exception:
        engine.dispose()
        raise
    if engine.dialect.name == "sqlite":
        # SQLite's waiters poll, with naps of up to 100 ms, and no turn is kept for anyone. Threads of
        # one process take turns by a lock instead: of seven that wrote without pause on a busy
        # machine, the unluckiest waited 0.5 s with it and 4 s without.
        return Store(url, engine, engine.execution_options(begin_with="BEGIN IMMEDIATE"), Lock())
    reader = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return Store(url, reader, engine, None)


def migrate(url: str) -> None:
    """Bring the store at `url` to this version's schema, making the file and its directory if need be.

    Safe to call from any number of processes at once: one migrates while the others wait. Raises Misconfigured for
    what is no such URL, Unavailable when it does not answer.
    """
    address = _address(url)
    if address.get_backend_name() == "sqlite":
        try:
            Path(address.database or "").parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unavailable(f"the store cannot be made: {said(error)}") from error
    engine = _engine(address, poolclass=pool.NullPool)
    with _translated():
        if schema_is_current(engine):
            return
        if engine.dialect.name == "sqlite":
            _write_ahead(engine)
        with engine.execution_options(begin_with="BEGIN IMMEDIATE").begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('watchbill migrations'))"))
            _upgrade(connection)


def schema_is_current(engine: Engine) -> bool:
    """Whether the store behind this engine has exactly this version's tables."""
    return _schema(engine) == SCHEMA


def insert_into(connection: Connection, into: Table) -> postgresql.Insert | sqlite.Insert:
    """An INSERT that knows ON CONFLICT, which both engines spell alike and SQLAlchemy keeps apart."""
    return insert_of(connection.dialect.name, into)


def insert_of(dialect: str, into: Table) -> postgresql.Insert | sqlite.Insert:
    """The same by the dialect's name, for statements that are made once for each."""
    # A command that reads a store of one kind need not load the other's dialect: that takes a tenth of its time.
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as postgresql_insert

        return postgresql_insert(into)
    from sqlalchemy.dialects.sqlite import insert as sqlite_insert

    return sqlite_insert(into)


def _address(url: str) -> URL:
    try:
        found = make_url(url)
        backend, _, driver = found.drivername.partition("+")
        if driver in _DRIVERS[backend] and (found.database or backend != "sqlite"):
            _require_options(found)
            return found
    except (exc.ArgumentError, KeyError, ValueError):
        pass
    # What cannot be taken apart may have a password anywhere in it.
    raise Misconfigured(
        "WATCHBILL_STORE_URL is no address of a store; it should look like sqlite:////var/lib/watchbill/graph.db "
        "or postgresql://USER@HOST:5432/DATABASE"
    )


def _require_options(url: URL) -> None:
    """ValueError for an option that PostgreSQL's driver does not know; it would say so at the first connection."""
    if url.query and url.get_backend_name() == "postgresql":
        from psycopg import ProgrammingError
        from psycopg.conninfo import make_conninfo

        try:
            options: Mapping[str, Any] = url.query
            make_conninfo("", **options)
        except (ProgrammingError, TypeError) as error:
            raise ValueError(str(error)) from error


def _engine(url: URL, **options: Any) -> Engine:
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, hide_parameters=True, **options)
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    arguments = {"connect_timeout": BUSY_SECONDS, "options": _POSTGRES_SETTINGS}
    driver = url.set(drivername="postgresql+psycopg")
    return create_engine(driver, hide_parameters=True, connect_args=arguments, **options)


def _configure_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # The driver's own idea of when a transaction begins is switched off: `_begin_sqlite` says BEGIN.
    connection.isolation_level = None
    for setting in _SQLITE_SETTINGS:
        connection.execute(setting)


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin_with", "BEGIN"))


def _write_ahead(engine: Engine) -> None:
    """Turn the file to write-ahead logging, once and for all its connections: readers do not block then."""
    raw = engine.raw_connection()
    try:
        raw.cursor().execute("PRAGMA journal_mode = WAL")
    finally:
        raw.close()


def _upgrade(connection: Connection) -> None:
    # Alembic is slow to import, and is needed once in a store's life.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _schema(engine: Engine) -> str | None:
    if not inspect(engine).has_table("alembic_version"):
        return None
    with engine.begin() as connection:
        version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return version


def _require_schema(engine: Engine) -> None:
    shown = engine.url.render_as_string(hide_password=True)
    found = _schema(engine)
    if found is None:
        raise NotFound(f"the store at {shown} has no tables yet; `watchbill up` makes them")
    if found != SCHEMA:
        raise NotFound(
            f"the store at {shown} has schema {found} and this version needs {SCHEMA}; "
            "stop every door, then start them with one version of Watchbill"
        )


@contextmanager
def _in_turn(turn: Lock | None) -> Iterator[None]:
    if turn is None:
        yield
        return
    if not turn.acquire(timeout=BUSY_SECONDS):
        raise Unavailable("other threads kept writing to the store; try again")
    try:
        yield
    finally:
        turn.release()


@contextmanager
def _translated() -> Iterator[None]:
    """Say of a database that did not answer that trying again helps; let every other error through."""
    try:
        yield
    except exc.TimeoutError as error:
        raise Unavailable("the store's connections are all in use; try again") from error
    except exc.DBAPIError as error:
        if not _did_not_answer(error):
            raise
        raise Unavailable(f"the store did not answer ({said(error.orig or error)}); try again") from error
    except sqlite3.OperationalError as error:
        # What is said to the driver itself, past SQLAlchemy: settings of a connection or of the file.
        raise Unavailable(f"the store did not answer ({said(error)}); try again") from error


def _did_not_answer(error: exc.DBAPIError) -> bool:
    if isinstance(error.orig, sqlite3.Error):
        return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in _SQLITE_UNAVAILABLE
    # PostgreSQL's are lost connections, lost deadlocks, and locks that did not come free in time.
    return error.connection_invalidated or isinstance(error, exc.OperationalError)
