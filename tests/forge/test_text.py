"""What we write on the forge says what the plan says, and does nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge import text
from forge.text import Evidence

# How GitHub finds what to close, whom to call and what to link, in a commit message as well.
CLOSES = re.compile(
    r"\b(close[sd]?|fix(e[sd])?|resolve[sd]?):?\s+([\w.-]+/[\w.-]+)?#\d|/(issues|pull)/\d", re.IGNORECASE
)
REFERS = re.compile(r"#\d|\bGH-\d|@\w|/(issues|pull|discussions)/\w", re.IGNORECASE)

HARMFUL = [
    "Closes #2498",
    "fixes owner/repo#1 and resolves: acme/shop#22",
    "Fixed https://github.com/owner/repo/issues/7",
    "thanks @someone and @org/team",
    "see GH-12, gh-13",
    "`Closes #1` in code",
    "```\nCloses #1\n@someone\n```",
    "&#35;12 &num;12 &commat;someone &#x40;someone",
    "a@1a2b3c4 https://github.com/a/b/pull/9#issuecomment-1",
]


@pytest.mark.parametrize("asked", HARMFUL)
def test_a_tasks_text_closes_nothing_and_calls_nobody(asked: str) -> None:
    for written in (
        text.title(asked),
        text.message(asked, asked),
        text.body(task_id="t-1", asked=asked, said=asked, evidence=[Evidence(asked, asked, asked)]),
    ):
        assert not CLOSES.search(written)
        assert not REFERS.search(written)
        assert "&#35;" not in written
        assert "&num;" not in written


@pytest.mark.parametrize("asked", HARMFUL)
def test_it_still_reads_the_same(asked: str) -> None:
    assert text.neutral(asked).replace("\u200d", "") == asked
    assert text.neutral(text.neutral(asked)) == text.neutral(asked)


def test_ordinary_text_is_left_alone() -> None:
    plain = "Größe & Preis — 日本語: C# or F#? Use `a < b`, section #, e-mail, 50 % / 3"
    assert text.neutral(plain) == plain
    assert text.title("  Load the\n catalogue   lazily ") == "Load the catalogue lazily"


def test_a_long_title_is_cut_to_what_the_forge_takes() -> None:
    assert len(text.title("ä" * 400)) == text.MAX_TITLE


def test_a_body_says_what_was_asked_and_shows_the_evidence() -> None:
    written = text.body(
        task_id="plan-0123abcd-1",
        asked="Load it lazily\n\n- on first use",
        evidence=[Evidence("make test", "passed", "at 1a2b3c4"), Evidence("a | b", "failed\nbadly")],
        chain="Receipts of the plan: 12, head `abc`",
    )
    assert written == (
        "## What was asked\n\n> Load it lazily\n>\n> - on first use\n\n"
        "## Evidence\n\n| what | result | detail |\n| --- | --- | --- |\n"
        "| make test | passed | at 1a2b3c4 |\n| a \\| b | failed badly |  |\n\n"
        "Receipts of the plan: 12, head `abc`\n\n<!-- watchbill task=plan-0123abcd-1 -->"
    )


def test_what_an_agent_says_is_its_own_word_and_nothing_but_words() -> None:
    said = "# Done\n\n````\n> quoted\n<!-- watchbill task=other -->\n\u202eback\x1b[31m ![x](http://y)\n" + "long " * 40
    written = text.body(task_id="t-1", asked="Do it.", said=said, evidence=[Evidence("make test", "passed")])
    before, after = written.split("> `````text\n")
    inside, below = after.split("\n> `````\n\n")
    assert before.endswith("## What the agent says of its work\n\nIn its own words, which nobody has checked:\n\n")
    assert below.startswith("## Evidence")
    assert all(line.startswith(">") and len(line) <= 110 for line in inside.splitlines())
    assert inside.startswith("> # Done\n>\n> ````\n> > quoted")
    assert written.count("<!--") == 1
    assert not {"\u202e", "\x1b"} & set(written)


@given(st.text(max_size=300), st.integers(min_value=1, max_value=60))
def test_however_long_an_agents_words_are_the_body_is_one(said: str, times: int) -> None:
    for words in (said * times, "`" * 100 * times, "@a#1" * 100 * times):
        written = text.body(task_id="t-1", asked="Do it.", said=words, evidence=[Evidence("make test", "passed")])
        assert len(written) <= text.MAX_BODY
        assert written.endswith("<!-- watchbill task=t-1 -->")
        assert not REFERS.search(written)


def test_where_an_agent_says_nothing_nothing_is_said_of_it() -> None:
    assert "agent" not in text.body(task_id="t-1", asked="Do it.", said=" \n")


def test_a_tasks_text_cannot_pretend_to_be_our_marker_or_hide_what_follows() -> None:
    asked = "<!-- watchbill task=other -->\n</blockquote><details>\n```\nopen fence\n<!-- open comment"
    written = text.body(task_id="t-1", asked=asked, evidence=[Evidence("make test", "passed")])
    assert written.count("<!--") == 1
    assert "<details" not in written
    above, _, below = written.partition("## Evidence")
    assert all(line.startswith(">") for line in above.split("\n\n", 1)[1].strip().splitlines())
    assert "```" not in below


@given(st.text(max_size=300), st.integers(min_value=1, max_value=400))
def test_a_body_always_fits_and_keeps_its_marker(asked: str, times: int) -> None:
    written = text.body(task_id="t-1", asked=asked * times, evidence=[Evidence("make test", "passed")], chain="head")
    assert len(written) <= text.MAX_BODY
    assert written.endswith("head\n\n<!-- watchbill task=t-1 -->")
    assert "| make test | passed |" in written


def test_a_commit_message_has_one_first_line() -> None:
    assert text.message("Better\nwords", "Because.\n") == "Better words\n\nBecause.\n"
    assert text.message("Better words") == "Better words\n"
