"""The commands against everything real: `watchbill up` with Temporal, a worker, webhooks and a stand-in GitHub."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from pathlib import Path

import psutil
import pytest

from domain.identity import plan_id
from starter.exits import Exit
from tests.starter.conftest import plan

# A test types many commands, each a process; on a busy machine that takes its time.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def published(installed, slug: str, *boxes: str, confirm: bool = False, **front: str) -> Path:
    path = installed.folder / f"{slug}.md"
    path.write_text(plan(slug, *boxes, **front))
    done = installed("submit", path, *(["--confirm"] if confirm else []))
    assert done.returncode == 0, done.stderr
    return path


def test_a_plan_is_published_confirmed_watched_and_reported(installed):
    path = published(installed, "all-of-it", "Note it | echo a > a.md", "And more {after=1} | echo b > b.md",
                     merge="when-proven", checks="test -f a.md")  # fmt: skip
    shown = installed("status", "all-of-it")
    assert "watchbill confirm all-of-it" in shown.stdout
    assert installed("confirm", path).returncode == 0
    watched = installed("watch", "all-of-it", "--json")
    assert watched.returncode == Exit.DONE, watched.stdout + watched.stderr
    told = [json.loads(line) for line in watched.stdout.splitlines()]
    seqs = [each["seq"] for each in told if each["kind"] == "happening"]
    assert seqs == sorted(set(seqs))
    assert told[-1]["kind"] == "over"
    assert [task["state"] for task in told[-1]["tasks"]] == ["merged", "merged"]

    again = installed("watch", "all-of-it", "--json")
    assert [json.loads(line)["kind"] for line in again.stdout.splitlines()] == ["over"]
    whole = installed("watch", "all-of-it", "--json", "--from-start")
    assert len(whole.stdout.splitlines()) > len(seqs)
    since = installed("watch", "all-of-it", "--json", "--since", seqs[-2])
    assert [json.loads(line).get("seq") for line in since.stdout.splitlines()] == [seqs[-1], None]

    report = installed.json("report", "all-of-it")
    assert [(task["state"], task["proof"]) for task in report["tasks"]] == [("merged", "proven")] * 2
    assert {check["exit_code"] for task in report["tasks"] for check in task["checks"]} == {0}
    assert installed("receipts", "all-of-it", "--verify").returncode == 0
    audited = installed.json("audit", "all-of-it")
    assert (audited["findings"], audited["seals"]) == ([], 3)


def test_each_case_of_publishing_and_confirming_has_its_answer(installed):
    path = published(installed, "cases", "One")
    assert installed.json("submit", path)["outcome"] == "already"
    path.write_text(plan("cases", "One", "Two"))
    assert installed.json("submit", path)["outcome"] == "done"
    digest = installed.json("status", "cases")["digest"]
    assert installed("confirm", "cases", "--digest", "0" * 12).returncode == Exit.REFUSED
    assert installed("confirm", "cases", "--digest", digest[:12]).returncode == Exit.DONE
    assert installed.json("confirm", path)["outcome"] == "already"
    assert installed.json("confirm", "cases", "--digest", digest)["outcome"] == "already"
    assert installed.json("submit", path)["outcome"] == "already"
    path.write_text(plan("cases", "One", "Two", "Three"))
    late = installed("submit", path)
    assert (late.returncode, late.stdout) == (Exit.REFUSED, "")
    assert "another slug" in late.stderr
    assert installed("confirm", path).returncode == Exit.REFUSED


def test_what_is_unknown_is_not_found_and_starts_nothing(installed):
    for arguments in (
        ["status", "nobody"], ["watch", "nobody"], ["confirm", "nobody"], ["pause", "nobody"], ["cancel", "nobody#1"],
        ["report", "nobody"], ["receipts", "nobody"], ["audit", "nobody"],
    ):  # fmt: skip
        done = installed(*arguments)
        assert (done.returncode, done.stderr.count("\n")) == (Exit.NOT_FOUND, 1), (arguments, done.stderr)
        assert "no plan nobody" in done.stderr
    assert "nobody" not in installed("status").stdout


def test_a_repository_or_base_that_is_not_there_publishes_nothing(installed):
    for slug, front in (("no-repository", {"repository": "acme/attic"}), ("no-base", {"base": "trunk"})):
        path = installed.folder / f"{slug}.md"
        path.write_text(plan(slug, **front))
        done = installed("submit", path)
        assert done.returncode == Exit.NOT_FOUND, done.stderr
        assert next(iter(front.values())) in done.stderr
        assert installed("status", slug).returncode == Exit.NOT_FOUND


def test_decisions_are_answered_and_repeats_are_no_failure(installed):
    published(installed, "decided", "One | sleep 600", "Two {after=1}", confirm=True)
    assert installed.json("pause", "decided", "--note", "lunch")["outcome"] == "done"
    assert installed.json("pause", "decided")["outcome"] == "already"
    assert "watchbill resume decided" in installed("status", "decided").stdout
    assert installed.json("resume", "decided")["outcome"] == "done"
    assert installed("approve", "decided#2").returncode == Exit.REFUSED
    assert installed("retry", "decided#2").returncode == Exit.REFUSED
    assert installed("cancel", "decided#9").returncode == Exit.NOT_FOUND
    assert installed("archive", "decided").returncode == Exit.REFUSED
    assert installed.json("cancel", "decided#2")["state"] == "cancelled"
    assert installed.json("cancel", "decided")["outcome"] == "done"
    waited = installed("status", "decided", "--wait", "--json")
    assert waited.returncode == Exit.UNFINISHED
    assert json.loads(waited.stdout)["ended"]
    assert installed.json("archive", "decided")["outcome"] == "done"
    assert installed.json("archive", "decided")["outcome"] == "already"


def test_a_question_is_shown_with_what_to_type_and_answered_by_typing_it(installed):
    published(installed, "asking", "Stray | echo x > stray.md", confirm=True, paths="[src/**]")
    waited = installed("watch", "asking", "--until", "person")
    assert waited.returncode == Exit.UNFINISHED
    assert "watchbill approve asking#1" in waited.stdout
    waiting = installed.json("status", "asking")["waiting"]
    assert [each["task"] for each in waiting] == [1]
    assert installed.json("approve", "asking#1", "--note", "that is fine")["outcome"] == "done"
    merging = installed("status", "asking", "--wait", "--json")
    assert "merged by hand" in json.loads(merging.stdout)["waiting"][0]["text"]
    assert installed("approve", "asking#1", "--sha", "0" * 40).returncode == Exit.REFUSED
    assert installed.json("approve", "asking#1")["outcome"] == "done"
    assert installed("watch", "asking").returncode == Exit.DONE


def test_plans_are_listed_with_who_is_needed(installed):
    published(installed, "listed")
    deadline = time.monotonic() + 20
    while True:
        rows = {each["plan_id"]: each for each in installed.json("status")}
        row = rows.get(plan_id("local", "listed"))
        if row or time.monotonic() > deadline:
            break
    assert row
    assert (row["state"], row["needs_person"]) == ("awaiting_confirmation", True)
    assert (bool(row["in_temporal_since"]), row["published"]) == (True, "")
    assert "in Temporal since" in installed("status").stdout
    assert installed("status", WATCHBILL_OWNER="somebody-else").stdout.startswith("somebody-else has no plans")


def test_a_row_changed_by_hand_is_found_and_named(installed):
    published(installed, "tampered")
    plan = plan_id("local", "tampered")
    with sqlite3.connect(installed.home / "graph.db", timeout=30) as graph:
        graph.execute("UPDATE plans SET title = 'another' WHERE id = ?", (plan,))
    graph.close()
    done = installed("audit", "tampered")
    assert done.returncode == Exit.FAULTS
    assert f"title of plan {plan} is 'another'" in done.stdout


def test_the_doctor_finds_everything_in_order_and_shows_no_secret(installed):
    done = installed("doctor", "--json")
    findings = {each["what"]: each for each in json.loads(done.stdout)}
    assert {each["what"] for each in findings.values() if each["level"] == "missing"} == set()
    assert done.returncode == 0
    assert findings["workers"]["level"] == "ok"
    for secret in ("rehearsal/webhook-secret", "rehearsal/setup-token"):
        assert (installed.home / secret).read_text().strip() not in done.stdout


def test_a_watch_outlives_a_server_that_is_killed(installed):
    published(installed, "outlived", "One | sleep 12; echo x > outlived.md", confirm=True, merge="when-proven",
              checks="true")  # fmt: skip
    watching = installed.start("watch", "outlived", "--json")
    first = json.loads(watching.stdout.readline())
    assert first["kind"] == "happening"
    os.kill(_temporal(installed), signal.SIGKILL)
    rest, _ = watching.communicate(timeout=300)
    told = [first, *map(json.loads, rest.splitlines())]
    seqs = [each["seq"] for each in told if each["kind"] == "happening"]
    assert seqs == sorted(set(seqs))
    assert told[-1]["kind"] == "over"
    assert watching.returncode == Exit.DONE


def test_ctrl_c_leaves_a_watch_quietly_and_the_next_one_goes_on(installed):
    published(installed, "interrupted")
    watching = installed.start("watch", "interrupted")
    assert "awaiting_confirmation" in watching.stdout.readline()
    watching.send_signal(signal.SIGINT)
    _, said = watching.communicate(timeout=120)
    assert (watching.returncode, said) == (Exit.INTERRUPTED, "")
    assert installed("watch", "interrupted", "--until", "person", "--json").stdout.count('"happening"') == 0


def _temporal(installed) -> int:
    up = psutil.Process(installed.addresses.pid)
    return next(each.pid for each in up.children() if "start-dev" in each.cmdline())


def test_a_day_is_set_and_what_a_plan_cost_is_shown(installed):
    published(installed, "priced", "One | echo a > priced.md", confirm=True, budget="2.00 USD")
    assert "25.00 USD a day, in UTC" in installed("budget").stdout

    assert installed("budget", "--day", "50 USD", "--zone", "Europe/Berlin").returncode == Exit.DONE
    assert installed.json("budget", "--day", "50")["outcome"] == "already"
    day = installed.json("budget")
    assert (day["cap_nano_usd"], day["left_nano_usd"], day["zone"]) == (50_000_000_000, 50_000_000_000, "Europe/Berlin")
    assert installed("budget", "--zone", "Mars/Olympus").returncode == Exit.REFUSED
    wrong = installed("budget", "--day", "plenty")
    assert (wrong.returncode, "--day: 'plenty' is not an amount" in wrong.stderr) == (Exit.USAGE, True)

    assert "0.00 USD spent; 2.00 USD of 2.00 USD left" in installed("costs", "priced").stdout
    costs = installed.json("costs", "priced")
    assert (costs["money"]["spent_nano_usd"], costs["tasks"][0]["money"]["left_nano_usd"]) == (0, 2_000_000_000)
    assert installed("costs", "nobody").returncode == Exit.NOT_FOUND

    less = installed("approve", "priced#1", "--budget", "1")
    assert (less.returncode, "can be raised" in less.stderr) == (Exit.REFUSED, True)
    assert installed("approve", "priced#1", "--budget", "3", "--plan-budget", "4").returncode == Exit.DONE
    assert "3.00 USD of 3.00 USD left" in installed("costs", "priced").stdout
    assert installed("approve", "priced#1", "--budget", "9", "--sha", "0a1b2c3").returncode == Exit.USAGE
    assert installed.json("audit", "priced")["findings"] == []
    installed("cancel", "priced")


def test_what_is_known_is_edited_as_a_document_and_a_stale_edit_is_refused(installed):
    published(installed, "known", "One")
    added = installed.folder / "added.md"
    added.write_text("### Tests need Redis\n\n`make redis`\n")
    done = installed("context", "edit", "known", "--file", added)
    assert (done.returncode, done.stdout) == (0, "known: 1 note added\n"), done.stderr
    shown = installed("context", "known").stdout
    mended, late = installed.folder / "mended.md", installed.folder / "late.md"
    mended.write_text(shown.replace("make redis", "make up"))
    late.write_text(shown.replace("make redis", "by hand"))
    assert installed("context", "edit", "known", "--file", mended).stdout == "known: 1 note changed\n"
    refused = installed("context", "edit", "known", "--file", late)
    assert (refused.returncode, "edited since it was read" in refused.stderr) == (Exit.REFUSED, True)
    assert [note["text"] for note in installed.json("context", "known")["notes"]] == ["`make up`"]
    for_all = installed("context", "edit", "--repository", "acme/shop", "--file", added)
    assert for_all.stdout == "acme/shop: 1 note added\n"
    assert "## Operating knowledge of acme/shop" in installed("context", "known").stdout
    assert installed.json("audit", "known")["findings"] == []
