"""What reports read in one statement is what is read one by one elsewhere, of the plans that are asked for alone."""

from __future__ import annotations

from datetime import timedelta

from domain.duties import Actor
from domain.lifecycle import Move
from store import words
from store.audit import audit
from store.database import Store
from store.evidence import evidence_of
from store.moves import move
from store.reports import attempts_of, happened, last_results, moved_since, newest_seals, seen_of, works_of
from store.reviews import reviews_of
from store.seals import keep_seal, newest_seal
from store.tasks import load_task
from tests.store.crowd import AT, Crowd

LATER = AT + timedelta(days=1)


def test_a_plan_has_moved_by_its_last_receipt_or_while_a_run_of_it_is_at_work(store: Store) -> None:
    early = Crowd("early", begins=AT - timedelta(days=2), tasks=1, rounds=1).make(store)
    late = Crowd("late", tasks=1, rounds=1).make(store)
    Crowd("theirs", "bob", tasks=1, rounds=1).make(store)
    run = {
        "plan_id": early.plan, "task_id": early.task(1), "role": "author", "number": 9, "runtime": "shell", "epoch": 9,
    }  # fmt: skip
    begun = AT - timedelta(days=1)
    start = Move(
        "run", f"{early.task(1)}-author-9", "start", "start", early.plan, "a test", begun, run, by=Actor.WORKER
    )
    with store.read() as connection:
        assert moved_since(connection, "ada", AT) == {late.plan}
        assert moved_since(connection, "ada", LATER) == set()
    with store.write() as connection:
        move(connection, start)
    with store.read() as connection:
        assert moved_since(connection, "ada", LATER) == {early.plan}
    with store.write() as connection:
        move(connection, Move("run", start.subject, "crash", "crash", early.plan, "a test", begun, {}, by=Actor.WORKER))
    with store.read() as connection:
        assert moved_since(connection, "ada", LATER) == set()


def test_it_is_what_is_read_of_each_task(store: Store) -> None:
    crowd = Crowd(rounds=2).make(store)
    Crowd("other").make(store)
    chosen = [crowd.plan]
    with store.write() as connection:
        for seq in (3, 5, 4):
            keep_seal(connection, crowd.plan, seq, f"seal {seq}")
    with store.read() as connection:
        results, works = last_results(connection, chosen), works_of(connection, chosen)
        assert set(works) == {crowd.task(each) for each in crowd.ordinals}
        for each in works:
            one = words.last_result(connection, each)
            assert one is not None
            assert results[each] == one.body
            task = load_task(connection, each, LATER)
            assert [getattr(works[each], name) for name in ("body", "merged_sha", "proven_sha", "budget_nano_usd")] == [
                task.body, task.merged_sha, task.proven_sha, task.budget_nano_usd,
            ]  # fmt: skip
        assert newest_seals(connection, [*chosen, "nobody-00000000"]) == {
            crowd.plan: newest_seal(connection, crowd.plan)
        }
        assert [(each.command, each.exit_code) for each in seen_of(connection, chosen)] == [
            (each.command, each.exit_code) for each in evidence_of(connection, plan_id=crowd.plan)
        ]
        assert len(attempts_of(connection, chosen)) == 24
        assert {each.chain for each in happened(connection, chosen)} == {crowd.plan}


def test_what_was_refused_has_not_happened(store: Store) -> None:
    crowd = Crowd(tasks=1, rounds=1).make(store)
    with store.write() as connection:
        (refused,) = move(
            connection, Move("plan", crowd.plan, "confirm", "again", crowd.plan, "a test", LATER, by=Actor.PERSON)
        )
    assert refused.refused
    with store.read() as connection:
        events = [each.event for each in happened(connection, [crowd.plan], kinds=("plan",))]
    assert events == ["publish", "confirm", "begin"]


def test_reviews_are_read_of_many_plans_at_once_as_of_each_task(store: Store) -> None:
    crowds = [Crowd(slug, reviewed=True, tasks=4, rounds=1).make(store) for slug in ("one", "two", "three")]
    chosen = [crowd.plan for crowd in crowds[:2]]
    with store.read() as connection:
        found = reviews_of(connection, plan_ids=chosen)
        assert [each.task_id for each in found] == [
            crowd.task(each) for crowd in sorted(crowds[:2], key=lambda each: each.plan) for each in crowd.ordinals
        ]
        for each in found:
            assert reviews_of(connection, task_id=each.task_id) == (each,)
        assert [each.role for each in attempts_of(connection, chosen[:1])].count("reviewer") == 4
        assert audit(connection) == ()
