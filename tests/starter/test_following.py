"""Following a plan: every line once, and a server that goes away is waited for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.errors import NotFound, Unavailable
from domain.view import Happening, PlanView, TaskView
from starter.following import QUIET, Missing, Over, Trouble, follow
from starter.hints import Waiting
from starter.retrying import Retry
from starter.until import Until
from starter.watching import tell_person

EMPTY = PlanView(
    "faster-1a2b3c4d", "faster", "ada", "Faster", "in_progress", "acme/shop", "main", "when-proven",
    paused=False, revision=1, digest="d" * 64, seq=0, head="h" * 64,
)  # fmt: skip
ASKS = TaskView(1, "One", "paused", question_id="q1", question="Which name?")


def at(seq: int, *, begins: int = 1, **changes) -> PlanView:
    story = tuple(Happening(n, "2026-01-01T00:00:00+00:00", f"line {n}") for n in range(begins, seq + 1))
    return replace(EMPTY, seq=seq, story=story, story_starts_at=begins, **changes)


def looks(*views: PlanView | Exception):
    """A look that answers these in turn, and the pauses that were made between them."""
    left = list(views)
    pauses: list[float] = []

    async def look() -> PlanView:
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    return look, pause, pauses


async def told(*views, since=0, until=Until.ENDED):
    look, pause, _ = looks(*views)
    return [news async for news in follow(look, since, until, pause)]


async def test_every_line_is_told_once_in_order():
    news = await told(at(2), at(2), at(4), at(5, state="completed"))
    assert [each.seq for each in news if isinstance(each, Happening)] == [1, 2, 3, 4, 5]
    assert isinstance(news[-1], Over)


async def test_a_cursor_skips_what_was_told_before():
    news = await told(at(5, state="completed"), since=3)
    assert [each.seq for each in news if isinstance(each, Happening)] == [4, 5]


async def test_lines_that_the_story_no_longer_tells_are_counted():
    news = await told(at(200, begins=81, state="completed"), since=10)
    assert news[0] == Missing(11, 80)
    assert not [each for each in await told(at(200, begins=81, state="completed"), since=80) if each == Missing]


@pytest.mark.parametrize(
    ("missing", "words"), [(Missing(7, 7), "receipt 7 is not told"), (Missing(7, 9), "receipts 7 to 9 are not told")]
)
def test_what_is_missing_is_named_as_one_or_as_many(capsys, missing, words):
    tell_person(missing)
    assert words in capsys.readouterr().err


async def test_a_look_that_lags_behind_tells_nothing_twice():
    news = await told(at(5), at(3), at(6, state="completed"))
    assert [each.seq for each in news if isinstance(each, Happening)] == [1, 2, 3, 4, 5, 6]


async def test_a_server_that_is_away_is_waited_for_and_both_are_said_once():
    away = Unavailable("Temporal does not answer")
    news = await told(at(1), away, away, away, at(2, state="completed"))
    assert [each for each in news if isinstance(each, Trouble)] == [Trouble(str(away)), Trouble("")]
    assert [each.seq for each in news if isinstance(each, Happening)] == [1, 2]


async def test_a_plan_that_is_seen_in_the_store_alone_is_told_with_the_reason_once():
    reasons = ["nothing is up"] * 2 + [""] * 4
    look, pause, _ = looks(at(1), at(2), at(2), at(3, state="completed"))

    async def seen() -> PlanView:
        aside[:] = [reasons.pop(0)]
        return await look()

    aside = [""]
    news = [each async for each in follow(seen, 0, Until.ENDED, pause, aside=lambda: aside[0])]
    assert [each for each in news if isinstance(each, Trouble)] == [Trouble("nothing is up"), Trouble("")]
    assert [each.seq for each in news if isinstance(each, Happening)] == [1, 2, 3]


async def test_a_trouble_that_becomes_another_is_told_again():
    neither, aside = "nothing is up, and no store", [""]
    steps: list[tuple[PlanView | Unavailable, str]] = [
        (at(1), ""),
        (Unavailable(neither), ""),
        (at(1), "nothing is up"),
        (at(2, state="completed"), ""),
    ]

    async def look() -> PlanView:
        found, aside[0] = steps.pop(0)
        if isinstance(found, Unavailable):
            raise found
        return found

    _, pause, _ = looks()
    news = [each async for each in follow(look, 0, Until.ENDED, pause, aside=lambda: aside[0])]
    assert [each.message for each in news if isinstance(each, Trouble)] == [neither, "nothing is up", ""]


async def test_of_a_plan_that_is_over_nothing_is_waited_for_whoever_tells_it():
    look, pause, _ = looks(at(1, state="completed"))
    news = [each async for each in follow(look, 0, Until.ENDED, pause, aside=lambda: "nothing is up")]
    assert [type(each) for each in news] == [Happening, Over]


async def test_what_cannot_be_seen_at_the_first_look_is_the_callers_to_tell():
    with pytest.raises(Unavailable):
        await told(Unavailable("no"))
    with pytest.raises(NotFound):
        await told(NotFound("no"))


async def test_a_question_is_told_once_and_again_when_it_is_another():
    other = replace(ASKS, question_id="q2", question="And which path?")
    news = await told(
        at(1, tasks=(ASKS,)), at(1, tasks=(ASKS,)), at(2, tasks=(other,)), at(3, tasks=(other,), state="completed")
    )
    assert [each.text for each in news if isinstance(each, Waiting)] == ["Which name?", "And which path?"]


async def test_a_step_that_is_tried_again_is_told_once_nothing_happens_any_more():
    failing = Retry(1, "open pull request", 2, "GitHub does not answer", "2026-01-01T00:00:00+00:00")
    answers = [(failing,), (replace(failing, attempt=3),), (replace(failing, attempt=4, failure="another"),), ()]

    async def retried(view):
        return answers.pop(0)

    look, pause, _ = looks(*[at(1)] * (4 * QUIET + 1), at(2, state="completed"))
    news = [news async for news in follow(look, 0, Until.ENDED, pause, retried)]
    assert [each.failure for each in news if isinstance(each, Retry)] == ["GitHub does not answer", "another"]
    assert answers == []


async def test_while_something_happens_nobody_asks_what_is_tried_again():
    async def retried(view):
        raise AssertionError

    look, pause, _ = looks(*(at(n) for n in range(1, 3 * QUIET)), at(99, state="completed"))
    assert isinstance([news async for news in follow(look, 0, Until.ENDED, pause, retried)][-1], Over)


def test_a_watch_tells_a_retry_in_one_line(capsys):
    tell_person(Retry(2, "push branch", 7, "the host\nis gone", ""))
    assert capsys.readouterr().out == "       task 2 waits: push branch, attempt 7: the host is gone; tried right now\n"


async def test_who_waits_for_a_person_stops_when_one_is_needed():
    news = await told(at(1), at(2, tasks=(ASKS,)), until=Until.PERSON)
    assert isinstance(news[-1], Over)
    assert not news[-1].view.ended


async def test_pauses_grow_while_nothing_happens_and_shrink_again():
    look, pause, pauses = looks(at(1), *[at(1)] * 8, at(2), at(3, state="completed"))
    _ = [news async for news in follow(look, 0, Until.ENDED, pause)]
    assert pauses[0] == pauses[-1] == 0.3
    assert max(pauses) == pauses[8] == 2.0
