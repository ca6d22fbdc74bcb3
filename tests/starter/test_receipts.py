"""The receipts of a plan, a line or a JSON object each."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import update

from domain.lifecycle import GENESIS, Receipt
from starter.reading import line_of
from store.database import open_store
from store.tables import receipts


def a_receipt(**said: Any) -> Receipt:
    plain: dict[str, Any] = {
        "chain": "p-12345678", "seq": 7, "kind": "task", "subject": "p-12345678-1", "before": "in_review",
        "after": "in_review", "event": "approved", "key": "k", "cause": "a test", "facts": {}, "previous": GENESIS,
        "at": datetime(2026, 3, 1, 12, tzinfo=UTC), "hash": "h",
    }  # fmt: skip
    return Receipt(**{**plain, **said})


def test_a_line_says_who_caused_what():
    assert " task p-12345678-1 approved by person: in_review (a test)" in line_of(a_receipt(actor="person"))
    refused = "a task that is in_review cannot approved: an author's run may not cause that; only a person may"
    said = line_of(a_receipt(actor="author", refused=refused))
    assert f" approved by author: refused: {refused}" in said


def test_a_line_of_before_there_were_actors_names_nobody():
    assert " task p-12345678-1 approved: in_review (a test)" in line_of(a_receipt())


def test_receipts_name_their_actors_in_lines_and_in_json_and_hold(watchbill, published_graph):
    lines = watchbill("receipts", "faster", "--verify", WATCHBILL_STORE_URL=published_graph)
    assert lines.returncode == 0, lines.stderr
    assert "publish by person" in lines.stdout
    kept = watchbill("receipts", "faster", "--json", WATCHBILL_STORE_URL=published_graph).stdout.splitlines()
    assert {json.loads(line)["actor"] for line in kept} == {"person"}


def test_an_actor_that_was_changed_breaks_its_receipt(watchbill, published_graph):
    store = open_store(published_graph)
    with store.write() as connection:
        connection.execute(update(receipts).where(receipts.c.seq == 1).values(actor="author"))
    store.close()
    done = watchbill("receipts", "faster", "--verify", WATCHBILL_STORE_URL=published_graph)
    assert "receipt 1 was changed: its hash is not that of what it says" in done.stdout
