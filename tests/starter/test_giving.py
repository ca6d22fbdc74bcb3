"""`watchbill report` as it is typed: of one plan or of all, on paper, for machines, or as a page."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from starter.exits import Exit
from store.database import open_store
from tests.store.crowd import Crowd


@pytest.fixture
def given(watchbill, sqlite_url: str):
    """The command, where `local` has a plan of this night and one of last month; its url is in `settings`."""
    store = open_store(sqlite_url)
    now = datetime.now(UTC)
    Crowd("tonight", "local", begins=now - timedelta(hours=8)).make(store)
    Crowd("earlier", "local", tasks=2, begins=now - timedelta(days=30)).make(store)
    Crowd("theirs", "bob", begins=now - timedelta(hours=8)).make(store)
    store.close()
    watchbill.settings["WATCHBILL_STORE_URL"] = sqlite_url
    return watchbill


def test_without_a_plan_it_tells_of_those_that_moved(given) -> None:
    told = given.json("report")
    assert [plan["title"] for plan in told["plans"]] == ["A crowd of 6"]
    assert [(each["plan"], each["task"]) for each in told["waiting"]] == [("tonight", 6)]
    assert told["costs"]["whole"]["spent_nano_usd"] == 12_000_042
    assert sum(part["spending"]["spent_nano_usd"] for part in told["costs"]["models"]) == 12_000_042
    markdown = given("report").stdout
    assert markdown.startswith("# Since 20")
    assert "## A crowd of 6\n" in markdown
    assert "earlier" not in markdown + given("report", "--since", "2h").stdout
    assert "## A crowd of 2\n" in given("report", "--since", "60d").stdout


def test_of_a_plan_it_tells_all_or_what_moved_since(given) -> None:
    assert len(given.json("report", "tonight")["tasks"]) == 6
    told = given.json("report", "earlier", "--since", "1h")
    assert (told["tasks"], told["still"]) == ([], {"merged": 2})
    assert "Of the other boxes nothing moved since" in given("report", "earlier", "--since", "1h").stdout
    assert given("report", "nobody").returncode == Exit.NOT_FOUND


def test_a_time_that_cannot_be_read_is_one_sentence(given) -> None:
    done = given("report", "--since", "yesterday")
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")
    assert done.stderr == "--since: 'yesterday' is no time; write 12h, 2d, 2026-03-01 or 2026-03-01T18:30\n"


def test_a_page_is_written_whole_and_beside_json(given, tmp_path: Path) -> None:
    done = given("report", "--html", "morning.html")
    assert (done.returncode, done.stdout) == (Exit.DONE, "morning.html: written\n")
    page = (tmp_path / "morning.html").read_text()
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") >= 2
    told = json.loads(given("report", "tonight", "--html", "plan.html", "--json").stdout)
    assert told["title"] in (tmp_path / "plan.html").read_text()
    nowhere = given("report", "--html", "nowhere/morning.html")
    assert nowhere.returncode == Exit.NOT_FOUND
    assert "--html: nowhere/morning.html cannot be written: no such file or directory" in nowhere.stderr
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".morning")]


def test_an_owner_of_nothing_has_an_empty_morning(given) -> None:
    done = given("report", WATCHBILL_OWNER="nobody")
    assert (done.returncode, "0 plans. Nothing ended; 0.00 USD spent." in done.stdout) == (Exit.DONE, True)
    assert given("report", "--html", "empty.html", WATCHBILL_OWNER="nobody").returncode == Exit.DONE
