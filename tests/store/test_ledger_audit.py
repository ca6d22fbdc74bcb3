"""The audit finds whatever a hand has changed in the ledger, and names it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, NullPool, create_engine, delete, insert, select, text, update

from domain.raising import SetDay
from store.audit import audit
from store.budgets import set_day
from store.database import Store
from store.ledger import expire, settle
from store.tables import ceilings, reservations, runs, usage
from tests.store.spending import AT, CENT, LEASE, Spender, asked, spent

CAP = 50 * CENT


@pytest.fixture
def ada(store: Store) -> Spender:
    """One call is held, one settled, one expired, under a day's budget that was said."""
    spender = Spender()
    spender.begin(store)
    spender.go(store, spender.wish("run", spender.run(), "spawn", {"confinement": "confined", "cap_nano_usd": CAP}))
    with store.write() as connection:
        set_day(connection, SetDay("ada", 900 * CENT), AT, 1)
    of_run = {"run_cap_nano_usd": CAP}
    held = spender.ask(1, id="a" * 32, lease_until=AT + 9 * LEASE, **of_run)
    settled, lost = spender.ask(2, id="b" * 32, **of_run), spender.ask(4, id="c" * 32, **of_run)
    asked(store, held, settled, lost)
    with store.write() as connection:
        settle(connection, [spent(settled.id, 1)])
        expire(connection, AT + LEASE)
    return spender


def by_hand(store: Store, *statements: Any) -> list[str]:
    """What the audit says after somebody with the file or the password did this."""
    engine = create_engine(store.url, poolclass=NullPool)
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL session_replication_role = replica"))
        for statement in statements:
            connection.execute(statement(connection) if callable(statement) else statement)
    with store.read() as connection:
        return [finding.message for finding in audit(connection)]


def test_a_ledger_that_only_the_relay_wrote_has_no_findings(store: Store, ada: Spender) -> None:
    assert by_hand(store) == []
    with store.read() as connection:
        assert audit(connection, ada.plan) == audit(connection, "owner:ada") == ()


@pytest.mark.parametrize("ceiling", ["run", "task", "plan", "day"])
@pytest.mark.parametrize("column", ["held", "settled"])
def test_a_counter_changed_by_hand_is_named(store: Store, ada: Spender, ceiling: str, column: str) -> None:
    id = {"run": f"run:{ada.run()}", "task": f"task:{ada.task()}", "plan": f"plan:{ada.plan}"}.get(
        ceiling, "day:ada:2026-03-01"
    )
    due = CENT if column == "held" else 5 * CENT

    said = by_hand(store, update(ceilings).where(ceilings.c.id == id).values({column: 7}))

    assert said == [f"{column} of ceiling {id} is 7, but its reservations come to {due}"]


def test_a_cap_changed_by_hand_is_named(store: Store, ada: Spender) -> None:
    said = by_hand(store, update(ceilings).values(cap=7))

    assert [line.split(" is 7, ")[0] for line in said] == [
        f"cap of ceiling run:{ada.run()}",
        f"cap of ceiling task:{ada.task()}",
        f"cap of ceiling plan:{ada.plan}",
        "cap of ceiling day:ada:2026-03-01",
    ]


@pytest.mark.parametrize("cap", [None, 7])
def test_the_cap_of_a_run_is_what_its_capability_was_made_for_as_its_receipt_says(
    store: Store, ada: Spender, cap: int | None
) -> None:
    said = by_hand(store, update(ceilings).where(ceilings.c.kind == "run").values(cap=cap))
    assert said == [f"cap of ceiling run:{ada.run()} is {cap}, but the capability of its run was good for {CAP}"]
    # Whoever changes the run's row as well has its receipt against them.
    said = by_hand(store, update(runs).where(runs.c.id == ada.run()).values(cap_nano_usd=cap))
    assert [line for line in said if "cap_nano_usd" in line]


def test_the_cap_of_a_run_without_a_bound_is_none(store: Store, ada: Spender) -> None:
    ada.go(store, ada.wish("run", ada.run(2), "spawn", {"confinement": "confined", "cap_nano_usd": 0}))
    asked(store, ada.ask(1, ordinal=2))
    assert by_hand(store) == []
    said = by_hand(store, update(ceilings).where(ceilings.c.id == f"run:{ada.run(2)}").values(cap=7))
    assert said == [
        f"cap of ceiling run:{ada.run(2)} is 7, but the capability of its run was without a bound of its own"
    ]


