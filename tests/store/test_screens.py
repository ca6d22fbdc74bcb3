"""What was last to be seen of a run is one row, which no fact rests on."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select

from store.audit import audit
from store.screens import last_seen, put_screen, seen_of
from store.tables import screens
from tests.store.conftest import AT


def see(store, run, text, at=AT):
    with store.write() as connection:
        put_screen(connection, run, text, at)


def test_a_screen_takes_the_place_of_the_one_before(store, confirmed):
    run = confirmed.run()
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin"), run)
    see(store, run.subject, "first")
    see(store, run.subject, "second \0 \ud800", AT + timedelta(seconds=2))
    see(store, run.subject, "older", AT + timedelta(seconds=1))
    with store.read() as connection:
        seen = seen_of(connection, run.subject)
        assert (seen.run.id, seen.text, seen.at) == (run.subject, "second \ufffd ?", AT + timedelta(seconds=2))
        assert connection.scalar(select(func.count()).select_from(screens)) == 1
        assert audit(connection) == ()


def test_of_a_task_the_live_run_is_seen_and_else_its_authors_last(store, confirmed):
    begin = confirmed.make("task", confirmed.task, "begin")
    author = confirmed.run()
    with store.read() as connection:
        assert last_seen(connection, confirmed.task) is None
    confirmed.go(store, begin, author)
    with store.read() as connection:
        assert (last_seen(connection, confirmed.task).run.id, last_seen(connection, confirmed.task).at) == (
            author.subject, None,
        )  # fmt: skip
    check = confirmed.run(role="check", epoch=2)
    confirmed.go(store, confirmed.make("run", author.subject, "finish"), check)
    with store.read() as connection:
        assert last_seen(connection, confirmed.task).run.id == check.subject
    confirmed.go(store, confirmed.make("run", check.subject, "finish"))
    with store.read() as connection:
        assert last_seen(connection, confirmed.task).run.id == author.subject
