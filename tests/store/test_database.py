"""A store is opened, read and written, and says clearly when it cannot be."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import sqlalchemy as sa

from domain.errors import Misconfigured, NotFound, Unavailable
from store import database
from store.database import Store, migrate, open_store
from store.tables import tasks, watermarks
from store.tasks import load_task


def test_a_store_that_was_never_made_says_what_makes_it(tmp_path: Path, postgres_server: sa.URL) -> None:
    empty = tmp_path / "store.db"
    empty.touch()
    for url in (f"sqlite:///{empty}", postgres_server.render_as_string(hide_password=False)):
        with pytest.raises(NotFound, match="has no tables yet; `watchbill up` makes them"):
            open_store(url)


def test_opening_a_store_that_is_not_there_makes_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "store.db", tmp_path / "nowhere" / "store.db"):
        with pytest.raises(NotFound, match="there is no store at"):
            open_store(f"sqlite:///{path}")

    assert list(tmp_path.iterdir()) == []


def test_a_store_of_another_version_is_not_used(store_url: str) -> None:
    engine = sa.create_engine(store_url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()

    with pytest.raises(NotFound, match=f"has schema 9999 and this version needs {database.SCHEMA}"):
        open_store(store_url)


def test_a_server_that_does_not_answer_is_unavailable_and_its_password_is_not_shown() -> None:
    with pytest.raises(Unavailable) as caught:
        open_store("postgresql+psycopg://ada:hunter2@127.0.0.1:1/watchbill")

    assert caught.value.retryable
    assert "hunter2" not in str(caught.value)


def test_a_server_that_does_not_answer_is_told_in_one_line() -> None:
    for call in (open_store, migrate):
        with pytest.raises(Unavailable, match="the store did not answer") as caught:
            call("postgresql://ada@127.0.0.1:1/watchbill")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "somewhere",
        "sqlite://",
        "sqlite:///",
        "mysql://ada:hunter2@db/watchbill",
        "sqlite+aiosqlite:////tmp/graph.db",
        "postgresql://ada:hunter2@db:port/watchbill",
        "postgresql://ada:hunter2@db/watchbill?nonsense=1",
    ],
)
def test_what_is_no_address_of_a_store_is_refused_by_the_name_of_its_setting(url: str) -> None:
    for call in (open_store, migrate):
        with pytest.raises(Misconfigured, match=r"WATCHBILL_STORE_URL .* should look like sqlite:////var") as caught:
            call(url)
        assert "hunter2" not in str(caught.value)


def test_a_store_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match=f"the store cannot be made: {tmp_path}/file/below: not a directory"):
        migrate(f"sqlite:///{tmp_path}/file/below/graph.db")


def test_a_file_that_is_no_store_or_cannot_hold_one_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="the store did not answer"):
        migrate(f"sqlite:///{tmp_path}")


def test_an_open_store_does_not_show_its_password(postgres_url: str) -> None:
    store = open_store(str(postgres_url).replace("postgres:@", "postgres:hunter2@"))
    assert "hunter2" in store.url
    assert "hunter2" not in repr(store)
    store.close()


def test_a_writer_whose_turn_does_not_come_is_told_to_try_again(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_SQLITE_SETTINGS", ("PRAGMA busy_timeout = 50",))
    monkeypatch.setattr(database, "_POSTGRES_SETTINGS", "-c lock_timeout=50ms")
    first, second = open_store(store_url), open_store(store_url)
    row = {"owner": "ada", "mark": 1}
    with first.write() as held:
        held.execute(sa.insert(watermarks), row)
        with pytest.raises(Unavailable, match="try again"), second.write() as waiting:
            waiting.execute(sa.insert(watermarks), row)
    first.close()
    second.close()


def test_a_write_within_a_write_is_told_to_try_again_and_never_hangs(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    with sqlite_store.write(), pytest.raises(Unavailable, match="kept writing"), sqlite_store.write():
        pass


def test_a_store_that_broke_off_answers_again_afterwards(postgres_url: str) -> None:
    store = open_store(postgres_url)
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    engine = sa.create_engine(postgres_url, poolclass=sa.pool.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text(others + " AND datname = current_database()"))

    with pytest.raises(Unavailable), store.read() as connection:
        connection.execute(sa.select(tasks))
    with store.read() as connection:
        assert connection.execute(sa.select(tasks)).all() == []
    store.close()


def test_a_connection_that_breaks_off_in_a_transaction_is_unavailable(postgres_url: str) -> None:
    store = open_store(postgres_url)
    with pytest.raises(Unavailable), store.write() as connection:
        connection.execute(sa.text("SET idle_in_transaction_session_timeout = 1"))
        connection.execute(sa.text("SELECT pg_sleep(0)"))
        wait_until_ended(postgres_url, connection.scalar(sa.text("SELECT pg_backend_pid()")))
        connection.execute(sa.text("SELECT 1"))
    store.close()


def wait_until_ended(url: str, backend: Any) -> None:
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.pool.NullPool)
    lives = sa.text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid")
    with engine.connect() as connection:
        while connection.scalar(lives, {"pid": backend}):
            pass


def test_a_mistake_in_a_statement_is_not_taken_for_an_outage(store: Store) -> None:
    with pytest.raises(sa.exc.DBAPIError), store.read() as connection:
        connection.execute(sa.text("SELECT nothing FROM nowhere"))


def test_rows_do_not_show_in_errors(store: Store, confirmed: Any) -> None:
    twice = {"owner": "hunter2", "mark": 1}
    with pytest.raises(sa.exc.IntegrityError) as caught, store.write() as connection:
        connection.execute(sa.insert(watermarks), twice)
        connection.execute(sa.insert(watermarks), twice)

    assert "parameters hidden" in str(caught.value)


def test_a_reader_sees_one_moment_of_the_graph(store: Store, confirmed: Any) -> None:
    with store.read() as connection:
        before = load_task(connection, confirmed.task, confirmed.at)
        confirmed.go(store, confirmed.make("task", confirmed.task, "begin"), confirmed.run())
        assert load_task(connection, confirmed.task, confirmed.at) == before

    with store.read() as connection:
        assert load_task(connection, confirmed.task, confirmed.at).state == "working"


def test_readers_do_not_wait_for_a_writer(store: Store, confirmed: Any) -> None:
    with store.write() as writing:
        writing.execute(sa.update(tasks).values(note="half done"))
        with store.read() as connection:
            assert load_task(connection, confirmed.task, confirmed.at).note == ""


def test_rows_need_what_they_refer_to(store: Store, confirmed: Any) -> None:
    with pytest.raises(sa.exc.IntegrityError), store.write() as connection:
        connection.execute(sa.delete(tasks))
        connection.execute(sa.text("DELETE FROM plans"))


def test_writers_of_one_process_all_get_their_turn(store: Store) -> None:
    together = Barrier(8)

    def count(_: int) -> None:
        together.wait()
        for _ in range(5):
            with store.write() as connection:
                raised = database.insert_into(connection, watermarks).values(owner="ada", mark=1)
                raised = raised.on_conflict_do_update(index_elements=["owner"], set_={"mark": watermarks.c.mark + 1})
                connection.execute(raised)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(count, range(8)))

    with store.read() as connection:
        assert connection.scalar(sa.select(watermarks.c.mark)) == 40


def test_sqlite_keeps_its_promises_through_a_power_cut(sqlite_store: Store) -> None:
    with sqlite_store.read() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    full = 2
    assert pragmas == {"journal_mode": "wal", "synchronous": full, "foreign_keys": 1, "busy_timeout": 10_000}


MIGRATE = "import sys; from store.database import migrate; migrate(sys.argv[1])"


def migrate_in_processes(url: str) -> list[str]:
    """The complaints of two processes that migrate one store at once."""
    root = Path(database.__file__).parents[1]
    started = [
        subprocess.Popen([sys.executable, "-c", MIGRATE, url], cwd=root, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    return [process.communicate()[1] for process in started]


def test_processes_that_start_together_migrate_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a/directory/store.db"

    assert migrate_in_processes(url) == ["", ""]

    open_store(url).close()


def test_processes_that_start_together_migrate_postgres_once(postgres_server: sa.URL) -> None:
    engine = sa.create_engine(postgres_server, isolation_level="AUTOCOMMIT", poolclass=sa.pool.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE DATABASE together"))
        url = postgres_server.set(database="together").render_as_string(hide_password=False)
        complaints = migrate_in_processes(url)
        open_store(url).close()
        connection.execute(sa.text("DROP DATABASE together"))

    assert complaints == ["", ""]


def test_migrating_again_changes_nothing(store_url: str) -> None:
    migrate(store_url)
    open_store(store_url).close()


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE tasks (id TEXT)")
    connection.close()

    with pytest.raises(sa.exc.OperationalError, match="tasks already exists"):
        migrate(f"sqlite:///{path}")

    with sqlite3.connect(path) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    connection.close()
    assert tables == ["tasks"]