def test_usage_that_nobody_measured_costs_all_that_was_held(store: Store, ada: Spender) -> None:
    unmeasured = ada.ask(3)
    asked(store, unmeasured)
    with store.write() as connection:
        settle(connection, [spent(unmeasured.id, None)])
    assert by_hand(store) == []
    # All the sums are made to fit, and still it shows.
    less = 2 * CENT
    said = by_hand(
        store,
        update(usage).where(usage.c.id == unmeasured.id).values(nano_usd=usage.c.nano_usd - less),
        update(reservations).where(reservations.c.id == unmeasured.id).values(settled=reservations.c.settled - less),
        update(ceilings).where(ceilings.c.id != f"run:{ada.run(2)}").values(settled=ceilings.c.settled - less),
    )
    cost = f"usage {unmeasured.id} was not measured, so it costs all that was held, {3 * CENT}, and not {CENT}"
    assert said == [cost]


def test_what_tokens_cost_is_reckoned_again_where_their_price_is_known(store: Store, ada: Spender) -> None:
    with store.read() as connection:
        assert audit(connection, reckon=lambda row: row.nano_usd) == audit(connection, reckon=lambda _: None) == ()
        (finding,) = audit(connection, reckon=lambda row: row.nano_usd + row.output + 1)
    said = f"usage {'b' * 32} says that it cost {CENT}, but its tokens cost {CENT + 1} at 'p1'"
    assert (finding.chain, finding.message, finding.column) == (ada.plan, said, "nano_usd")


def test_a_cost_changed_by_hand_is_named_in_the_reservation_and_in_its_usage(store: Store, ada: Spender) -> None:
    said = by_hand(store, update(usage).values(nano_usd=7))
    assert said == [f"settled of reservation {'b' * 32} is {CENT}, but its usage says: 7"]


@pytest.mark.parametrize(
    ("id", "values", "named"),
    [
        ("a", {"held": 7}, "held of ceiling"),
        ("a", {"state": "released"}, "held of ceiling"),
        ("b", {"settled": 7}, "settled of reservation"),
        ("b", {"state": "expired"}, "settled of reservation"),
        ("c", {"held": 7}, "settled of reservation"),
        ("c", {"state": "settled"}, "settled of reservation"),
        ("c", {"state": "of no kind"}, "settled of reservation"),
        ("c", {"day_ceiling": "day:eve:2026-03-01"}, "reservation cccc"),
        ("c", {"task_ceiling": "task:other"}, "reservations name the ceiling task:other"),
        ("c", {"run_id": "nobody"}, "settled of ceiling"),
    ],
)
def test_a_reservation_changed_by_hand_is_found(
    store: Store, ada: Spender, id: str, values: dict[str, Any], named: str
) -> None:
    said = by_hand(store, update(reservations).where(reservations.c.id == id * 32).values(values))
    assert any(line.startswith(named) for line in said), said


def test_usage_that_was_given_to_another_run_by_hand_is_named(store: Store, ada: Spender) -> None:
    said = by_hand(store, update(usage).values(run_id=ada.run(2)))
    assert said == [f"usage {'b' * 32} is of run {ada.run(2)}, but its reservation is of {ada.run()}"]


def test_a_reservation_deleted_or_inserted_by_hand_is_found_in_every_sum(store: Store, ada: Spender) -> None:
    def twice(connection: Connection) -> Any:
        row = connection.execute(select(reservations).where(reservations.c.id == "a" * 32)).mappings().one()
        return insert(reservations).values({**row, "id": "d" * 32})

    assert len(by_hand(store, twice)) == 4
    said = by_hand(store, delete(reservations).where(reservations.c.id.in_(["a" * 32, "d" * 32])))
    assert len(said) == 4
    assert said[0] == f"held of ceiling run:{ada.run()} is {CENT}, but its reservations come to 0"


def test_a_ceiling_deleted_by_hand_is_missed(store: Store, ada: Spender) -> None:
    for kind in ("task", "plan", "day"):
        said = by_hand(store, delete(ceilings).where(ceilings.c.kind == kind))
        assert any(line.startswith(f"reservations name the ceiling {kind}:") for line in said), (kind, said)
