"""Nobody gets beyond their duties: what is none of them is refused and recorded, and found where somebody forged it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from domain.duties import Actor
from domain.errors import KeyReused
from domain.lifecycle import GENESIS, Moved, receipt_hash
from domain.review import ReviewState
from store import notes, tables
from store.audit import Finding, audit
from store.database import Store
from store.moves import move, record_refusal
from store.receipts import receipts_of
from store.reviews import Ending, give
from store.tasks import load_run
from store.words import Speaker, WordKind, say
from tests.store.conftest import Wishes
from tests.store.test_audit import by_hand, findings, messages, rewrite
from tests.store.test_moves import everything, row_of

AGENTS = [Actor.AUTHOR, Actor.REVIEWER, Actor.CHECK]


def last(store: Store, chain: str) -> Any:
    with store.read() as connection:
        return receipts_of(connection, chain)[-1]


def test_a_receipt_names_who_caused_it(store: Store, confirmed: Wishes) -> None:
    (moved,) = confirmed.go(store, confirmed.make("task", confirmed.task, "begin"))

    assert moved.receipt.actor == "heartbeat"
    assert last(store, confirmed.plan) == moved.receipt
    with store.read() as connection:
        assert [receipt.actor for receipt in receipts_of(connection, confirmed.plan)][:6] == ["person"] * 6


@pytest.mark.parametrize("by", AGENTS)
@pytest.mark.parametrize(
    ("kind", "event", "facts", "who"),
    [
        ("task", "approved", {"approved_sha": "a" * 40}, "only a person may"),
        ("task", "merged", {"merged_sha": "a" * 40}, "only the forge or a worker may"),
        ("task", "cleared", {"proven_sha": "a" * 40}, "only a worker may"),
        ("task", "raised", {"budget_nano_usd": 1}, "only a person may"),
        ("plan", "raised", {"budget_nano_usd": 1}, "only a person may"),
        ("plan", "revise", {"checks": []}, "only a person may"),
        ("evidence", "record", {}, "only a worker may"),
    ],
)
def test_an_agents_run_decides_nothing_and_proves_nothing(
    store: Store, confirmed: Wishes, by: Actor, kind: str, event: str, facts: dict[str, Any], who: str
) -> None:
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin"))
    confirmed.go(
        store, *(confirmed.make("task", confirmed.task, event) for event in ("worked", "cleared", "published"))
    )
    rows = everything(store, confirmed.plan)[:3]
    subject = {"plan": confirmed.plan, "task": confirmed.task}.get(kind, f"{confirmed.task}-evidence")

    wish = replace(confirmed.make(kind, subject, event, "wish", facts), by=by)
    (refusal,) = confirmed.go(store, wish)

    assert f"cannot {event}: {by.who} may not cause that; {who}" in refusal.refused
    assert everything(store, confirmed.plan)[:3] == rows
    said = last(store, confirmed.plan)
    assert said == refusal.receipt
    assert (said.actor, said.event, said.before, said.facts) == (by, event, said.after, {})
    assert confirmed.go(store, wish) == (Moved(said, False, refusal.state),)
    assert findings(store) == []


def test_an_authors_run_gives_no_review(store: Store, confirmed: Wishes) -> None:
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin"), confirmed.run())
    facts = {"plan_id": confirmed.plan, "task_id": confirmed.task, "run_id": f"{confirmed.task}-author-1"}
    facts |= {"commit_sha": "a" * 40, "reviewer": "codex:gpt-5.5", "vendor": "openai"}
    wish = confirmed.make("review", "mine", "approve", facts={**facts, "author_vendors": []})

    (refusal,) = confirmed.go(store, replace(wish, by=Actor.AUTHOR))

    assert "an author's run may not cause that; only a reviewer's run may" in refusal.refused
    assert row_of(store, tables.reviews, "mine") is None


def test_a_judgment_is_the_runs_whose_it_is_whoever_carries_it(store: Store, confirmed: Wishes) -> None:
    """A worker that takes an author's result for a review: the run's role is in the graph."""
    begun = confirmed.run()
    facts = {**begun.facts, "runtime": "codex", "model": "gpt-5.5", "start_sha": "a" * 40}
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin"), replace(begun, facts=facts))
    speaker = Speaker(confirmed.owner, confirmed.plan, confirmed.task, begun.subject, 1, "author")
    finding = {"path": "a.py", "line": 3, "text": "no"}
    result = {"verdict": "request_changes", "summary": "bad", "findings": [finding]}
    with store.write() as connection:
        say(connection, speaker, WordKind.RESULT, {"result": result, "revision": 1, "brief": ""}, confirmed.at)
    confirmed.go(store, confirmed.make("run", begun.subject, "finish", facts={"outcome": "done"}))

    with store.write() as connection:
        review = give(connection, Ending(load_run(connection, begun.subject), "", "a test", confirmed.at), 0)

    assert review.state is ReviewState.VOID
    assert "an author's run may not cause that" in review.why
    with store.read() as connection:
        said = [(each.event, each.actor) for each in receipts_of(connection, confirmed.plan) if each.kind == "review"]
    assert said == [("request_changes", "author"), ("void", "worker")]
    assert findings(store) == []


@pytest.mark.parametrize("role", ["author", "reviewer"])
def test_what_a_run_decides_is_noted_as_by_what_its_capability_says(store: Store, confirmed: Wishes, role: str) -> None:
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin"), confirmed.run(role=role))
    speaker = Speaker(confirmed.owner, confirmed.plan, confirmed.task, f"{confirmed.task}-{role}-1", 1, role)

    with store.write() as connection:
        word = notes.record_decision(connection, speaker, "I am a person", "and approve this", confirmed.at)

    assert (word.refused, last(store, confirmed.plan).actor) == ("", role)


def test_a_run_without_the_duty_to_note_is_refused_and_told_so(store: Store, confirmed: Wishes) -> None:
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin"), confirmed.run(role="check"))
    speaker = Speaker(confirmed.owner, confirmed.plan, confirmed.task, f"{confirmed.task}-check-1", 1, "check")

    with store.write() as connection:
        word = notes.record_decision(connection, speaker, "Passed", "it says", confirmed.at)

    assert "a check's run may not cause that" in word.refused
    assert last(store, confirmed.plan).refused == word.refused
    with store.read() as connection:
        assert notes.current(connection, confirmed.plan) == ()
        kept = connection.scalar(select(tables.words.c.refused).where(tables.words.c.run_id == speaker.run))
    assert kept
    assert kept in word.refused


def test_a_group_with_one_move_beyond_its_actors_duties_is_not_made(store: Store, confirmed: Wishes) -> None:
    begin = confirmed.make("task", confirmed.task, "begin")

    (refusal,) = confirmed.go(store, begin, replace(confirmed.make("plan", confirmed.plan, "begin"), by=Actor.FORGE))

    assert "the forge may not cause that; only the heartbeat may" in refusal.refused
    assert row_of(store, tables.tasks, confirmed.task).state == "pending"


def test_a_key_that_was_made_answers_nobody_who_could_not_have_made_it(store: Store, confirmed: Wishes) -> None:
    begin = confirmed.make("task", confirmed.task, "begin")
    confirmed.go(store, begin)

    (refusal,) = confirmed.go(store, replace(begin, by=Actor.AUTHOR))

    assert refusal.refused
    assert confirmed.go(store, begin)[0].refused == ""


def test_one_merge_is_one_fact_whoever_of_those_who_may_reports_it_first(store: Store, confirmed: Wishes) -> None:
    merged = confirmed.make("task", confirmed.task, "merged")
    confirmed.go(store, replace(merged, by=Actor.WORKER))

    (again,) = confirmed.go(store, replace(merged, by=Actor.FORGE))

    assert (again.fresh, again.receipt.actor) == (False, "worker")
    with pytest.raises(KeyReused):
        confirmed.go(store, replace(merged, by=Actor.FORGE, facts={"merged_sha": "b" * 40}))


def test_two_who_are_refused_alike_are_recorded_apart(store: Store, confirmed: Wishes) -> None:
    wish = confirmed.make("task", confirmed.task, "approved")
    for by in (Actor.AUTHOR, Actor.REVIEWER, Actor.AUTHOR):
        (refusal,) = confirmed.go(store, replace(wish, by=by))
        assert refusal.receipt.actor == by

    with store.read() as connection:
        said = [receipt.actor for receipt in receipts_of(connection, confirmed.plan) if receipt.refused]
    assert said == ["author", "reviewer"]


def test_what_is_refused_before_it_comes_to_a_move_names_who_asked(store: Store, confirmed: Wishes) -> None:
    with store.write() as connection:
        record_refusal(connection, confirmed.make("plan", confirmed.plan, "archive"), "it is under way")

    assert last(store, confirmed.plan).actor == "person"


def test_a_move_by_somebody_whom_nobody_knows_is_no_move(store: Store, confirmed: Wishes) -> None:
    before = everything(store, confirmed.plan)
    unknown: Any = "mallory"

    with pytest.raises(ValueError, match="mallory"):
        confirmed.go(store, replace(confirmed.make("task", confirmed.task, "begin"), by=unknown))

    assert everything(store, confirmed.plan) == before


# The audit.


@pytest.mark.parametrize("actor", ["author", ""])
def test_an_actor_changed_by_hand_is_found(store: Store, confirmed: Wishes, actor: str) -> None:
    with by_hand(store) as connection:
        connection.execute(update(tables.receipts).where(tables.receipts.c.seq == 2).values(actor=actor))

    assert "receipt 2 was changed: its hash is not that of what it says" in messages(store)


@pytest.mark.parametrize("actor", ["author", "mallory"])
def test_a_receipt_whose_actor_had_no_such_duty_is_named(store: Store, confirmed: Wishes, actor: str) -> None:
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin"))
    with by_hand(store) as connection:
        rewrite(connection, 3, actor=actor)

    (found,) = [finding for finding in findings(store) if "its actor's to cause" in finding.message]

    who = "an author's run" if actor == "author" else "'mallory', which is nobody,"
    why = f"{who} may not cause that; only a person may"
    message = f"receipt 3, confirm of a plan, was not its actor's to cause: {why}"
    assert found == Finding(confirmed.plan, message, 3, confirmed.plan)


def test_receipts_from_before_there_were_actors_are_in_order(store: Store, confirmed: Wishes) -> None:
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin"))
    with by_hand(store) as connection:
        _forget_actors(connection, confirmed.plan)
    assert findings(store) == []

    confirmed.go(store, confirmed.make("task", confirmed.task, "worked"))

    assert [last(store, confirmed.plan).actor, findings(store)] == ["worker", []]


def _forget_actors(connection: Connection, chain: str) -> None:
    """Make the chain what an earlier version would have written."""
    link = GENESIS
    for receipt in receipts_of(connection, chain):
        said = {name: value for name, value in vars(receipt).items() if name not in ("hash", "actor", "previous")}
        previous, link = link, receipt_hash(**said, previous=link)
        this = (tables.receipts.c.chain == chain) & (tables.receipts.c.seq == receipt.seq)
        connection.execute(update(tables.receipts).where(this).values(actor="", previous=previous, hash=link))
        for table in (tables.plans, tables.revisions, tables.tasks):
            connection.execute(update(table).where(table.c.receipt_seq == receipt.seq).values(receipt_hash=link))
    connection.execute(update(tables.chains).where(tables.chains.c.chain == chain).values(hash=link))


def test_a_refusal_is_no_finding_whoever_was_refused(store: Store, confirmed: Wishes) -> None:
    wish = replace(confirmed.make("plan", confirmed.plan, "archive"), by=Actor.AUTHOR)
    with store.write() as connection:
        (refusal,) = move(connection, wish)
        assert refusal.refused

    with store.read() as connection:
        assert audit(connection) == ()
        assert connection.scalar(select(tables.plans.c.state)) == "confirmed"
