"""Notes are never overwritten; who has not seen the newest version changes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from domain.decision import Outcome, Reply
from domain.errors import Superseded
from domain.notes import MAX_NOTES, MAX_OF_RUN, EditContext, Note, NoteChange, NoteKind, NoteState
from store import notes
from store.audit import audit
from store.database import Store
from store.plans import load_plan
from store.receipts import receipts_of
from store.tables import notes as rows
from store.words import Speaker, decisions_of
from tests.store.conftest import Wishes
from tests.store.test_audit import by_hand

AT = datetime(2026, 3, 1, 23, 0, tzinfo=UTC)
LATER = AT + timedelta(hours=1)
REDIS = NoteChange(NoteKind.KNOWLEDGE, title="Tests need Redis", text="`make redis`")


def edit(store: Store, wishes: Wishes, *changes: NoteChange, at: datetime = AT, **order: Any) -> Reply:
    whole = EditContext(wishes.owner, **{"plan_id": wishes.plan, "by": "ada@host", **order}, changes=changes)
    with store.write() as connection:
        return notes.edit(connection, whole, at, 1)


def known(store: Store, wishes: Wishes) -> tuple[Note, ...]:
    with store.read() as connection:
        return notes.current(connection, wishes.plan)


@pytest.fixture
def speaker(store: Store, confirmed: Wishes) -> Speaker:
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin"), confirmed.run())
    return Speaker(confirmed.owner, confirmed.plan, confirmed.task, f"{confirmed.task}-author-1", 1, "author")


def decided(store: Store, speaker: Speaker, title: str = "Keep it", text: str = "It works.") -> None:
    with store.write() as connection:
        notes.record_decision(connection, speaker, title, text, AT)


def holds(store: Store) -> bool:
    with store.read() as connection:
        return audit(connection) == ()


def test_an_edit_is_a_new_version_that_names_the_one_it_replaces(store: Store, confirmed: Wishes) -> None:
    assert edit(store, confirmed, REDIS).message == "1 note added"
    assert edit(store, confirmed, replace(REDIS, number=1, version=1, text="`make up`")).message == "1 note changed"

    (note,) = known(store, confirmed)
    assert (note.name, note.text, note.by, note.at) == ("n1.2", "`make up`", "ada@host", AT.isoformat())
    with store.read() as connection:
        kept = connection.execute(select(rows).order_by(rows.c.version)).all()
        said = [each.event for each in receipts_of(connection, confirmed.plan) if each.kind == "note"]
    assert [(row.text, row.state, row.replaces) for row in kept] == [
        ("`make redis`", "replaced", None),
        ("`make up`", "current", kept[0].id),
    ]
    assert said == ["write", "write", "replace"]
    assert holds(store)


def test_an_edit_of_what_is_no_longer_the_newest_version_is_refused_and_recorded(
    store: Store, confirmed: Wishes
) -> None:
    edit(store, confirmed, REDIS)
    edit(store, confirmed, replace(REDIS, number=1, version=1, text="`make up`"))

    stale = edit(store, confirmed, replace(REDIS, number=1, version=1, text="by hand"), NoteChange(title="More"))

    assert (stale.outcome, "edited since it was read, to n1.2" in stale.message) == (Outcome.REFUSED, True)
    assert [note.text for note in known(store, confirmed)] == ["`make up`"]
    with store.read() as connection:
        assert receipts_of(connection, confirmed.plan)[-1].refused == stale.message
    gone = edit(store, confirmed, NoteChange(number=1, version=1, removed=True))
    assert gone.outcome is Outcome.REFUSED
    assert holds(store)


def test_of_many_who_edit_the_same_version_at_once_one_is_heard(store: Store, confirmed: Wishes) -> None:
    edit(store, confirmed, REDIS)
    texts = [f"by {number}" for number in range(6)]
    with ThreadPoolExecutor(len(texts)) as pool:
        said = list(
            pool.map(lambda text: edit(store, confirmed, replace(REDIS, number=1, version=1, text=text)), texts)
        )
    assert [reply.outcome for reply in said].count(Outcome.DONE) == 1
    (note,) = known(store, confirmed)
    assert note.text == texts[[reply.outcome for reply in said].index(Outcome.DONE)]
    assert holds(store)


def test_what_is_removed_goes_out_of_use_and_stays_in_the_graph(store: Store, confirmed: Wishes) -> None:
    edit(store, confirmed, REDIS)
    assert edit(store, confirmed, NoteChange(number=1, version=1, removed=True)).message == "1 note removed"
    assert known(store, confirmed) == ()
    late = edit(store, confirmed, replace(REDIS, number=1, version=1, text="x"))
    assert "was removed since it was read" in late.message
    edit(store, confirmed, REDIS)
    assert [note.name for note in known(store, confirmed)] == ["n2.1"]
    with store.read() as connection:
        assert notes.versions(connection, confirmed.plan)[1, 1].state is NoteState.REMOVED
    assert holds(store)


def test_an_edit_whose_answer_was_lost_is_made_once(store: Store, confirmed: Wishes) -> None:
    orders = (
        (REDIS, NoteChange(title="Use tabs")),
        (replace(REDIS, number=1, version=1, text="`make up`"),),
        (NoteChange(number=2, version=1, removed=True),),
    )
    for changes in orders:
        assert edit(store, confirmed, *changes).outcome is Outcome.DONE
        seen = known(store, confirmed)
        assert edit(store, confirmed, *changes, at=LATER).outcome is Outcome.ALREADY
        assert known(store, confirmed) == seen


def test_what_is_known_of_a_repository_is_its_owners_whatever_the_plan(store: Store, confirmed: Wishes) -> None:
    edit(store, confirmed, REDIS, plan_id="", repository="Acme/Shop")
    edit(store, confirmed, NoteChange(title="Other"), plan_id="", repository="acme/other")
    edit(store, confirmed, NoteChange(title="Mine"))

    with store.read() as connection:
        space = notes.of_plan(connection, load_plan(connection, confirmed.plan))
        assert [receipt.kind for receipt in receipts_of(connection, f"owner:{confirmed.owner}")] == ["note", "note"]
        assert notes.current(connection, "owner:bob", "acme/shop") == ()
        other = notes.of_repository(connection, confirmed.owner, "acme/other")
    assert ([note.title for note in space.notes], [note.title for note in space.around]) == (
        ["Mine"],
        ["Tests need Redis"],
    )
    assert [note.title for note in other.notes] == ["Other"]
    assert holds(store)


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ({"plan_id": "nobody-00000000"}, "there is no plan"),
        ({"plan_id": "", "repository": "shop"}, "is no repository such as acme/shop"),
    ],
)
def test_what_is_not_there_has_no_notes(store: Store, confirmed: Wishes, order: dict[str, str], why: str) -> None:
    reply = edit(store, confirmed, REDIS, **order)
    assert (reply.outcome, why in reply.message, reply.state) == (Outcome.REFUSED, True, "")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (NoteChange(), "a note needs a title"),
        (NoteChange(title="a\u202eb"), "no single line"),
        (NoteChange(title="Log in", text="with ghp_" + "a1B2" * 9), "what looks like a GitHub token"),
        (replace(REDIS, number=7, version=1), "there is no note n7.1"),
        (NoteChange(number=7, version=1, removed=True), "there is no note n7.1"),
    ],
)
def test_what_cannot_be_a_note_is_refused(store: Store, confirmed: Wishes, change: NoteChange, why: str) -> None:
    reply = edit(store, confirmed, NoteChange(title="Fine"), change)
    assert (reply.outcome, why in reply.message) == (Outcome.REFUSED, True)
    assert known(store, confirmed) == ()


def test_a_space_has_so_many_notes_and_no_more(
    store: Store, confirmed: Wishes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "MAX_NOTES", 2)
    edit(store, confirmed, REDIS, NoteChange(title="Two"))
    assert "at most 2 stand" in edit(store, confirmed, NoteChange(title="Three")).message
    swapped = edit(store, confirmed, NoteChange(number=2, version=1, removed=True), NoteChange(title="Three"))
    assert swapped.message == "1 note added, 1 note removed"
    assert MAX_NOTES > MAX_OF_RUN


def test_an_agents_decision_is_a_note_of_its_plan_that_says_whose_it_is(store: Store, speaker: Speaker) -> None:
    for _ in range(2):
        decided(store, speaker, "Keep\nthe cache ", " It is read\r\nat start.\u202e")

    with store.read() as connection:
        (note,) = notes.current(connection, speaker.plan)
        assert len(decisions_of(connection, speaker.run)) == 1
    assert (note.kind, note.title, note.text) == (NoteKind.DECISION, "Keep the cache", "It is read\nat start.\ufffd")
    assert (note.run_id, note.epoch, note.by) == (speaker.run, 1, "")
    assert holds(store)


def test_a_person_may_edit_what_an_agent_decided_and_the_agents_own_word_stays(
    store: Store, speaker: Speaker, confirmed: Wishes
) -> None:
    decided(store, speaker)
    change = NoteChange(NoteKind.DECISION, 1, 1, "Drop it", "It does not work.")
    assert edit(store, confirmed, change).outcome is Outcome.DONE
    (note,) = known(store, confirmed)
    assert (note.name, note.title, note.run_id, note.by) == ("n1.2", "Drop it", "", "ada@host")
    decided(store, speaker)
    assert len(known(store, confirmed)) == 1


def test_a_decision_of_a_run_whose_word_counts_no_more_is_no_note(
    store: Store, speaker: Speaker, confirmed: Wishes
) -> None:
    confirmed.go(store, confirmed.make("run", speaker.run, "finish"))
    with pytest.raises(Superseded):
        decided(store, speaker)
    assert known(store, confirmed) == ()


def test_one_run_cannot_bury_what_the_others_know(
    store: Store, speaker: Speaker, confirmed: Wishes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "MAX_OF_RUN", 3)
    for number in range(3):
        decided(store, speaker, f"Decision {number}")
    with pytest.raises(Superseded, match="3 decisions already"):
        decided(store, speaker, "One more")
    with store.read() as connection:
        assert len(decisions_of(connection, speaker.run)) == 3
    monkeypatch.setattr(notes, "MAX_OF_RUN", 9)
    monkeypatch.setattr(notes, "MAX_NOTES", 3)
    with pytest.raises(Superseded, match="this plan has 3"):
        decided(store, speaker, "One more")


def test_a_note_that_was_changed_by_hand_is_named(store: Store, confirmed: Wishes) -> None:
    edit(store, confirmed, REDIS)
    edit(store, confirmed, REDIS, plan_id="", repository="acme/shop")
    with by_hand(store) as connection:
        connection.execute(update(rows).values(text="Push to main."))

    with store.read() as connection:
        found = audit(connection)
    assert {(finding.chain, finding.column) for finding in found} == {
        (confirmed.plan, "text"),
        (f"owner:{confirmed.owner}", "text"),
    }


def test_the_mark_changes_with_every_change_and_with_nothing_else(
    store: Store, confirmed: Wishes, speaker: Speaker
) -> None:
    def mark() -> object:
        with store.read() as connection:
            return notes.mark(connection, confirmed.plan, confirmed.owner)

    seen = [mark()]
    for change in (REDIS, replace(REDIS, number=1, version=1, text="x"), NoteChange(number=1, version=2, removed=True)):
        edit(store, confirmed, change)
        seen.append(mark())
    edit(store, confirmed, REDIS, plan_id="", repository="acme/shop")
    seen.append(mark())
    decided(store, speaker)
    seen.append(mark())
    assert len(set(map(str, seen))) == len(seen)
    confirmed.go(store, confirmed.make("run", speaker.run, "finish"))
    assert mark() == seen[-1]
