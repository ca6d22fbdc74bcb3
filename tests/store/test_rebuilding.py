"""The graph alone is enough: the same moves make the same receipts anywhere, and what is shown is made of the graph."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, delete, insert, select

from domain.duties import Actor
from domain.lifecycle import Move
from domain.projection import render
from store import tables
from store.audit import audit
from store.database import Store, open_store
from store.moves import move, receipt_of
from store.projections import projection_of
from store.subjects import SUBJECTS
from tests.store.crowd import Crowd

BESIDE = (tables.reservations, tables.usage, tables.words, tables.ceilings)
"""What is a fact without being the fold of receipts: what calls came to, and what agents said."""


def rows(connection: Connection, table: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(select(table).order_by(*table.primary_key)).mappings()]


@pytest.mark.parametrize("there", ["sqlite", "postgres"])
def test_the_same_moves_make_the_same_rows_receipts_and_projection_on_the_other_engine(
    there: str, sqlite_url: str, postgres_url: str
) -> None:
    urls = {"sqlite": sqlite_url, "postgres": postgres_url}
    first, second = open_store(urls.pop(there)), open_store(*urls.values())
    crowd = Crowd(tasks=4, rounds=2, reviewed=True).make(first)
    with first.read() as connection:
        told = connection.execute(select(tables.receipts).order_by(tables.receipts.c.mark, tables.receipts.c.chain))
        receipts = [receipt_of(row) for row in told]
        artifacts = rows(connection, tables.artifacts)
        beside = [rows(connection, table) for table in BESIDE]
    assert receipts
    assert not [receipt for receipt in receipts if receipt.refused]
    with second.write() as connection:
        connection.execute(insert(tables.artifacts), artifacts)
    for receipt in receipts:
        with second.write() as connection:
            said = {name: getattr(receipt, name) for name in Move.__dataclass_fields__ if name != "by"}
            (made,) = move(connection, Move(**said, by=Actor(receipt.actor)))
        assert made.receipt == receipt
    with second.write() as connection:
        connection.execute(delete(tables.ceilings))
        for table, facts in zip(BESIDE, beside, strict=True):
            if facts:
                connection.execute(insert(table), facts)
    same_everywhere(first, second, crowd.plan)
    first.close()
    second.close()


def same_everywhere(first: Store, second: Store, plan: str) -> None:
    kept = (*(subject.table for subject in SUBJECTS.values()), tables.receipts)
    with first.read() as one, second.read() as other:
        for table in kept:
            assert rows(one, table) == rows(other, table), table.name
        # A chain that was locked and never moved has a row as well.
        heads = [[row for row in rows(each, tables.chains) if row["seq"]] for each in (one, other)]
        assert heads[0] == heads[1]
        assert audit(other) == ()
        shown = [projection_of(connection, plan) for connection in (one, other)]
    assert shown[0] is not None
    assert shown[1] is not None
    assert render(shown[0]) == render(shown[1])
    assert "proven" in render(shown[1])
