"""The relay is killed under a real agent that waits for its model. Only the model is a stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from store.database import open_store
from store.tables import reservations
from tests.end_to_end.plans import Box
from tests.end_to_end.rig import Rig
from tests.end_to_end.test_agents import cli, front, runs

__all__ = ["cli"]
pytestmark = [pytest.mark.agents, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def rig(battered: Rig) -> Iterator[Rig]:
    """Its model says little of its first answer, and then nothing for a long time."""
    battered.model(faults=[{"kind": "hang", "after": 2, "seconds": 200, "from": 0, "count": 1}])
    yield battered
    battered.model()
    battered.assert_sound()


def calls(rig: Rig, slug: str) -> list[Any]:
    """What the ledger has of the calls of a plan, in the order in which they were made."""
    return rig.rows(
        "SELECT c.id, c.state, c.held, c.settled FROM reservations c JOIN runs r ON r.id = c.run_id "
        "JOIN plans p ON p.id = r.plan_id WHERE p.slug = :slug ORDER BY c.asked_at",
        slug=slug,
    )


def test_an_agent_goes_on_when_the_relay_is_killed_in_its_call_and_that_call_counts_whole(rig: Rig, cli: str) -> None:
    slug = f"relay-dies-{cli}"
    rig.submit(slug, Box("Write it down", f"echo written > {slug}.txt"), **front(cli, budget="5 USD"))
    rig.until(rig.asked_of_model, "the model is asked")
    first = rig.until(lambda: calls(rig, slug), "money is held")[0]
    rig.kill("relay")
    assert rig.until_completed(slug).tasks[0].state == "merged"
    assert rig.file(f"{slug}.txt") == "written\n"
    assert runs(rig, slug)[-1].outcome == "done"

    left = [call for call in calls(rig, slug) if call.state == "held"]
    assert [call.id for call in left] == [first.id]
    store = open_store(f"sqlite:///{rig.home / 'graph.db'}")
    with store.write() as connection:
        lapsed = datetime.now(UTC) - timedelta(hours=1)
        connection.execute(update(reservations).where(reservations.c.id == first.id).values(lease_until=lapsed))
    store.close()
    rig.until(lambda: calls(rig, slug)[0].state == "expired", "the sweep has seen it")
    money = rig.command("costs", slug, "--json").json["money"]
    assert (money["held_nano_usd"], money["spent_nano_usd"]) == (0, sum(call.settled for call in calls(rig, slug)))
    assert calls(rig, slug)[0].settled == first.held
