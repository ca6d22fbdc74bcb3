"""Bytes are kept under their hash, once and whole, and what is read is proven to be what was kept."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, make_url, select, update

from domain.errors import Damaged, NotFound, Unavailable
from domain.identity import digest
from domain.run import EvidenceKind, RunState
from store import contents
from store.contents import Folder, folder_beside
from store.database import Store
from store.evidence import Observation, content, record
from store.moves import move
from store.runs import recorded_end
from store.tables import artifacts
from store.tasks import load_run
from tests.store.test_audit import by_hand

pytestmark = pytest.mark.usefixtures("nothing_is_small")

SEEN = b"2 passed\xff\0"
NAME = digest(SEEN)


def kept(store: Store, what: bytes = SEEN) -> str:
    with store.write() as connection:
        return contents.keep(connection, what)


def read(store: Store, name: str = NAME) -> bytes:
    with store.read() as connection:
        return contents.read(connection, name)


def file_of(store: Store) -> Path:
    if store.url.startswith("postgresql"):
        pytest.skip("the content is in the graph")
    return folder_beside(make_url(store.url).database) / NAME[:2] / NAME


def test_what_is_kept_is_read_back_byte_for_byte_and_kept_once(store: Store) -> None:
    assert kept(store) == kept(store) == NAME
    assert read(store) == SEEN
    with store.read() as connection:
        rows = connection.execute(select(artifacts.c.size, artifacts.c.place)).all()
    place = "graph" if store.url.startswith("postgresql") else "folder"
    assert [tuple(row) for row in rows] == [(len(SEEN), place)]


def test_what_is_small_lies_in_the_graph_and_what_is_larger_beside_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "SMALL", 4)
    small, larger = (kept(store, b"x" * size) for size in (4, 5))
    assert (read(store, small), read(store, larger)) == (b"xxxx", b"xxxxx")
    with store.read() as connection:
        places = dict(connection.execute(select(artifacts.c.digest, artifacts.c.place)).tuples().all())
    beside = "graph" if store.url.startswith("postgresql") else "folder"
    assert places == {small: "graph", larger: beside}


def test_nothing_is_found_under_a_name_that_nobody_kept(store: Store) -> None:
    for name in (NAME, "../../etc/passwd", ""):
        with pytest.raises(NotFound):
            read(store, name)


def test_a_file_is_its_keepers_alone_and_stands_beside_no_draft(store: Store) -> None:
    file = file_of(store)
    kept(store)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [each.name for each in file.parent.iterdir()] == [NAME]


@pytest.mark.parametrize("other", [b"2 passed", b"3 failed\xff\0", b""])
def test_what_is_no_longer_what_was_kept_is_told_and_mended_by_keeping_it_again(store: Store, other: bytes) -> None:
    file = file_of(store)
    kept(store)
    file.write_bytes(other)
    with pytest.raises(Damaged, match="is not what was seen"):
        read(store)
    kept(store)
    assert read(store) == SEEN


@pytest.mark.parametrize("there", ["link", "pipe", "folder"])
def test_what_is_no_plain_file_is_neither_followed_nor_waited_for(store: Store, tmp_path: Path, there: str) -> None:
    file = file_of(store)
    kept(store)
    file.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(SEEN)
    match there:
        case "link":
            file.symlink_to(elsewhere)
        case "pipe":
            os.mkfifo(file)
        case "folder":
            file.mkdir()
    with pytest.raises(Damaged):
        read(store)


def test_a_disk_that_takes_nothing_is_said_and_leaves_no_row(store: Store) -> None:
    file = file_of(store)
    file.parent.parent.write_text("in its way")
    with pytest.raises(Unavailable, match="evidence cannot be kept"):
        kept(store)
    with store.read() as connection:
        assert connection.execute(select(artifacts)).all() == []


def test_many_may_keep_the_same_at_once(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "evidence")
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: folder.keep(NAME, SEEN), range(40))) == [None] * 40
    assert folder.read(NAME) == SEEN
    assert len(list((tmp_path / "evidence").rglob("*"))) == 2


def test_what_is_in_the_graph_from_before_there_was_a_folder_is_read_from_there(store: Store) -> None:
    with by_hand(store) as connection:
        connection.execute(insert(artifacts), {"digest": NAME, "size": len(SEEN), "content": SEEN})
    assert read(store) == SEEN
    with by_hand(store) as connection:
        connection.execute(update(artifacts).values(content=b"2 passed"))
    with pytest.raises(Damaged, match=f"has 8 of its {len(SEEN)} bytes"):
        read(store)


def test_content_that_lies_beside_another_machines_graph_is_not_found(store: Store) -> None:
    if store.url.startswith("sqlite"):
        pytest.skip("it lies beside this one")
    with by_hand(store) as connection:
        row = {"digest": NAME, "size": len(SEEN), "content": b"", "place": "folder"}
        connection.execute(insert(artifacts), row)
    with pytest.raises(NotFound, match="beside the SQLite file"):
        read(store)


def test_a_run_whose_last_words_are_damaged_has_ended_all_the_same(store: Store, confirmed: Any) -> None:
    run = f"{confirmed.task}-author-1"
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin"), confirmed.run())
    seen = Observation(
        plan_id=confirmed.plan, task_id=confirmed.task, run_id=run, epoch=1, kind=EvidenceKind.AGENT_CRASH, content=SEEN
    )
    with store.write() as connection:
        move(
            connection,
            confirmed.make("run", run, "crash", facts={"outcome": "crashed"}),
            record(connection, seen, "it crashed", confirmed.at),
        )
    if store.url.startswith("sqlite"):
        file_of(store).unlink()
    else:
        with by_hand(store) as connection:
            connection.execute(update(artifacts).values(content=b"x"))

    with store.read() as connection:
        end = recorded_end(connection, load_run(connection, run))
        with pytest.raises((NotFound, Damaged)):
            content(connection, NAME)
    assert (end.state, "kept no more" in end.tail) == (RunState.CRASHED, True)
