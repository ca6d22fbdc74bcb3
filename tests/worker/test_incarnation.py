"""A graph serves one Temporal at a time, and the one that was replaced can do nothing any more."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from temporalio.client import Client

from domain.duties import Actor
from domain.errors import Superseded
from domain.lifecycle import Move
from store.database import Store
from store.moves import move
from store.workers import incarnation_of
from worker.incarnation import incarnation, namespace_id


def replaced(store: Store, temporal: str) -> int:
    with store.write() as connection:
        return incarnation_of(connection, temporal, datetime.now(UTC))


async def test_the_first_temporal_that_comes_is_the_first(temporal_client: Client, sqlite_store: Store) -> None:
    assert [await incarnation(temporal_client, sqlite_store) for _ in range(3)] == [1, 1, 1]


async def test_a_namespace_has_an_id_that_stays(temporal_client: Client) -> None:
    first = await namespace_id(temporal_client)
    assert first
    assert await namespace_id(temporal_client) == first


async def test_a_temporal_that_the_graph_does_not_know_takes_over_only_when_told(
    temporal_client: Client, sqlite_store: Store
) -> None:
    assert replaced(sqlite_store, "the one before") == 1
    with pytest.raises(Superseded, match="watchbill rebuild"):
        await incarnation(temporal_client, sqlite_store)
    assert await incarnation(temporal_client, sqlite_store, adopt=True) == 2
    assert await incarnation(temporal_client, sqlite_store) == 2


async def test_one_that_was_replaced_is_told_so_and_moves_nothing(temporal_client: Client, sqlite_store: Store) -> None:
    number = await incarnation(temporal_client, sqlite_store)
    replaced(sqlite_store, "the one after")
    with pytest.raises(Superseded):
        await incarnation(temporal_client, sqlite_store)
    wish = Move("owner", "ada", "open", "open", "owner:ada", "a test", datetime.now(UTC), by=Actor.PERSON)
    with pytest.raises(Superseded), sqlite_store.write() as connection:
        move(connection, wish, incarnation=number)
