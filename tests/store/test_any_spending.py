"""Whatever is asked, settled, released, renewed and left to expire: the ledger is a simple model's, on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import select

from domain.ledger import CeilingKind, day_of
from domain.raising import SetDay
from store.audit import audit
from store.budgets import set_day
from store.database import Store, open_store
from store.ledger import Answer, Ask, Entry, Held, Release, Renewal, Short, Void, enter, expire
from store.tables import ceilings
from tests.store.spending import AT, CENT, LEASE, Spender, nano, spent

_numbers = count(1)
CENTS = st.integers(0, 60)
WHICH = st.integers(0, 10**6)


@dataclass
class Call:
    """What the model knows of a call: what is held of it or was, what it cost, and until when it is answered for."""

    ask: Ask
    held: int
    state: str = "held"
    settled: int = 0
    until: int = 1
    day: str = ""


class AnySpending(RuleBasedStateMachine):
    """Two plans of one owner, with two tasks each. Time goes by in leases; every example is an owner of its own."""

    def __init__(self, *stores: Store) -> None:
        super().__init__()
        self.stores = stores
        self.owner = f"owner-{next(_numbers)}"
        self.spenders = [
            Spender("one", self.owner, plan_cents=150, task_cents=(100, 70)),
            Spender("two", self.owner, plan_cents=None, task_cents=(None, 40)),
        ]
        self.budgets: dict[str, int | None] = {}
        self.days: dict[str, int] = {}
        self.day_cents = 200
        self.now = 0
        self.calls: list[Call] = []

    @initialize()
    def begin(self) -> None:
        for store in self.stores:
            for spender in self.spenders:
                spender.begin(store)
        for spender in self.spenders:
            self.budgets[f"plan:{spender.plan}"] = spender.plan_cents
            for ordinal, cents in enumerate(spender.task_cents, 1):
                self.budgets[f"task:{spender.task(ordinal)}"] = cents
        self.say(self.day_cents)

    @rule(wanted=st.lists(st.tuples(st.booleans(), st.integers(1, 2), CENTS, CENTS), min_size=1, max_size=4))
    def ask(self, wanted: list[tuple[bool, int, int, int]]) -> None:
        asks = [
            self.spenders[other].ask(min(cents), max(cents), ordinal=ordinal, at=self.at, lease_until=self.at + LEASE)
            for other, ordinal, *cents in wanted
        ]
        for ask, answer in zip(asks, self.enter(*asks), strict=True):
            assert answer == self.expected(ask)
            if isinstance(answer, Held):
                self.calls.append(Call(ask, answer.nano_usd, until=self.now + 1, day=self.today))

    @rule(which=WHICH, cents=st.none() | st.integers(0, 80), twice=st.booleans())
    def settle(self, which: int, cents: int | None, twice: bool) -> None:
        if self.calls:
            call = self.calls[which % len(self.calls)]
            said = [spent(call.ask.id, cents, self.at)] * (1 + twice)
            open = call.state in ("held", "expired")
            assert self.enter(*said) == [open, False][: 1 + twice]
            if open:
                call.state, call.settled = "settled", call.held if cents is None else cents * CENT

    @rule(which=WHICH)
    def release(self, which: int) -> None:
        if self.calls:
            call = self.calls[which % len(self.calls)]
            assert self.enter(Release(call.ask.id, self.at)) == [call.state == "held"]
            if call.state == "held":
                call.state = "released"

    @rule(which=WHICH, leases=st.integers(0, 3))
    def renew(self, which: int, leases: int) -> None:
        if self.calls:
            call = self.calls[which % len(self.calls)]
            until = self.now + leases
            assert self.enter(Renewal(call.ask.id, AT + until * LEASE)) == [call.state == "held"]
            if call.state == "held":
                call.until = max(call.until, until)

    @rule(leases=st.sampled_from((0, 1, 2, 40, 144)))
    def time_goes_by(self, leases: int) -> None:
        self.now += leases
        lapsed = [call for call in self.calls if call.state == "held" and call.until <= self.now]
        for store in self.stores:
            # Those of earlier examples are in the same store.
            with store.write() as connection:
                assert expire(connection, self.at) >= len(lapsed)
        for call in lapsed:
            call.state, call.settled = "expired", call.held

    @rule(which=WHICH)
    def ask_again(self, which: int) -> None:
        if self.calls:
            call = self.calls[which % len(self.calls)]
            (answer,) = self.enter(call.ask)
            assert answer == Held(call.ask.id, call.held) if call.state == "held" else isinstance(answer, Void)

    @rule(which=WHICH, more=st.integers(1, 50))
    def raise_a_budget(self, which: int, more: int) -> None:
        id = sorted(key for key, cents in self.budgets.items() if cents is not None)[which % 4 % 3]
        self.budgets[id] = (self.budgets[id] or 0) + more
        kind, subject = id.split(":")
        spender = next(each for each in self.spenders if subject.startswith(each.plan))
        facts = {"budget_nano_usd": nano(self.budgets[id])}
        wish = spender.wish(kind, subject, "raised", facts)
        for store in self.stores:
            spender.go(store, wish)

    @rule(cents=st.integers(50, 400))
    def say(self, cents: int) -> None:
        self.day_cents = cents
        for store in self.stores:
            with store.write() as connection:
                set_day(connection, SetDay(self.owner, cents * CENT, "Europe/Berlin"), self.at, 1)
        self.days = {day: (cents if day >= self.today else said) for day, said in self.days.items()}

    @invariant()
    def the_ledger_is_the_models(self) -> None:
        due: dict[str, tuple[int, int]] = {}
        for call in self.calls:
            for id in self.ceilings_of(call.ask, call.day):
                held, settled = due.get(id, (0, 0))
                due[id] = (held + call.held * (call.state == "held"), settled + call.settled)
        for store in self.stores:
            with store.read() as connection:
                mine = select(ceilings).where(ceilings.c.owner == self.owner)
                rows = {row.id: row for row in connection.execute(mine)}
            assert {id: (row.held, row.settled) for id, row in rows.items() if row.held or row.settled} == {
                id: sums for id, sums in due.items() if any(sums)
            }
            assert all(row.cap == self.cap(id) for id, row in rows.items())

    def teardown(self) -> None:
        for store in self.stores:
            with store.read() as connection:
                for chain in (f"owner:{self.owner}", *(spender.plan for spender in self.spenders)):
                    assert audit(connection, chain) == ()

    @property
    def at(self) -> datetime:
        return AT + self.now * LEASE

    @property
    def today(self) -> str:
        return day_of(self.at, "Europe/Berlin")

    def enter(self, *entries: Entry) -> list[Answer]:
        """The same on every engine: all answer alike."""
        answers = []
        for store in self.stores:
            with store.write() as connection:
                answers.append(enter(connection, entries))
        assert answers[0] == answers[-1]
        return answers[0]

    def ceilings_of(self, ask: Ask, day: str) -> list[str]:
        return [f"run:{ask.run}", f"task:{ask.task}", f"plan:{ask.plan}", f"day:{self.owner}:{day}"]

    def cap(self, id: str) -> int | None:
        kind, _, subject = id.partition(":")
        if kind == CeilingKind.DAY:
            return self.days[subject.partition(":")[2]] * CENT
        cents = self.budgets.get(id)
        return None if cents is None else cents * CENT

    def expected(self, ask: Ask) -> Held | Short:
        self.days.setdefault(self.today, self.day_cents)
        amount = ask.most
        for id in self.ceilings_of(ask, self.today):
            cap = self.cap(id)
            if cap is None:
                continue
            mine = [call for call in self.calls if id in self.ceilings_of(call.ask, call.day)]
            left = cap - sum(call.settled + call.held * (call.state == "held") for call in mine)
            if left < ask.least:
                kind, _, subject = id.partition(":")
                return Short(CeilingKind(kind), subject, cap, max(0, left))
            amount = min(amount, left)
        return Held(ask.id, amount)


@pytest.fixture
def both_engines(sqlite_url: str, postgres_url: str) -> Iterator[tuple[Store, Store]]:
    stores = open_store(sqlite_url), open_store(postgres_url)
    yield stores
    for store in stores:
        store.close()


def test_the_ledger_is_a_simple_models_and_both_engines_agree(both_engines: tuple[Store, Store]) -> None:
    run_state_machine_as_test(
        lambda: AnySpending(*both_engines),
        settings=settings(
            max_examples=10,
            stateful_step_count=15,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )
