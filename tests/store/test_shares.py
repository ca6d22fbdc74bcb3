"""However costs are split, the parts add up to the ledger, to the last nano-dollar."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import count

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from domain.ledger import CeilingKind
from domain.raising import SetDay
from domain.spending import Share, Spending, grouped, total
from store.audit import audit
from store.budgets import set_day
from store.costs import day_costs, plan_costs, shares, sums_of
from store.database import Store
from store.entries import TOKENS
from store.ledger import Release, enter, expire
from store.tables import runs, usage
from tests.store.spending import AT, LEASE, Spender, asked, spent

_numbers = count(1)

NANO = st.integers(0, 10**11)
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["settled", "unmeasured", "released", "expired", "settled late", "held"]),
        NANO,
        NANO,
        st.integers(0, 10**7),
        # Hours: into the next days of the owner.
        st.integers(0, 60),
    ),
    max_size=4,
)
RUNS = st.lists(
    st.tuples(
        st.integers(1, 2), st.sampled_from(["author", "check", "reviewer"]), st.sampled_from(["a", "b", "c"]), CALLS
    ),
    min_size=1,
    max_size=6,
)


def spend(store: Store, spender: Spender, wanted: list) -> None:
    """Begin a run for each of `wanted`, make its calls, and let each come to the end that is named."""
    for number, (ordinal, role, model, calls) in enumerate(wanted, 10):
        run = f"{spender.task(ordinal)}-{role}-{number}"
        facts = {
            "plan_id": spender.plan, "task_id": spender.task(ordinal), "role": role, "number": number,
            "runtime": "claude", "epoch": number, "model": model,
        }  # fmt: skip
        spender.go(store, spender.wish("run", run, "start", facts))
        for end, most, cost, tokens, hours in calls:
            at = AT + timedelta(hours=hours)
            ask = spender.ask(
                ordinal=ordinal, run=run, epoch=number, model=model, least=0, most=most, at=at, lease_until=at + LEASE
            )
            asked(store, ask)
            with store.write() as connection:
                if end in ("expired", "settled late"):
                    expire(connection, at + LEASE)
                if end.startswith("settled"):
                    told = spent(ask.id, None, at, input=tokens, output=tokens // 3)
                    enter(connection, [type(told)(**{**vars(told), "nano_usd": cost})])
                if end == "unmeasured":
                    enter(connection, [spent(ask.id, None, at)])
                if end == "released":
                    enter(connection, [Release(ask.id, at)])


KEYS: dict[str, Callable[[Share], str]] = {
    "task": lambda share: share.task,
    "run": lambda share: share.run,
    "role": lambda share: share.role,
    "model": lambda share: share.model,
}


@settings(
    max_examples=25,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    # Every example is an owner of its own.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(RUNS)
def test_the_parts_of_any_spending_add_up_to_the_ledger(store: Store, wanted: list) -> None:
    owner = f"owner-{next(_numbers)}"
    spender = Spender("one", owner, plan_cents=None, task_cents=(None, None))
    other = Spender("two", owner, plan_cents=None, task_cents=(None, None))
    with store.write() as connection:
        set_day(connection, SetDay(owner, 10**15, "Europe/Berlin"), AT, 1)
    for each in (spender, other):
        each.begin(store)
        spend(store, each, wanted if each is spender else wanted[:1])

    with store.read() as connection:
        found = shares(connection, [spender.plan])
        costs = plan_costs(connection, spender.plan, AT)
        ledger = {kind: sums_of(connection, kind, [spender.plan]) for kind in (CeilingKind.TASK, CeilingKind.RUN)}
        counted = connection.execute(
            select(*(func.sum(usage.c[kind]) for kind in TOKENS), func.count())
            .join(runs, runs.c.id == usage.c.run_id)
            .where(runs.c.plan_id == spender.plan)
        ).one()
        assert audit(connection, spender.plan) == ()
        day = AT.replace(hour=23, minute=0) - timedelta(days=1)
        today = day_costs(connection, owner, AT)[2]
        of_today = total(shares(connection, [spender.plan, other.plan], day))
        of_later = total(shares(connection, [spender.plan, other.plan], day + timedelta(days=1)))

    assert costs is not None
    whole = (costs.money.held, costs.money.spent)
    for key in KEYS.values():
        assert money(Spending.of(grouped(found, key).values())) == whole
    for kind in (CeilingKind.TASK, CeilingKind.RUN):
        parts = grouped(found, KEYS[kind])
        assert {name: money(part) for name, part in parts.items() if any(money(part))} == {
            name: tuple(sums) for name, sums in ledger[kind].items() if any(sums)
        }
    assert [total(found).tokens.get(kind, 0) for kind in TOKENS] == [int(each or 0) for each in counted[:-1]]
    for named in (costs.roles, costs.models):
        assert (sum(each.held for each in named), sum(each.spent or 0 for each in named)) == whole
    assert sum(task.money.spent for task in costs.tasks) == costs.money.spent
    # What is told of a time that begins with the owner's day is what the ledger says of that day.
    told = (of_today.held_nano_usd - of_later.held_nano_usd, money(of_today)[1] - money(of_later)[1])
    assert told == (today.held, today.spent)


def money(part: Spending) -> tuple[int, int]:
    assert part.spent_nano_usd is not None
    return part.held_nano_usd, part.spent_nano_usd


def test_what_nobody_answered_for_any_more_is_a_call_without_usage(store: Store) -> None:
    spender = Spender()
    spender.begin(store)
    ask = spender.ask(7)
    asked(store, ask)
    with store.read() as connection:
        (held,) = shares(connection, [spender.plan])
    with store.write() as connection:
        expire(connection, AT + LEASE)
    with store.read() as connection:
        (lapsed,) = shares(connection, [spender.plan])
        assert shares(connection, [spender.plan], AT + timedelta(seconds=1)) == ()
    assert (held.spending.calls, held.spending.unmeasured, money(held.spending)) == (0, 0, (70_000_000, 0))
    assert (lapsed.spending.calls, lapsed.spending.unmeasured, money(lapsed.spending)) == (1, 1, (0, 70_000_000))


def test_what_reached_no_provider_is_no_call(store: Store) -> None:
    spender = Spender()
    spender.begin(store)
    ask = spender.ask(7)
    asked(store, ask)
    with store.write() as connection:
        enter(connection, [Release(ask.id, AT)])
    with store.read() as connection:
        assert shares(connection, [spender.plan]) == ()
