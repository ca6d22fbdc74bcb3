"""Money is held before a call, spent once, and never above a ceiling."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from domain.ledger import CeilingKind
from domain.raising import SetDay
from store.budgets import left_for, set_day
from store.database import Store
from store.ledger import Held, Short, Void, expire, release, renew, settle
from store.tables import reservations, usage
from tests.store.spending import AT, CENT, LEASE, MODEL, Spender, asked, spent, sums


@pytest.fixture
def ada(store: Store) -> Spender:
    spender = Spender()
    spender.begin(store)
    return spender


def settled(store: Store, *calls: Any) -> list[bool]:
    with store.write() as connection:
        return settle(connection, calls)


def test_what_is_asked_for_is_held_of_every_ceiling(store: Store, ada: Spender) -> None:
    ask = ada.ask(30)

    assert asked(store, ask) == [Held(ask.id, 30 * CENT)]

    for ceiling in (f"run:{ada.run()}", f"task:{ada.task()}", f"plan:{ada.plan}", "day:ada:2026-03-01"):
        assert sums(store, ceiling) == (30, 0)


def test_what_a_call_cost_is_spent_and_the_rest_of_what_was_held_is_free_again(store: Store, ada: Spender) -> None:
    ask = ada.ask(30)
    asked(store, ask)

    assert settled(store, spent(ask.id, 12, input=100, output=7)) == [True]

    assert sums(store, f"task:{ada.task()}") == (0, 12)
    with store.read() as connection:
        row = connection.execute(select(usage)).one()
    assert (row.run_id, row.model, row.input, row.output, row.cache_read) == (ada.run(), MODEL, 100, 7, 0)
    assert (row.nano_usd, row.measured, row.outcome, row.status) == (12 * CENT, True, "whole", 200)


def test_a_call_is_settled_once_however_often_it_is_said(store: Store, ada: Spender) -> None:
    ask = ada.ask(30)
    asked(store, ask)

    assert settled(store, spent(ask.id, 12), spent(ask.id, 20)) == [True, False]
    assert settled(store, spent(ask.id, 20)) == [False]

    assert sums(store, f"task:{ada.task()}") == (0, 12)


def test_a_call_whose_usage_nobody_knows_costs_all_that_was_held(store: Store, ada: Spender) -> None:
    ask = ada.ask(30)
    asked(store, ask)

    settled(store, spent(ask.id, None))

    assert sums(store, f"task:{ada.task()}") == (0, 30)
    with store.read() as connection:
        assert connection.execute(select(usage.c.nano_usd, usage.c.measured)).one() == (30 * CENT, False)


def test_what_never_reached_the_provider_costs_nothing(store: Store, ada: Spender) -> None:
    ask = ada.ask(30)
    asked(store, ask)

    with store.write() as connection:
        assert release(connection, [ask.id, ask.id, "f" * 32], AT) == [True, False, False]

    assert sums(store, f"task:{ada.task()}") == (0, 0)
    assert settled(store, spent(ask.id, 12)) == [False]


def test_an_ask_is_shrunk_to_what_is_left_and_refused_where_even_the_least_is_not(store: Store, ada: Spender) -> None:
    first, second, third = ada.ask(10, 70), ada.ask(10, 70), ada.ask(1, 70)

    assert asked(store, first, second, third) == [
        Held(first.id, 70 * CENT),
        Held(second.id, 30 * CENT),
        Short(CeilingKind.TASK, ada.task(), 100 * CENT, 0),
    ]


def test_what_is_held_for_others_may_come_back_and_what_is_spent_does_not(store: Store, ada: Spender) -> None:
    first, second = ada.ask(70), ada.ask(60)
    held, short, never = asked(store, first, second, ada.ask(101))
    assert isinstance(held, Held)
    assert isinstance(short, Short)
    assert isinstance(never, Short)
    assert (short.passing, never.passing) == (True, False)

    settled(store, spent(first.id, 50))
    (over,) = asked(store, second)
    assert isinstance(over, Short)
    assert not over.passing


def test_money_comes_back_only_where_every_ceiling_has_it(store: Store, ada: Spender) -> None:
    asked(store, ada.ask(70))
    (short,) = asked(store, ada.ask(60, run_cap_nano_usd=50 * CENT))
    assert isinstance(short, Short)
    assert not short.passing


def test_the_first_ceiling_in_the_order_of_locks_is_named(store: Store) -> None:
    for slug, plan, task, run, named in (
        ("by-run", 5, 5, 5, CeilingKind.RUN),
        ("by-task", 5, 5, 100, CeilingKind.TASK),
        ("by-plan", 5, 100, 100, CeilingKind.PLAN),
        ("by-day", None, None, 0, CeilingKind.DAY),
    ):
        spender = Spender(slug, slug, plan, (task,))
        spender.begin(store)
        (answer,) = asked(store, spender.ask(6 if named is not CeilingKind.DAY else 2501, run_cap_nano_usd=run * CENT))
        assert isinstance(answer, Short)
        assert answer.ceiling is named
        assert answer.left == answer.cap == (5 if named is not CeilingKind.DAY else 2500) * CENT


def test_nothing_is_held_of_any_ceiling_when_one_is_short(store: Store, ada: Spender) -> None:
    asked(store, ada.ask(101))

    for ceiling in (f"run:{ada.run()}", f"task:{ada.task()}", f"plan:{ada.plan}", "day:ada:2026-03-01"):
        assert sums(store, ceiling) == (0, 0)


def test_tasks_share_their_plan_and_plans_their_owners_day(store: Store) -> None:
    one, two = Spender("one", plan_cents=150), Spender("two", plan_cents=None, task_cents=(None,))
    for each in (one, two):
        each.begin(store)

    answers = asked(store, one.ask(90), one.ask(90, ordinal=2), two.ask(2420), two.ask(2410))

    assert isinstance(answers[0], Held)
    assert answers[1] == Short(CeilingKind.PLAN, one.plan, 150 * CENT, 60 * CENT)
    assert answers[2] == Short(CeilingKind.DAY, "ada:2026-03-01", 2500 * CENT, 2410 * CENT)
    assert isinstance(answers[3], Held)


def test_the_same_ask_again_is_answered_as_before_and_holds_nothing_more(store: Store, ada: Spender) -> None:
    ask = ada.ask(30)
    assert asked(store, ask, ask) == asked(store, ask) * 2
    assert sums(store, f"task:{ada.task()}") == (30, 0)

    settled(store, spent(ask.id, 12))
    (answer,) = asked(store, ask)
    assert isinstance(answer, Void)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"model": "gpt-5.5"}, "uses the model claude-sonnet-4-6, and not gpt-5.5"),
        ({"owner": "eve"}, "is not the one that the capability was made for"),
        ({"task": "other-12345678-1"}, "is not the one that the capability was made for"),
        ({"epoch": 2}, "a newer run"),
        ({"run": "nobody"}, "there is no run nobody"),
    ],
)
def test_a_run_that_is_not_what_the_ask_says_gets_nothing(
    store: Store, ada: Spender, facts: dict[str, Any], why: str
) -> None:
    (answer,) = asked(store, ada.ask(1, **facts))
    assert isinstance(answer, Void)
    assert why in answer.why
    assert sums(store, f"task:{ada.task()}") == (0, 0)


def test_a_run_that_has_ended_gets_nothing_any_more_and_settles_all_the_same(store: Store, ada: Spender) -> None:
    ask = ada.ask(30)
    asked(store, ask)
    ada.go(store, ada.wish("run", ada.run(), "lose"))

    (answer,) = asked(store, ada.ask(1))
    assert answer == Void(f"run {ada.run()} is lost; it gets no money any more")
    assert settled(store, spent(ask.id, 12)) == [True]


def test_an_earlier_epoch_gets_nothing_once_a_newer_run_has_begun(store: Store, ada: Spender) -> None:
    ada.begin_run(store, number=2)

    (before, now) = asked(store, ada.ask(1), ada.ask(1, run=ada.run(number=2), epoch=2))
    assert isinstance(before, Void)
    assert "a newer run" in before.why
    assert isinstance(now, Held)


def test_a_task_that_has_ended_gets_nothing_any_more(store: Store, ada: Spender) -> None:
    ada.go(store, ada.wish("task", ada.task(), "cancel"))

    (answer,) = asked(store, ada.ask(1))
    assert answer == Void(f"task {ada.task()} is cancelled; it gets no money any more")


def test_a_later_capability_of_a_run_may_say_less_and_never_more(store: Store, ada: Spender) -> None:
    less = ada.ask(30, run_cap_nano_usd=20 * CENT)
    asked(store, ada.ask(1, run_cap_nano_usd=50 * CENT))

    assert asked(store, less) == [Short(CeilingKind.RUN, ada.run(), 20 * CENT, 19 * CENT)]
    assert asked(store, ada.ask(60, run_cap_nano_usd=90 * CENT)) == [
        Short(CeilingKind.RUN, ada.run(), 50 * CENT, 49 * CENT)
    ]


def test_what_nobody_answers_for_any_more_counts_as_spent(store: Store, ada: Spender) -> None:
    ask, other = ada.ask(30), ada.ask(5, lease_until=AT + 3 * LEASE)
    asked(store, ask, other)

    with store.write() as connection:
        assert expire(connection, AT + LEASE - timedelta(seconds=1)) == 0
        assert expire(connection, AT + LEASE) == 1
        assert expire(connection, AT + LEASE) == 0

    assert sums(store, f"task:{ada.task()}") == (5, 30)
    with store.write() as connection:
        assert release(connection, [ask.id], AT) == [False]


def test_a_late_settlement_corrects_what_had_expired_in_the_day_it_was_held(store: Store, ada: Spender) -> None:
    ask = ada.ask(30)
    asked(store, ask)
    tomorrow = AT + timedelta(days=1)
    with store.write() as connection:
        expire(connection, tomorrow)
    asked(store, ada.ask(1, at=tomorrow, lease_until=tomorrow + LEASE))

    assert settled(store, spent(ask.id, 12, at=tomorrow)) == [True]
    assert settled(store, spent(ask.id, 12, at=tomorrow)) == [False]

    assert sums(store, "day:ada:2026-03-01") == (0, 12)
    assert sums(store, "day:ada:2026-03-02") == (1, 0)
    assert sums(store, f"task:{ada.task()}") == (1, 12)


def test_a_live_stream_is_answered_for_as_long_as_it_is_renewed(store: Store, ada: Spender) -> None:
    ask = ada.ask(30)
    asked(store, ask)
    with store.write() as connection:
        assert renew(connection, [ask.id], AT + 2 * LEASE) == [True]
        assert renew(connection, [ask.id], AT) == [True]
        assert expire(connection, AT + LEASE) == 0
        assert expire(connection, AT + 2 * LEASE) == 1
        assert renew(connection, [ask.id], AT + 9 * LEASE) == [False]


def test_few_reservations_expire_at_once(store: Store, ada: Spender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.ledger.AT_ONCE", 2)
    asked(store, *(ada.ask(1) for _ in range(3)))
    with store.write() as connection:
        assert [expire(connection, AT + LEASE) for _ in range(3)] == [2, 1, 0]


def test_a_call_that_cost_more_than_was_held_is_written_down_as_it_was(store: Store, ada: Spender) -> None:
    ask = ada.ask(30)
    asked(store, ask)
    settled(store, spent(ask.id, 130))

    assert sums(store, f"task:{ada.task()}") == (0, 130)
    assert asked(store, ada.ask(0)) == [Short(CeilingKind.TASK, ada.task(), 100 * CENT, 0)]


def test_what_cannot_be_true_is_refused(store: Store, ada: Spender) -> None:
    for wrong in (ada.ask(2, 1), ada.ask(-1, 1), ada.ask(1, run_cap_nano_usd=-1)):
        with pytest.raises(ValueError, match=wrong.run if wrong.run_cap_nano_usd else wrong.id):
            asked(store, wrong)
    for call in (spent("a", -1), spent("a", 1, input=-1), spent("a", 1, sweetness=1)):
        with pytest.raises(ValueError, match="request a"):
            settled(store, call)


@pytest.mark.parametrize(
    ("zone", "at", "day"),
    [
        ("", datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC), "2026-03-01"),
        ("", datetime(2026, 3, 2, tzinfo=UTC), "2026-03-02"),
        ("Europe/Berlin", datetime(2026, 3, 1, 23, tzinfo=UTC), "2026-03-02"),
        # The night in which an hour is missing, and the one which has an hour twice.
        ("Europe/Berlin", datetime(2026, 3, 29, 21, 59, tzinfo=UTC), "2026-03-29"),
        ("Europe/Berlin", datetime(2026, 3, 29, 22, tzinfo=UTC), "2026-03-30"),
        ("Europe/Berlin", datetime(2026, 10, 25, 22, 59, tzinfo=UTC), "2026-10-25"),
        ("America/Los_Angeles", datetime(2026, 3, 1, 7, 59, tzinfo=UTC), "2026-02-28"),
        ("Pacific/Kiritimati", datetime(2026, 3, 1, 10, tzinfo=UTC), "2026-03-02"),
    ],
)
def test_money_is_spent_in_its_owners_own_day(store: Store, ada: Spender, zone: str, at: datetime, day: str) -> None:
    if zone:
        with store.write() as connection:
            set_day(connection, SetDay("ada", zone=zone), AT - timedelta(days=3), 1)

    asked(store, ada.ask(1, at=at, lease_until=at + LEASE))

    with store.read() as connection:
        assert connection.scalar(select(reservations.c.day_ceiling)) == f"day:ada:{day}"


def test_what_is_held_for_a_moment_is_left_for_a_run_that_begins(store: Store, ada: Spender) -> None:
    ended, going = ada.ask(70), ada.ask(20)
    asked(store, ended, going)
    settled(store, spent(ended.id, 30))
    with store.read() as connection:
        assert left_for(connection, ada.plan, ada.task()) == 70 * CENT
