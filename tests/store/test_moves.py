"""A move changes the row, the receipt and the chain's head together, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import select

from domain.duties import Actor
from domain.errors import KeyReused, Superseded
from domain.lifecycle import GENESIS, Move, Moved
from store import tables
from store.audit import audit
from store.database import Store
from store.leases import Slot, grant_slot, slots_of
from store.moves import lock_chain, move, record_refusal
from store.receipts import head_of, receipts_of, watermark_of
from store.tasks import load_task
from store.workers import incarnation_of


def row_of(store: Store, table: Any, id: str) -> Any:
    with store.read() as connection:
        return connection.execute(select(table).where(table.c.id == id)).one_or_none()


def everything(store: Store, chain: str) -> tuple[Any, ...]:
    """All that a move could change."""
    with store.read() as connection:
        rows = [tuple(connection.execute(select(table))) for table in (tables.plans, tables.tasks, tables.questions)]
        return (*rows, receipts_of(connection, chain), head_of(connection, chain))


def test_a_move_writes_row_receipt_and_head_together(store: Store, confirmed: Any) -> None:
    (moved,) = confirmed.go(store, confirmed.make("task", confirmed.task, "begin", facts={"round": 1}))

    assert moved.fresh
    assert moved.state == "working"
    row = row_of(store, tables.tasks, confirmed.task)
    assert (row.state, row.receipt_seq, row.receipt_hash) == (
        "working",
        moved.receipt.seq,
        moved.receipt.hash,
    )
    with store.read() as connection:
        assert head_of(connection, confirmed.plan) == (moved.receipt.seq, moved.receipt.hash)
        assert receipts_of(connection, confirmed.plan)[-1] == moved.receipt


def test_receipts_are_chained_from_the_genesis(store: Store, confirmed: Any) -> None:
    with store.read() as connection:
        receipts = receipts_of(connection, confirmed.plan)

    assert [receipt.seq for receipt in receipts] == list(range(1, len(receipts) + 1))
    assert [receipt.previous for receipt in receipts] == [
        GENESIS,
        *(receipt.hash for receipt in receipts[:-1]),
    ]


def test_a_repeated_key_answers_the_first_receipt_and_changes_nothing(store: Store, confirmed: Any) -> None:
    begin = confirmed.make("task", confirmed.task, "begin", facts={"round": 1})
    (first,) = confirmed.go(store, begin)
    before = everything(store, confirmed.plan)

    (again,) = confirmed.go(store, replace(begin, cause="another messenger", at=begin.at + timedelta(days=1)))

    assert again == Moved(first.receipt, False, "working")
    assert everything(store, confirmed.plan) == before


def test_a_repeated_key_answers_the_state_that_holds_now(store: Store, confirmed: Any) -> None:
    begin = confirmed.make("task", confirmed.task, "begin")
    confirmed.go(store, begin)
    confirmed.go(store, confirmed.make("task", confirmed.task, "cancel"))

    (again,) = confirmed.go(store, begin)

    assert (again.fresh, again.receipt.after, again.state) == (False, "working", "cancelled")


@pytest.mark.parametrize(
    "other",
    [
        lambda wish: replace(wish, facts={"round": 2}),
        lambda wish: replace(wish, event="cancel", by=Actor.PERSON),
        lambda wish: replace(wish, subject=f"{wish.chain}-2"),
        lambda wish: replace(wish, kind="plan", subject=wish.chain),
    ],
    ids=["facts", "event", "subject", "kind"],
)
def test_a_key_with_another_payload_is_refused(store: Store, confirmed: Any, other: Callable[[Move], Move]) -> None:
    begin = confirmed.make("task", confirmed.task, "begin", facts={"round": 1})
    confirmed.go(store, begin)
    before = everything(store, confirmed.plan)

    with pytest.raises(KeyReused, match="was spent on begin"):
        confirmed.go(store, other(begin))

    assert everything(store, confirmed.plan) == before


def test_a_group_that_partly_repeats_makes_only_what_is_new(store: Store, confirmed: Any) -> None:
    begin = confirmed.make("task", confirmed.task, "begin")
    confirmed.go(store, begin)

    moved = confirmed.go(store, begin, confirmed.make("task", confirmed.other_task, "begin"))

    assert [each.fresh for each in moved] == [False, True]


def test_an_illegal_move_changes_no_row_and_leaves_a_record(store: Store, confirmed: Any) -> None:
    row = row_of(store, tables.tasks, confirmed.task)

    (refusal,) = confirmed.go(store, confirmed.make("task", confirmed.task, "published", facts={"pull_number": 3}))

    assert refusal.refused == "a task that is pending cannot published"
    assert (refusal.fresh, refusal.state) == (True, "pending")
    assert row_of(store, tables.tasks, confirmed.task) == row
    with store.read() as connection:
        last = receipts_of(connection, confirmed.plan)[-1]
    assert last == refusal.receipt
    assert (last.before, last.after, last.facts) == ("pending", "pending", {})


def test_the_same_refusal_is_recorded_once(store: Store, confirmed: Any) -> None:
    wish = confirmed.make("task", confirmed.task, "published")
    (first,) = confirmed.go(store, wish)
    before = everything(store, confirmed.plan)

    (again,) = confirmed.go(store, wish)

    assert again == Moved(first.receipt, False, "pending")
    assert everything(store, confirmed.plan) == before


def test_a_refusal_spends_no_key(store: Store, confirmed: Any) -> None:
    worked = confirmed.make("task", confirmed.task, "worked", key="the key")
    assert confirmed.go(store, worked)[-1].refused
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin"))

    (moved,) = confirmed.go(store, worked)

    assert (moved.fresh, moved.refused, moved.state) == (True, "", "checking")


def test_one_refused_move_refuses_its_whole_group(store: Store, confirmed: Any) -> None:
    rows = row_of(store, tables.tasks, confirmed.task), row_of(store, tables.plans, confirmed.plan)

    moved = confirmed.go(
        store,
        confirmed.make("task", confirmed.task, "begin"),
        confirmed.make("plan", confirmed.plan, "archive"),
    )

    assert len(moved) == 1
    assert moved[-1].refused == "a plan that is confirmed cannot archive"
    assert (row_of(store, tables.tasks, confirmed.task), row_of(store, tables.plans, confirmed.plan)) == rows
    with store.read() as connection:
        assert audit(connection) == ()


def test_a_refusal_within_a_group_records_where_things_stand_without_the_group(store: Store, confirmed: Any) -> None:
    begin, again = (confirmed.make("task", confirmed.task, "begin", key=key) for key in ("one", "another"))

    (refusal,) = confirmed.go(store, begin, again)

    assert refusal.refused == "a task that is working cannot begin"
    assert (refusal.receipt.before, refusal.state) == ("pending", "pending")
    with store.read() as connection:
        assert audit(connection) == ()


def test_a_move_sees_the_states_that_earlier_moves_of_its_group_made(store: Store, confirmed: Any) -> None:
    moved = confirmed.go(
        store,
        confirmed.make("task", confirmed.task, "begin"),
        confirmed.make("task", confirmed.task, "worked", facts={"head_sha": "abc"}),
    )

    assert [(each.receipt.before, each.receipt.after) for each in moved] == [
        ("pending", "working"),
        ("working", "checking"),
    ]
    assert {each.state for each in moved} == {"checking"}
    assert row_of(store, tables.tasks, confirmed.task).head_sha == "abc"


def test_a_move_of_what_is_not_there_is_refused_and_recorded(store: Store, wishes: Any) -> None:
    (refusal,) = wishes.go(store, wishes.make("plan", wishes.plan, "confirm"))

    assert refusal.refused == "a plan that is not there cannot confirm"
    assert wishes.go(store, *wishes.publish())[-1].fresh
    with store.read() as connection:
        assert watermark_of(connection, wishes.owner) == 2
        assert audit(connection) == ()


def test_a_refusal_that_the_lifecycle_does_not_know_is_recorded_too(store: Store, confirmed: Any) -> None:
    wish = confirmed.make("task", confirmed.task, "approve", key="approve:abc")
    with store.write() as connection:
        first = record_refusal(connection, wish, "this approves abc, but the pull request is at def")
        again = record_refusal(connection, wish, "this approves abc, but the pull request is at def")

    assert (first.fresh, again.fresh, again.receipt) == (True, False, first.receipt)
    assert (first.state, first.refused) == ("pending", "this approves abc, but the pull request is at def")


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        (("task", "begin", {"colour": "red"}), "no fact called colour"),
        (("task", "begin", {"state": "merged"}), "no fact called state"),
        (("task", "begin", {"receipt_hash": "0"}), "no fact called receipt_hash"),
    ],
)
def test_facts_that_are_no_columns_are_a_mistake_and_nothing_is_written(
    store: Store, confirmed: Any, wish: tuple[str, str, dict[str, Any]], sentence: str
) -> None:
    before = everything(store, confirmed.plan)
    kind, event, facts = wish

    with pytest.raises(ValueError, match=sentence):
        confirmed.go(store, confirmed.make(kind, confirmed.task, event, facts=facts))

    assert everything(store, confirmed.plan) == before


def test_a_new_subject_needs_its_facts(store: Store, confirmed: Any) -> None:
    with pytest.raises(ValueError, match="the facts of a new task lack its ordinal, owner, plan_id, runtime, title"):
        confirmed.go(store, confirmed.make("task", f"{confirmed.plan}-3", "confirm"))


def test_a_fact_is_never_a_float(store: Store, confirmed: Any) -> None:
    with pytest.raises(TypeError, match=r"0\.5 is no value"):
        confirmed.go(store, confirmed.make("task", confirmed.task, "begin", facts={"round": 0.5}))


def test_a_group_is_on_one_chain_and_each_of_its_keys_its_own(store: Store, confirmed: Any) -> None:
    begin = confirmed.make("task", confirmed.task, "begin")
    for other in (replace(begin, chain="owner:ada", key="other"), begin):
        with pytest.raises(ValueError, match="one chain, each with a key of its own"):
            confirmed.go(store, begin, other)


def test_a_subject_does_not_move_on_the_chain_of_another_plan(store: Store, confirmed: Any) -> None:
    stray = replace(confirmed.make("task", confirmed.task, "begin"), chain="other-00000000")
    assert confirmed.go(store, stray)[-1].refused == "a task that is not there cannot begin"

    born_astray = replace(confirmed.confirm_task(f"{confirmed.plan}-3", 3), chain="other-00000000")
    with pytest.raises(ValueError, match="does not belong on the chain other-00000000"):
        confirmed.go(store, born_astray)
    with pytest.raises(ValueError, match="a task has no place on the chain 'owner:ada'"):
        confirmed.go(store, replace(stray, chain="owner:ada"))


def test_an_owner_moves_on_the_owners_own_chain(store: Store, wishes: Any) -> None:
    open_, pause = (
        Move("owner", "ada", event, event, "owner:ada", "a test", wishes.at, by=Actor.PERSON)
        for event in ("open", "pause")
    )
    assert [moved.state for moved in wishes.go(store, open_)] == ["open"]
    assert [moved.state for moved in wishes.go(store, pause)] == ["paused"]
    with store.read() as connection:
        assert watermark_of(connection, "ada") == 2
        assert audit(connection) == ()


def test_no_moves_move_nothing(store: Store, wishes: Any) -> None:
    assert wishes.go(store) == ()


def test_a_temporal_of_an_earlier_incarnation_moves_nothing(store: Store, confirmed: Any) -> None:
    with store.write() as connection:
        first = incarnation_of(connection, "temporal-1", confirmed.at)
    assert confirmed.go(store, confirmed.make("task", confirmed.task, "begin"), incarnation=first)[0].fresh
    with store.write() as connection:
        second = incarnation_of(connection, "temporal-2", confirmed.at)
    worked = confirmed.make("task", confirmed.task, "worked")
    before = everything(store, confirmed.plan)

    with pytest.raises(Superseded):
        confirmed.go(store, worked, incarnation=first)

    assert everything(store, confirmed.plan) == before
    assert confirmed.go(store, worked, incarnation=second)[0].fresh


@pytest.mark.parametrize(("event", "kept"), [("worked", True), ("pause", False), ("cancel", False)])
def test_a_task_keeps_its_slot_only_while_it_works(store: Store, confirmed: Any, event: str, kept: bool) -> None:
    until = confirmed.at + timedelta(minutes=10)
    with store.write() as connection:
        grant_slot(connection, Slot(confirmed.task, confirmed.plan, confirmed.owner, confirmed.at, until))
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin"))

    confirmed.go(store, confirmed.make("task", confirmed.task, event))

    with store.read() as connection:
        assert len(slots_of(connection, confirmed.owner, confirmed.at)) == kept


def test_every_receipt_raises_its_owners_watermark_and_no_repeat_does(store: Store, confirmed: Any) -> None:
    begin = confirmed.make("task", confirmed.task, "begin")
    marks = []
    for wish in (begin, begin, confirmed.make("task", confirmed.task, "published")):
        confirmed.go(store, wish)
        with store.read() as connection:
            marks.append(watermark_of(connection, confirmed.owner))

    assert marks == [7, 7, 8]


def test_text_that_an_engine_cannot_hold_is_replaced_before_it_is_hashed(store: Store, confirmed: Any) -> None:
    begin = confirmed.make("task", confirmed.task, "begin", facts={"note": "a\0b\ud800c \u2028 \U0001f600"})

    (moved,) = confirmed.go(store, replace(begin, cause="by \0"))

    assert moved.receipt.facts == {"note": "a\ufffdb?c \u2028 \U0001f600"}
    assert moved.receipt.cause == "by \ufffd"
    assert row_of(store, tables.tasks, confirmed.task).note == moved.receipt.facts["note"]
    with store.read() as connection:
        assert audit(connection) == ()


def test_times_are_kept_in_utc_wherever_they_were_taken(store: Store, confirmed: Any) -> None:
    begin = confirmed.make("task", confirmed.task, "begin")
    elsewhere = begin.at.astimezone(timezone(timedelta(hours=5, minutes=30)))

    (moved,) = confirmed.go(store, replace(begin, at=elsewhere))

    assert (moved.receipt.at, moved.receipt.at.tzname()) == (begin.at, "UTC")
    with store.read() as connection:
        assert receipts_of(connection, confirmed.plan)[-1].at.isoformat() == begin.at.isoformat()
    with pytest.raises(ValueError, match="has no zone"):
        confirmed.go(store, replace(begin, at=begin.at.replace(tzinfo=None)))


def test_an_exception_takes_the_whole_transaction_back(store: Store, confirmed: Any) -> None:
    before = everything(store, confirmed.plan)

    with pytest.raises(LookupError), store.write() as connection:
        move(connection, confirmed.make("task", confirmed.task, "begin"))
        raise LookupError

    assert everything(store, confirmed.plan) == before


def at_once(store: Store, *groups: tuple[Move, ...]) -> list[tuple[Moved, ...]]:
    """Each group presented by a thread of its own, all together."""

    def present(group: tuple[Move, ...]) -> tuple[Moved, ...]:
        with store.write() as connection:
            return move(connection, *group)

    with ThreadPoolExecutor(len(groups)) as threads:
        return list(threads.map(present, groups))


def test_eight_threads_with_one_key_make_one_receipt(store: Store, confirmed: Any) -> None:
    begin = confirmed.make("task", confirmed.task, "begin", facts={"round": 1})

    moved = [answer[0] for answer in at_once(store, *[(begin,)] * 8)]

    assert sum(each.fresh for each in moved) == 1
    assert len({each.receipt.hash for each in moved}) == 1
    with store.read() as connection:
        assert head_of(connection, confirmed.plan)[0] == moved[0].receipt.seq == 7
        assert audit(connection) == ()


def test_of_eight_threads_that_want_one_transition_one_gets_it(store: Store, confirmed: Any) -> None:
    wishes = [(confirmed.make("task", confirmed.task, "begin", key=f"begin:{n}"),) for n in range(8)]

    moved = [answer[0] for answer in at_once(store, *wishes)]

    assert sum(each.fresh and not each.refused for each in moved) == 1
    assert sum(bool(each.refused) for each in moved) == 7
    assert {each.state for each in moved} == {"working"}
    with store.read() as connection:
        assert audit(connection) == ()


def test_eight_threads_may_publish_one_plan_at_once(store: Store, wishes: Any) -> None:
    moved = at_once(store, *[wishes.publish()] * 8)

    assert sum(answer[0].fresh for answer in moved) == 1
    with store.read() as connection:
        assert len(receipts_of(connection, wishes.plan)) == 2


def test_what_was_read_under_the_chains_lock_still_holds_when_it_moves(store: Store, confirmed: Any) -> None:
    def another_round(_: int) -> bool:
        with store.write() as connection:
            lock_chain(connection, confirmed.plan)
            task = load_task(connection, confirmed.task, confirmed.at)
            key, facts = f"approved:{task.round}", {"round": task.round + 1}
            (moved,) = move(connection, confirmed.make("task", confirmed.task, "approved", key=key, facts=facts))
            return moved.fresh

    for event in ("begin", "worked", "cleared", "published"):
        confirmed.go(store, confirmed.make("task", confirmed.task, event))
    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(another_round, range(8)))

    assert row_of(store, tables.tasks, confirmed.task).round == 9
