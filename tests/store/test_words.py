"""A run is told one thing; what it says is kept once, and counts as long as the run does."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import func, select

from domain.errors import KeyReused, Superseded, Unauthorized
from store import words
from store.database import Store
from store.tables import words as rows
from store.words import Brief, Speaker, Word, WordKind
from tests.store.conftest import Wishes

AT = datetime(2026, 3, 1, 23, 0, tzinfo=UTC)
SCHEMA = {"type": "object", "properties": {"share": {"type": "number", "minimum": 0.5}}}


@pytest.fixture
def speaker(store: Store, confirmed: Wishes) -> Speaker:
    """The one run of a task under way."""
    confirmed.go(store, confirmed.make("task", confirmed.task, "begin"), confirmed.run())
    run = f"{confirmed.task}-author-1"
    with store.write() as connection:
        words.put_brief(connection, Brief(run, "Do it.", SCHEMA, 1))
    return Speaker(confirmed.owner, confirmed.plan, confirmed.task, run, 1, "author")


def say(store: Store, speaker: Speaker, kind: WordKind, body: Any, **more: Any) -> Word:
    with store.write() as connection:
        return words.say(connection, speaker, kind, body, AT, **more)


def result(store: Store, speaker: Speaker, body: Any, **more: Any) -> Word:
    return say(store, speaker, WordKind.RESULT, {"result": body, "revision": 1, "brief": "d"}, **more)


def standing(store: Store, speaker: Speaker) -> Any:
    with store.read() as connection:
        found = words.result_of(connection, speaker.run)
    return found and found.body


def count(store: Store) -> int:
    with store.read() as connection:
        return connection.scalar(select(func.count()).select_from(rows)) or 0


def test_a_brief_is_read_back_as_it_was_put_and_there_is_but_one(store: Store, speaker: Speaker) -> None:
    brief = Brief(speaker.run, "Do it.", SCHEMA, 1)
    with store.write() as connection:
        words.put_brief(connection, brief)
        assert words.brief_of(connection, speaker.run) == brief
        assert words.brief_of(connection, "another") is None
    for other in (replace(brief, text="Do that."), replace(brief, schema=None), replace(brief, revision=2)):
        with pytest.raises(KeyReused), store.write() as connection:
            words.put_brief(connection, other)


def test_a_tasks_last_result_is_that_of_its_authors_last_finished_run(
    store: Store, speaker: Speaker, confirmed: Wishes
) -> None:
    result(store, speaker, {"share": 0.6})
    with store.read() as connection:
        assert words.last_result(connection, speaker.task) is None
    confirmed.go(store, confirmed.make("run", speaker.run, "finish"), confirmed.run(2, epoch=2))
    with store.read() as connection:
        assert words.last_result(connection, speaker.task).body == {"share": 0.6}
        assert words.last_result(connection, confirmed.other_task) is None


def test_a_brief_holds_what_postgresql_has_no_place_for(store: Store, speaker: Speaker, confirmed: Wishes) -> None:
    confirmed.go(store, confirmed.run(2, epoch=2))
    brief = Brief(f"{confirmed.task}-author-2", "a\0b", {"const": "\0"}, 1)
    for _ in range(2):
        with store.write() as connection:
            words.put_brief(connection, brief)


@pytest.mark.parametrize("kind", list(WordKind))
def test_the_same_said_twice_is_one_row(store: Store, speaker: Speaker, kind: WordKind) -> None:
    body = {"result": "r", "revision": 1, "brief": "d", "question": "Which?", "title": "t", "text": "x"}
    assert say(store, speaker, kind, body) == say(store, speaker, kind, body)
    assert say(store, speaker, kind, {**body, "result": "s"}).n == 2
    assert count(store) == 2


def test_what_is_said_under_one_id_first_stays(store: Store, speaker: Speaker) -> None:
    first = say(store, speaker, WordKind.DECISION, {"text": "a"}, id="x")
    assert say(store, speaker, WordKind.DECISION, {"text": "b"}, id="x") == first
    assert say(store, speaker, WordKind.QUESTION, {"question": "b"}, id="x") != first


def test_a_run_asks_a_person_so_much_and_no_more(store: Store, speaker: Speaker) -> None:
    def ask(question: str) -> bool:
        with store.write() as connection:
            return words.ask(connection, speaker, {"question": question}, AT)

    half = words.MAX_ASKED // 2
    assert [ask("a" * half), ask("b" * half), ask("c"), ask("a" * half)] == [True, True, False, True]
    with store.read() as connection:
        assert words.question_of(connection, speaker.run) == f"{'a' * half}\n\n{'b' * half}"


def test_questions_come_in_their_order_as_one_text(store: Store, speaker: Speaker) -> None:
    for question in ("Which?", "And why?"):
        say(store, speaker, WordKind.QUESTION, {"question": question})
    with store.read() as connection:
        assert words.question_of(connection, speaker.run) == "Which?\n\nAnd why?"
        assert words.question_of(connection, "another") == ""


def test_decisions_are_read_in_their_order(store: Store, speaker: Speaker) -> None:
    for title in ("one", "two"):
        say(store, speaker, WordKind.DECISION, {"title": title, "text": ""})
    with store.read() as connection:
        assert [word.body["title"] for word in words.decisions_of(connection, speaker.run)] == ["one", "two"]


def test_the_last_accepted_result_stands_also_when_it_was_said_before(store: Store, speaker: Speaker) -> None:
    assert standing(store, speaker) is None
    for body in ("a", "b", "a", "a"):
        assert not result(store, speaker, body).refused
        assert standing(store, speaker) == body
    result(store, speaker, "c", refused="it lacks a summary")
    assert standing(store, speaker) == "a"
    assert count(store) == 4


@pytest.mark.parametrize("end", ["finish", "crash", "lose", "refuse", "stop"])
def test_a_result_of_a_run_that_is_over_is_kept_and_refused(
    store: Store, speaker: Speaker, confirmed: Wishes, end: str
) -> None:
    accepted = result(store, speaker, "in time")
    confirmed.go(store, confirmed.make("run", speaker.run, end))
    late = result(store, speaker, "too late")
    assert "nothing that it says counts" in late.refused
    assert result(store, speaker, "too late") == late
    # A repeat of what was accepted in time is answered as it was then.
    assert result(store, speaker, "in time") == accepted
    assert standing(store, speaker) == "in time"
    with pytest.raises(Superseded, match="counts any more"):
        say(store, speaker, WordKind.DECISION, {"title": "t"})
    with pytest.raises(Superseded), store.write() as connection:
        words.say_events(connection, speaker, [("e", {})], AT)
    assert count(store) == 2


def test_an_older_epoch_says_nothing_beside_a_newer_run(store: Store, speaker: Speaker, confirmed: Wishes) -> None:
    confirmed.go(store, confirmed.run(2, epoch=2))
    with pytest.raises(Superseded, match="newer run"):
        say(store, speaker, WordKind.QUESTION, {"question": "?"})
    newer = replace(speaker, run=f"{confirmed.task}-author-2", epoch=2)
    assert say(store, newer, WordKind.QUESTION, {"question": "?"}).n == 1


@pytest.mark.parametrize("wrong", ["owner", "plan", "task", "run", "role"])
def test_a_run_that_is_not_what_is_claimed_says_nothing(store: Store, speaker: Speaker, wrong: str) -> None:
    for other in (replace(speaker, **{wrong: "another"}), replace(speaker, epoch=2)):
        with pytest.raises(Unauthorized):
            result(store, other, "r")
    assert count(store) == 0


def test_events_are_accepted_once_in_their_order_and_a_batch_whole_or_not_at_all(
    store: Store, speaker: Speaker
) -> None:
    with store.write() as connection:
        assert words.say_events(connection, speaker, [("b", 1), ("a", 2), ("b", 3)], AT) == {"a", "b"}
        assert words.say_events(connection, speaker, [("a", 9), ("c", 4)], AT) == {"c"}
        assert words.say_events(connection, speaker, [], AT) == set()
    with pytest.raises(TypeError), store.write() as connection:
        words.say_events(connection, speaker, [("d", 5), ("e", math.nan)], AT)
    with store.read() as connection:
        heard = words.events_after(connection, speaker.run)
        assert [(word.id, word.body) for word in heard] == [("event:b", 1), ("event:a", 2), ("event:c", 4)]
        assert words.events_after(connection, speaker.run, after=heard[0].n, limit=1) == heard[1:2]


@pytest.mark.parametrize(
    "body", [math.nan, {"a": math.inf}, {1, 2}, object()], ids=["nan", "infinity", "set", "object"]
)
def test_what_json_cannot_say_is_not_kept(store: Store, speaker: Speaker, body: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        say(store, speaker, WordKind.DECISION, body)


def test_a_run_that_says_too_much_is_heard_no_more(
    store: Store, speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "MAX_WORDS", 3)
    for n in range(3):
        say(store, speaker, WordKind.DECISION, {"n": n})
    with pytest.raises(Superseded, match="end your turn"):
        say(store, speaker, WordKind.DECISION, {"n": 3})
    with pytest.raises(Superseded), store.write() as connection:
        words.say_events(connection, speaker, [("e", 1)], AT)
    assert say(store, speaker, WordKind.DECISION, {"n": 0}).n == 1


def test_those_who_speak_at_once_are_heard_one_after_another(store: Store, speaker: Speaker) -> None:
    def one(n: int) -> Word:
        return result(store, speaker, n % 4)

    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(one, range(40)))
    assert all(not word.refused for word in said)
    with store.read() as connection:
        numbers = list(connection.scalars(select(rows.c.n).order_by(rows.c.n)))
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_run_that_ends_meanwhile_has_its_result_in_time_or_refused(
    store: Store, speaker: Speaker, confirmed: Wishes
) -> None:
    def one(n: int) -> Word | None:
        if n == 10:
            confirmed.go(store, confirmed.make("run", speaker.run, "finish"))
            return None
        return result(store, speaker, n)

    with ThreadPoolExecutor(8) as pool:
        said = [word for word in pool.map(one, range(24)) if word is not None]
    in_time = [word.n for word in said if not word.refused]
    late = [word.n for word in said if word.refused]
    # Whoever was refused spoke after everybody who was not.
    assert max(in_time, default=0) < min(late, default=math.inf)
    assert len(said) == 23
