"""`watchbill show`: made from the graph alone, written whole, and never over what is somebody's own."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import delete, update

from domain.document import parse
from domain.identity import run_id
from domain.imprint import imprint_of
from domain.projection import render
from domain.run import EvidenceKind
from domain.told import ToldUsage
from starter.exits import CommandFailed, Exit
from starter.reporting.giving import load_report
from starter.reporting.markdown import to_markdown
from starter.reporting.page import plan_page
from starter.settings import load
from starter.showing import Shown, load_shown, write
from store.database import open_store
from store.evidence import Observation, record
from store.moves import move
from store.projections import projection_of
from store.receipts import head_of
from store.tables import ceilings, reservations, runs, usage
from tests.store.crowd import AT, Crowd


def shown(url: str, crowd: Crowd) -> Shown:
    return load_shown(
        load({"WATCHBILL_STORE_URL": url, "WATCHBILL_OWNER": crowd.owner, "HOME": "/nowhere"}), crowd.plan
    )


@pytest.fixture
def crowd(sqlite_url: str) -> Crowd:
    store = open_store(sqlite_url)
    made = Crowd().make(store)
    store.close()
    return made


def test_it_is_made_of_the_graph(sqlite_url: str, crowd: Crowd) -> None:
    told = shown(sqlite_url, crowd)
    store = open_store(sqlite_url)
    with store.read() as connection:
        assert head_of(connection, crowd.plan) == (told.seq, told.head)
    store.close()
    lines = told.markdown.splitlines()
    assert [line for line in lines if line.startswith("- [")] == [
        *(f"- [x] {each}. Do thing {each}" for each in range(1, 5)),
        "- [ ] 5. Do thing 5",
        "- [ ] 6. Do thing 6",
    ]
    assert "> **merged**, unproven · <https://forge.example/acme/shop/pull/4>" in told.markdown
    assert "  > **failed** · 2 runs · 0.00200001 USD spent of 12.00 USD\n" in told.markdown
    assert "  > Waits for a person (`" in told.markdown
    assert told.markdown.count("`make test` on") == 6
    assert told.markdown.count("  In **full**.\n") == 6
    assert told.markdown.endswith("## Afterwards\n\nWe rest.\n")
    assert told.markdown.count(": published by ada") == told.markdown.count(": confirmed by ada") == 1


def test_reviews_and_runs_that_are_not_metered_are_told_from_the_graph(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    secret = f"ghp_{'a1B2' * 9}"
    crowd = Crowd(tasks=3, rounds=1, reviewed=True, finds=f"{secret} does not belong here.").make(store)
    with store.write() as connection:
        connection.execute(update(runs).where(runs.c.role == "author").values(metering="unmetered"))
        connection.execute(delete(usage))
        connection.execute(delete(reservations))
        connection.execute(delete(ceilings))
    with store.write() as connection:
        heard = Observation(
            plan_id=crowd.plan, task_id=crowd.task(2), run_id=run_id(crowd.task(2), "author", 1), epoch=1,
            kind=EvidenceKind.USAGE, content=ToldUsage("claude", {"output": 7}, 5_000_000).content, command="claude",
            seen_by="worker-1",
        )  # fmt: skip
        move(connection, record(connection, heard, "its word", AT))
    store.close()
    told = shown(sqlite_url, crowd).markdown
    assert told.count("review by `opencode:gemini-2.5-pro` on `") == 3
    assert told.count(": approved. In its own words, which nobody has checked:\n") == 2
    assert "> I looked at 2.\n" in told.replace(">   ", "> ")
    assert (secret in told, "- `a.py:3`: " in told) == (False, True)
    assert (
        "> what 3 unmetered runs cost is not known; the budget is 12.00 USD. Runs are unconfined. Agents are partly"
        in told
    )
    report = load_report(load({"WATCHBILL_STORE_URL": sqlite_url, "HOME": "/nowhere"}), crowd.plan)
    assert (report.metering, report.spent_nano_usd) == ("partly unmetered", None)
    assert (report.costs.whole.spent_nano_usd, report.costs.whole.unmetered_runs) == (None, 3)
    assert {task.metering for task in report.tasks} == {"partly unmetered"}
    word = "author 1 is unverified: claude says of itself that it took 7 output tokens; it reckons 0.005 USD; in no sum"
    assert told.count(word) == 1
    assert to_markdown(report).count(word) == 1
    assert plan_page(report, ZoneInfo("UTC")).count(word.removeprefix("author 1 is ")) == 1
    assert [run.told for task in report.tasks for run in task.attempts if run.told] == [
        ToldUsage("claude", {"output": 7}, 5_000_000)
    ]


def test_the_same_facts_make_the_same_bytes_in_any_store(sqlite_url: str, postgres_url: str) -> None:
    crowd = Crowd(tasks=4, reviewed=True)
    for url in (sqlite_url, postgres_url):
        store = open_store(url)
        # What another plan does has no part in it.
        Crowd("other", begins=AT - timedelta(days=1)).make(store)
        crowd.make(store)
        store.close()
    assert shown(sqlite_url, crowd) == shown(postgres_url, crowd)
    settings = [load({"WATCHBILL_STORE_URL": url, "HOME": "/nowhere"}) for url in (sqlite_url, postgres_url)]
    one, other = (replace(load_report(each, crowd.plan), made_at="") for each in settings)
    assert one == other


def test_no_secret_that_anybody_said_is_passed_on(sqlite_url: str) -> None:
    secret = f"ghp_{'a1B2' * 9}"
    store = open_store(sqlite_url)
    crowd = Crowd(tasks=3, rounds=1, asks=f"Is {secret} the key?", fails=f"{secret} is not.").make(store)
    store.close()
    report = load_report(load({"WATCHBILL_STORE_URL": sqlite_url, "HOME": "/nowhere"}), crowd.plan)
    for told in (shown(sqlite_url, crowd).markdown, plan_page(report, ZoneInfo("UTC")), to_markdown(report)):
        assert secret not in told
        assert told.count("redacted") == told.count("the key?") + 1 >= 2


def test_a_plan_that_nobody_confirmed_yet_is_shown_with_its_whole_text(published_graph: str) -> None:
    store = open_store(published_graph)
    from domain.identity import plan_id

    with store.read() as connection:
        found = projection_of(connection, plan_id("local", "faster"))
    store.close()
    assert found is not None
    told = render(found)
    assert "- [ ] 1. One\n\n  > **unconfirmed**\n\n  ```sh\n  true\n  ```\n" in told
    assert "**awaiting_confirmation**" in told


def test_it_is_written_once_and_only_anew_when_the_graph_has_moved(
    sqlite_url: str, crowd: Crowd, tmp_path: Path
) -> None:
    told, folder = shown(sqlite_url, crowd), tmp_path / "plans" / "here"
    first = write(told, folder)
    assert (first.path, first.changed, first.edited) == (str(folder / "crowd.md"), True, "")
    assert (folder / "crowd.md").read_text() == told.markdown
    assert write(told, folder).changed is False
    assert (folder / "crowd.md").stat().st_mode & 0o777 == 0o666 & ~mask()

    (folder / "crowd.md").write_text(older := told.markdown.replace("> **failed**", "> **working**"))
    unprinted = older.replace(told.digest, "-", 1)
    from domain.identity import digest

    (folder / "crowd.md").write_text(older.replace(told.digest, digest(unprinted), 1))
    assert write(told, folder).edited == ""
    assert [each.name for each in folder.iterdir()] == ["crowd.md"]
    assert (folder / "crowd.md").read_text() == told.markdown


def test_an_edit_is_kept_beside_and_discarded(sqlite_url: str, crowd: Crowd, tmp_path: Path) -> None:
    told = shown(sqlite_url, crowd)
    path = Path(write(told, tmp_path).path)
    for number, edit in enumerate(("- [x] 6.", "- [x] 5."), 1):
        edited = told.markdown.replace(edit.replace("x", " "), edit)
        path.write_text(edited)
        written = write(told, tmp_path)
        assert written.edited == str(tmp_path / f"crowd.md.edited{'' if number == 1 else '-2'}")
        assert Path(written.edited).read_text() == edited
        assert path.read_text() == told.markdown


def test_an_edit_that_is_no_text_is_kept_byte_by_byte(sqlite_url: str, crowd: Crowd, tmp_path: Path) -> None:
    told = shown(sqlite_url, crowd)
    path = Path(write(told, tmp_path).path)
    path.write_bytes(edited := told.markdown.encode() + b"\xff\n")
    assert Path(write(told, tmp_path).edited).read_bytes() == edited
    assert path.read_text() == told.markdown


def test_nothing_of_anybodys_is_written_over(sqlite_url: str, crowd: Crowd, tmp_path: Path) -> None:
    told, path = shown(sqlite_url, crowd), tmp_path / "crowd.md"
    other = told.markdown.replace(f"plan={crowd.plan}", "plan=other-00000000")
    for mine, why in (
        (crowd.text, "is no projection of"),
        ("", "is no projection of"),
        (other, "the projection of another plan, other-00000000"),
    ):
        path.write_text(mine)
        with pytest.raises(CommandFailed, match=why) as refused:
            write(told, tmp_path)
        assert refused.value.exit is Exit.REFUSED
        assert path.read_text() == mine
    path.unlink()
    (tmp_path / "elsewhere").write_text(told.markdown)
    for make in (lambda: path.symlink_to("elsewhere"), path.mkdir, lambda: os.mkfifo(path)):
        make()
        with pytest.raises(CommandFailed, match="is no file"):
            write(told, tmp_path)
        path.rmdir() if path.is_dir() else path.unlink()
    assert sorted(each.name for each in tmp_path.iterdir() if "crowd" in each.name or "." in each.name) == ["store.db"]


def test_what_cannot_be_written_leaves_what_was_there(
    sqlite_url: str, crowd: Crowd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "plans"
    told = shown(sqlite_url, crowd)
    write(told, folder)
    edited = told.markdown + "mine\n"
    (folder / "crowd.md").write_text(edited)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("starter.whole.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(told, folder)
    assert (folder / "crowd.md").read_text() == edited
    assert sorted(each.name for each in folder.iterdir()) == ["crowd.md", "crowd.md.edited"]


def test_the_command_says_what_it_did_and_what_it_found(watchbill, sqlite_url: str, tmp_path: Path) -> None:
    store = open_store(sqlite_url)
    crowd = Crowd(owner="local", tasks=3, rounds=1).make(store)
    store.close()
    settings = {"WATCHBILL_STORE_URL": sqlite_url}
    printed = watchbill("show", "crowd", **settings)
    assert printed.returncode == Exit.DONE
    imprint = imprint_of(printed.stdout)
    assert imprint is not None
    assert (imprint.plan, imprint.intact) == (crowd.plan, True)

    path = tmp_path / "out" / "crowd.md"
    assert watchbill("show", "crowd", "--write", "out", **settings).stdout == "out/crowd.md: written\n"
    assert path.read_text() == printed.stdout
    assert watchbill("show", "crowd", "--write", "out", **settings).stdout == "out/crowd.md: it was so already\n"
    path.write_text(printed.stdout + "\nMine.\n")
    done = watchbill("show", "crowd", "--write", "out", "--json", **settings)
    assert '"changed": true, "edited": "out/crowd.md.edited"' in done.stdout
    assert "out/crowd.md had been edited; nothing reads that back, and it is kept as out/crowd.md.edited" in done.stderr

    # Nor is it read back by any other command.
    for command in ("check", "submit", "confirm", "status"):
        refused = watchbill(command, "out/crowd.md", **settings)
        assert (refused.returncode, "never read back" in refused.stderr + refused.stdout) == (Exit.FAULTS, True)
    (tmp_path / "crowd.md").write_text(crowd.text)
    assert watchbill("show", "crowd", "--write", ".", **settings).returncode == Exit.REFUSED
    assert parse((tmp_path / "crowd.md").read_text()).slug == "crowd"
    assert watchbill("show", "nobody", **settings).returncode == Exit.NOT_FOUND


def mask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found
