"""Plans and tasks are read with everything that is decided from them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from domain import document
from domain.errors import NotFound
from domain.outline import Outline, read_outline
from domain.plan import PlanState
from domain.run import Role, RunState
from domain.task import Question, QuestionKind, QuestionState, TaskState
from store import views
from store.database import Store
from store.leases import Slot, grant_slot
from store.plans import list_plans, load_plan, load_revision, plan_of_slug
from store.receipts import head_of, receipts_of, seq_of_key
from store.tasks import load_question, load_run, load_task, load_tasks, where_it_stands
from store.views import plan_view, plans_in_list
from tests.store.conftest import AT
from tests.store.crowd import Crowd


def test_a_plan_is_read_whole(store: Store, confirmed: Any) -> None:
    with store.read() as connection:
        plan = load_plan(connection, confirmed.plan)
        seq = receipts_of(connection, confirmed.plan)[2].seq

    assert (plan.id, plan.owner, plan.slug) == (confirmed.plan, "ada", "cold-start")
    assert (plan.state, plan.seq, plan.paused) == (PlanState.CONFIRMED, seq, False)
    assert (plan.revision, plan.digest) == (1, "d1")
    assert (plan.checks, plan.paths, plan.reviewers) == (("make test",), (), ())
    assert plan.budget_nano_usd is None


def test_the_text_of_a_plan_is_read_once_for_its_view(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Crowd("read-once", tasks=3, rounds=1).make(store)
    views._said.cache_clear()
    read: list[str] = []

    def reading(text: str) -> Outline:
        read.append(text)
        return read_outline(text)

    monkeypatch.setattr(document, "read_outline", reading)
    with store.read() as connection:
        view = plan_view(connection, crowd.plan)
    assert view is not None
    assert (len(view.tasks), view.metering, len(read)) == (3, "metered", 1)


def test_a_revision_is_the_text_as_it_was_published(store: Store, confirmed: Any) -> None:
    with store.read() as connection:
        revision = load_revision(connection, confirmed.plan, 1)
        with pytest.raises(NotFound, match="has no revision 2"):
            load_revision(connection, confirmed.plan, 2)

    assert (revision.text, revision.digest, revision.state) == ("# Cold start", "d1", "confirmed")


def test_what_is_not_there_is_not_found(store: Store, confirmed: Any) -> None:
    with store.read() as connection:
        for load, name in (
            (load_plan, "other-00000000"),
            (plan_of_slug, "other"),
            (load_run, f"{confirmed.task}-author-1"),
            (load_question, f"{confirmed.task}-q1"),
        ):
            with pytest.raises(NotFound, match=name):
                load(connection, name)
        with pytest.raises(NotFound, match="there is no task"):
            load_task(connection, f"{confirmed.plan}-9", confirmed.at)


def test_a_plan_goes_by_its_id_and_by_its_slug(store: Store, confirmed: Any) -> None:
    with store.read() as connection:
        assert plan_of_slug(connection, "cold-start") == plan_of_slug(connection, confirmed.plan)


def test_a_slug_that_two_owners_use_names_the_plans_it_could_be(store: Store, confirmed: Any) -> None:
    publish = confirmed.publish()[0]
    other = "cold-start-00000000"
    facts = {**publish.facts, "owner": "bob"}
    confirmed.go(store, replace(publish, subject=other, chain=other, facts=facts))

    with store.read() as connection:
        with pytest.raises(NotFound, match=f"cold-start could be any of {other}, {confirmed.plan}"):
            plan_of_slug(connection, "cold-start")
        assert plan_of_slug(connection, other).owner == "bob"
        assert [plan.id for plan in list_plans(connection)] == sorted([other, confirmed.plan])
        assert [plan.id for plan in list_plans(connection, "bob")] == [other]


def test_an_owners_plans_are_listed_with_when_they_were_published_and_whether_they_wait(
    store: Store, confirmed: Any
) -> None:
    publish = confirmed.publish()[0]
    other = "other-00000000"
    later = AT + timedelta(minutes=5)
    confirmed.go(
        store,
        replace(publish, subject=other, chain=other, at=later, facts={**publish.facts, "slug": "other"}),
    )
    with store.read() as connection:
        newest, oldest = plans_in_list(connection, confirmed.owner)
        first = receipts_of(connection, confirmed.plan, limit=1)[0]
        assert plans_in_list(connection, "nobody") == []
        view = plan_view(connection, confirmed.plan)
    assert (newest.plan_id, newest.published, newest.needs_person) == (other, later, True)
    assert (oldest.plan_id, oldest.published, oldest.needs_person) == (confirmed.plan, first.at, view.needs_person)


def test_a_task_is_read_with_its_plan(store: Store, confirmed: Any) -> None:
    with store.read() as connection:
        task = load_task(connection, confirmed.task, confirmed.at)

    assert (task.id, task.plan_id, task.owner, task.ordinal) == (confirmed.task, confirmed.plan, "ada", 1)
    assert (task.state, task.seq) == (TaskState.PENDING, 5)
    assert (task.repository, task.merge, task.checks, task.attempts) == (
        "acme/shop",
        "by-hand",
        ("make test",),
        4,
    )
    assert (task.runs, task.question, task.has_slot, task.ended) == ((), None, False, False)


def test_a_task_has_this_rounds_runs_and_counts_the_authors_of_all(store: Store, confirmed: Any) -> None:
    confirmed.go(
        store,
        confirmed.run(1, epoch=1),
        confirmed.make("run", f"{confirmed.task}-author-1", "crash", facts={"exit_code": -9, "reason": "killed"}),
        confirmed.run(2, epoch=2, round=2),
        confirmed.run(1, role="check", epoch=3, round=2),
        confirmed.run(3, epoch=4, round=2),
        confirmed.make("task", confirmed.task, "begin", facts={"round": 2}),
    )

    with store.read() as connection:
        task = load_task(connection, confirmed.task, confirmed.at)
        crashed = load_run(connection, f"{confirmed.task}-author-1")

    assert [(run.role, run.number) for run in task.runs] == [
        (Role.AUTHOR, 2),
        (Role.CHECK, 1),
        (Role.AUTHOR, 3),
    ]
    assert task.runs_begun == 3
    assert (crashed.state, crashed.exit_code, crashed.reason) == (RunState.CRASHED, -9, "killed")


def test_a_task_has_its_open_question_until_that_is_answered(store: Store, confirmed: Any) -> None:
    asked = f"{confirmed.task}-q1"
    confirmed.go(store, confirmed.make("task", confirmed.task, "pause", facts={"question_id": asked}), confirmed.ask())
    question = Question(asked, confirmed.task, QuestionKind.NO_PROGRESS, "What now?", TaskState.WORKING)
    with store.read() as connection:
        assert load_task(connection, confirmed.task, confirmed.at).question == question

    confirmed.go(store, confirmed.make("question", asked, "answer", facts={"answer": "go on"}))

    with store.read() as connection:
        assert load_task(connection, confirmed.task, confirmed.at).question is None
        assert load_question(connection, asked) == replace(question, state=QuestionState.ANSWERED, answer="go on")


def test_a_slot_counts_until_its_lease_has_run_out(store: Store, confirmed: Any) -> None:
    until = confirmed.at + timedelta(minutes=10)
    with store.write() as connection:
        grant_slot(connection, Slot(confirmed.task, confirmed.plan, "ada", confirmed.at, until))

    with store.read() as connection:
        assert load_task(connection, confirmed.task, until - timedelta(microseconds=1)).has_slot
        assert not load_task(connection, confirmed.task, until).has_slot


def test_all_tasks_of_a_plan_are_read_as_one_is_and_in_as_many_statements(store: Store, confirmed: Any) -> None:
    confirmed.go(store, confirmed.run())
    statements: list[str] = []
    with store.read() as connection:
        event.listen(connection, "before_cursor_execute", lambda *said: statements.append(said[2]))
        one = load_task(connection, confirmed.task, confirmed.at)
        for_one = len(statements)
        all_of_them = load_tasks(connection, confirmed.plan, confirmed.at)

    assert [task.ordinal for task in all_of_them] == [1, 2]
    assert all_of_them[0] == one
    assert for_one == len(statements) - for_one == 2


def test_receipts_are_read_on_from_a_cursor(store: Store, confirmed: Any) -> None:
    with store.read() as connection:
        everything = receipts_of(connection, confirmed.plan)
        assert [receipt.seq for receipt in everything] == [1, 2, 3, 4, 5, 6]
        assert receipts_of(connection, confirmed.plan, after=2, limit=3) == everything[2:5]
        assert receipts_of(connection, confirmed.plan, after=6) == ()
        assert head_of(connection, confirmed.plan) == (6, everything[-1].hash)
        assert head_of(connection, "system") == (0, "0" * 64)


def test_a_key_leads_to_the_receipt_that_spent_it(store: Store, confirmed: Any) -> None:
    refused = confirmed.make("task", confirmed.task, "worked")
    confirmed.go(store, refused)
    (begun,) = confirmed.go(store, confirmed.make("task", confirmed.task, "begin"))

    with store.read() as connection:
        assert seq_of_key(connection, confirmed.plan, begun.receipt.key) == begun.receipt.seq
        assert seq_of_key(connection, confirmed.plan, refused.key) == 0
        assert where_it_stands(connection, confirmed.task) == ("working", begun.receipt.seq)
        with pytest.raises(NotFound):
            where_it_stands(connection, f"{confirmed.plan}-9")
