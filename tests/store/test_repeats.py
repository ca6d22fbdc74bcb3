"""A call whose answer was lost is made again, and answers what the first would have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from domain.decision import Decision, DecisionKind, Outcome, Reply
from domain.document import parse
from domain.heartbeat import HeartbeatPolicy
from domain.identity import digest, plan_id, task_id
from domain.publication import Beat, Publish, PublishTo
from domain.pull import Repository
from store.database import Store
from store.decisions import decide
from store.dispatch import beat
from store.publication import publish

AT = datetime(2026, 3, 1, 22, 30, tzinfo=UTC)
PLAN = plan_id("ada", "twice")
TEXT = "---\nslug: twice\nrepository: acme/shop\n---\n## Tasks\n\n- [ ] One\n\n  ```sh\n  true\n  ```\n"


def published(store: Store, text: str = TEXT) -> Reply:
    order = PublishTo(Publish("ada", text, "acme/shop"), Repository("acme/shop", "main", ""), "main", AT)
    with store.write() as connection:
        return publish(connection, order, parse(text), 1)


def decided(store: Store, kind: DecisionKind, at: datetime, ordinal: int | None = None) -> Outcome:
    decision = Decision(kind, PLAN, ordinal, names=digest(TEXT) if kind is DecisionKind.CONFIRM else "", by="ada")
    with store.write() as connection:
        return decide(connection, decision, at, 1).outcome


def test_a_beat_that_is_made_again_names_the_same_tasks(store: Store) -> None:
    published(store)
    decided(store, DecisionKind.CONFIRM, AT)
    first, again = (beat(store, Beat("ada", AT), HeartbeatPolicy(), 1) for _ in range(2))
    assert [one.task_id for one in first.wake] == [task_id(PLAN, 1)]
    assert again == first


def test_another_beat_wakes_nobody_for_a_slot_that_was_granted_before(store: Store) -> None:
    published(store)
    decided(store, DecisionKind.CONFIRM, AT)
    beat(store, Beat("ada", AT), HeartbeatPolicy(), 1)
    assert beat(store, Beat("ada", AT + timedelta(seconds=1)), HeartbeatPolicy(), 1).wake == ()


def test_a_decision_that_is_made_again_is_the_one_decision_and_a_second_one_is_not(store: Store) -> None:
    published(store)
    later = AT + timedelta(seconds=1)
    assert [decided(store, DecisionKind.CONFIRM, at) for at in (AT, AT, later)] == [
        Outcome.DONE,
        Outcome.DONE,
        Outcome.ALREADY,
    ]


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("One", "Another")])
def test_a_plan_that_was_archived_is_not_published_again_and_it_is_said_what_to_do(store: Store, text: str) -> None:
    published(store)
    assert decided(store, DecisionKind.ARCHIVE, AT) is Outcome.DONE
    reply = published(store, text)
    assert (reply.outcome, "another slug" in reply.message) == (Outcome.REFUSED, True)
