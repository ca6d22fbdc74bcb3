"""Whatever moves are made, in any order and by anybody: what `tests.store.holding` tells holds after each of them, and
both engines hold the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy import select

from domain.run import EvidenceKind
from domain.task import TaskEvent
from store import tables
from store.closing import as_borne_out
from store.database import Store, open_store
from store.moves import move
from tests.store.anybody import FLAWS, LIES, AnyMoves


@pytest.fixture
def both_engines(sqlite_url: str, postgres_url: str) -> Iterator[tuple[Store, Store]]:
    stores = open_store(sqlite_url), open_store(postgres_url)
    yield stores
    for store in stores:
        store.close()


def test_rows_are_the_fold_of_receipts_and_both_engines_agree(both_engines: tuple[Store, Store]) -> None:
    run_state_machine_as_test(
        lambda: AnyMoves(*both_engines),
        settings=settings(
            max_examples=15,
            stateful_step_count=12,
            database=None,
            # Explaining would trace every line of every example: ten times as slow.
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.fixture
def anybody(both_engines: tuple[Store, Store]) -> Iterator[AnyMoves]:
    made = AnyMoves(*both_engines)
    made.publish_and_confirm()
    yield made
    made.what_has_to_hold_holds_on_both_engines_alike()
    made.teardown()


def proof_of(machine: AnyMoves) -> list[tuple[str, str, str]]:
    """Where the task stands on each engine, what of it is proven, and as what it is merged."""
    columns = (tables.tasks.c.state, tables.tasks.c.proven_sha, tables.tasks.c.proof)
    query = select(*columns).where(tables.tasks.c.id == machine.task(1))
    found = []
    for store in machine.stores:
        with store.read() as connection:
            found.append(tuple(connection.execute(query).one()))
    return found


def test_what_is_checked_and_reviewed_is_merged_as_proven(anybody: AnyMoves) -> None:
    anybody.take_a_commit_to_its_merge(1, "a" * 40)
    assert proof_of(anybody) == [("merged", "a" * 40, "proven")] * 2


@pytest.mark.parametrize("lie", LIES)
def test_what_is_said_of_a_check_and_is_not_so_proves_nothing(anybody: AnyMoves, lie: str) -> None:
    anybody.take_a_commit_to_its_merge(1, "a" * 40, lie=lie)
    assert proof_of(anybody) == [("in_review", "", "")] * 2


@pytest.mark.parametrize("flaw", FLAWS)
def test_an_approval_that_is_none_proves_nothing(anybody: AnyMoves, flaw: str) -> None:
    anybody.take_a_commit_to_its_merge(1, "a" * 40, flaw=flaw)
    assert proof_of(anybody) == [("in_review", "", "")] * 2


def test_what_was_proven_and_has_lost_its_evidence_is_merged_by_nobody_here_and_is_unproven(anybody: AnyMoves) -> None:
    anybody.go(anybody.task_wish(1, TaskEvent.CONFIRM, {}))
    anybody.go(*(anybody.task_wish(1, event, {}) for event in (TaskEvent.BEGIN, TaskEvent.WORKED)))
    anybody.a_check_is_run(1, "a" * 40)
    anybody.a_review_is_given(1, "a" * 40)
    anybody.go(anybody.task_wish(1, TaskEvent.CLEARED, {"proven_sha": "a" * 40, "head_sha": "a" * 40}))
    anybody.go(anybody.task_wish(1, TaskEvent.PUBLISHED, {}))
    with anybody.stores[0].read() as connection:
        kept = select(tables.evidence.c.digest).where(tables.evidence.c.plan_id == anybody.plan)
        names = connection.scalars(kept.where(tables.evidence.c.kind == EvidenceKind.CHECK)).all()
    for name in names:
        anybody.lose(name)
    anybody.watchbill_merges(1)
    assert proof_of(anybody) == [("in_review", "a" * 40, "")] * 2
    # Somebody merges it by hand: a fact of the forge's, whatever became of the proof. Told again, it says the same.
    said = anybody.task_wish(1, TaskEvent.MERGED, {"proof": "proven"})
    for again in (False, True):
        made = []
        for store in anybody.stores:
            with store.write() as connection:
                wish = as_borne_out(connection, said)
                made.append(move(connection, wish)[0])
        assert made[0] == made[1]
        assert (made[0].fresh, made[0].receipt.facts) == (not again, {"proof": "unproven"})
        assert "is not what was seen" in made[0].receipt.cause
        assert proof_of(anybody) == [("merged", "a" * 40, "unproven")] * 2
        anybody.find_again()
