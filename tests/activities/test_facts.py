"""Moves on their way from a workflow to the store: whoever sent them, and however long ago."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter

from activities.facts import Facts
from domain.duties import Actor
from domain.heartbeat import HeartbeatPolicy
from domain.lifecycle import Move, Receipt
from domain.publication import Moves, MovesReply, SentMove
from domain.run import Role
from signing.keys import Signer
from store.audit import audit
from store.receipts import receipts_of
from tests.activities.conftest import KEEPER, Graph
from worker.plugin import watchbill_plugin


@pytest.fixture
def under_way(graph: Graph) -> Graph:
    graph.confirm()
    graph.begin(Role.AUTHOR)
    return graph


def make(graph: Graph, signer: Signer, order: Moves) -> MovesReply:
    return graph.environment.run(Facts(graph.store, KEEPER, HeartbeatPolicy(), 1, signer).move, order)


def wish(graph: Graph, event: str, **facts: Any) -> dict[str, Any]:
    """A task's move as workflows sent it before moves named who causes them."""
    return {
        "kind": "task", "subject": graph.task, "event": event, "key": f"a test's {event}", "chain": graph.plan,
        "cause": "a test", "at": datetime.now(UTC).isoformat(), "facts": facts,
    }  # fmt: skip


async def decoded(graph: Graph, *moves: dict[str, Any]) -> Moves:
    """What the activity is given when this lies in a history or on a queue."""
    converter = watchbill_plugin().data_converter
    assert isinstance(converter, DataConverter)
    data = json.dumps({"moves": moves, "seen": graph.facts().seq}).encode()
    (order,) = await converter.decode([Payload(metadata={"encoding": b"json/plain"}, data=data)], [Moves])
    assert isinstance(order, Moves)
    return order


def last(graph: Graph) -> Receipt:
    with graph.store.read() as connection:
        assert audit(connection) == ()
        return receipts_of(connection, graph.plan)[-1]


@pytest.mark.parametrize(("event", "by"), [("worked", "worker"), ("merged", "worker"), ("closed", "forge")])
async def test_a_move_that_was_sent_before_moves_named_anybody_is_made(
    under_way: Graph, signer: Signer, event: str, by: str
) -> None:
    reply = make(under_way, signer, await decoded(under_way, wish(under_way, event)))

    assert (reply.fresh, reply.refused) == (True, "")
    assert (last(under_way).event, last(under_way).actor) == (event, by)


async def test_a_move_crosses_a_queue_as_it_was_sent(under_way: Graph) -> None:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    move = Move("task", under_way.task, "closed", "k", under_way.plan, "a test", at, {"reason": "r"}, by=Actor.FORGE)
    converter = watchbill_plugin().data_converter
    assert isinstance(converter, DataConverter)

    (order,) = await converter.decode(await converter.encode([Moves.of([move], 7)]), [Moves])

    assert [sent.arrived() for sent in order.moves] == [move]
    assert order.seen == 7


@pytest.mark.parametrize("said", ["person", "reviewer", "mallory"])
async def test_a_tasks_workflow_decides_nothing_whomever_it_names(under_way: Graph, signer: Signer, said: str) -> None:
    order = await decoded(under_way, {**wish(under_way, "raised", budget_nano_usd=10**12), "by": said})

    reply = make(under_way, signer, order)

    assert "a worker may not cause that; only a person may" in reply.refused
    assert (last(under_way).actor, last(under_way).refused) == ("worker", reply.refused)
    assert under_way.facts().budget_nano_usd is None


def test_what_is_sent_has_room_for_all_that_a_move_says() -> None:
    assert {*SentMove.__dataclass_fields__} == {*Move.__dataclass_fields__}
