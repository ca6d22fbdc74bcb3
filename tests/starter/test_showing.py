"""What a person reads of a plan: everything that is asked, on any terminal and in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from domain.view import PlanView, Proposed, TaskView
from starter.following import Over
from starter.hints import all_merged, waiting
from starter.reporting.building import Known, build
from starter.reporting.markdown import to_markdown
from starter.tables import show_plan
from starter.watching import tell_person

WORDS = [f"word{number}" for number in range(200)]
ADDRESS = "https://forge.example/acme/shop/blob/main/" + "deep/" * 20 + "file.py"
QUESTION = f"Which of these shall stay?\n{' '.join(WORDS)}\n\n{ADDRESS}\n  and the last-one"

VIEW = PlanView(
    "faster-1a2b3c4d", "faster", "ada", "Faster", "in_progress", "acme/shop", "main", "when-proven",
    paused=False, revision=1, digest="d" * 64, seq=12, head="c" * 64,
    tasks=(
        TaskView(1, "One", "paused", "faster-1a2b3c4d-1", question_id="q1", question=QUESTION),
        TaskView(2, "Two", "failed", "faster-1a2b3c4d-2", reason=QUESTION),
    ),
)  # fmt: skip
ASKING = replace(VIEW, tasks=VIEW.tasks[:1])


def on_a_terminal(columns: int, show: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> str:
    """What `show` prints on a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        show()
        monkeypatch.undo()
        terminal.flush()
        os.set_blocking(ours, False)
        told = bytearray()
        try:
            while some := os.read(ours, 1 << 16):
                told += some
        except BlockingIOError:
            pass
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;]*m", "", told.decode()).replace("\r\n", "\n")


def assert_nothing_is_lost(told: str) -> None:
    words = told.split()
    assert [word for word in words if word in WORDS] == WORDS
    assert ADDRESS in words
    assert "last-one" in words


@pytest.mark.parametrize("columns", [0, 20, 40, 80, 200])
@pytest.mark.parametrize("asked", [ASKING, replace(VIEW, tasks=VIEW.tasks[1:])], ids=["question", "reason"])
def test_every_word_of_a_question_and_of_a_reason_is_shown_on_any_terminal(columns, asked, monkeypatch):
    told = on_a_terminal(columns, lambda: show_plan(asked), monkeypatch)
    assert_nothing_is_lost(told)
    lines = [line for line in told.splitlines() if "word" in line]
    assert max(map(len, lines)) <= (columns or 80)


@pytest.mark.parametrize("columns", [40, 80])
def test_a_watch_tells_a_question_to_its_last_word(columns, monkeypatch):
    told = on_a_terminal(columns, lambda: tell_person(waiting(ASKING)[0]), monkeypatch)
    assert_nothing_is_lost(told)


@pytest.mark.parametrize("show", [lambda: show_plan(ASKING), lambda: tell_person(Over(ASKING))])
def test_in_a_pipe_the_lines_of_a_question_stay_as_they_are(show, capsys):
    show()
    told = capsys.readouterr().out
    assert_nothing_is_lost(told)
    assert " ".join(WORDS) in told


def test_what_to_type_is_never_broken(monkeypatch):
    told = on_a_terminal(20, lambda: show_plan(ASKING), monkeypatch)
    assert '    watchbill answer faster#1 "what the next run should know"\n' in told


def test_a_report_tells_a_question_to_its_last_word():
    assert_nothing_is_lost(to_markdown(build(Known(ASKING), datetime.now(UTC))))


TITLE = "Make the start faster"
URL = "http://forge.example/acme/shop/pull/1"
LANDING = replace(VIEW, tasks=(TaskView(1, TITLE, "in_review", pull_url=URL, runs=2),))


@pytest.mark.parametrize("columns", [10, 20, 40, 59])
def test_on_a_terminal_too_narrow_for_a_table_every_word_of_it_is_there(columns, monkeypatch):
    told = on_a_terminal(columns, lambda: show_plan(LANDING), monkeypatch).split()
    assert {"1", *TITLE.split(), "in_review", "2", URL} <= set(told)


def test_in_a_pipe_a_box_is_one_line(capsys):
    show_plan(replace(LANDING, tasks=(replace(LANDING.tasks[0], title=TITLE * 9),)))
    box = next(line for line in capsys.readouterr().out.splitlines() if URL in line)
    assert TITLE * 9 in box


def test_a_plan_that_is_shown_to_be_confirmed_says_that_its_agents_are_unmetered(capsys):
    show_plan(replace(VIEW, state="awaiting_confirmation", metering="unmetered"))
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line.startswith("Agents are unmetered: they call their models on logins of")]
    show_plan(replace(VIEW, state="awaiting_confirmation", metering="metered"))
    assert "metered" not in capsys.readouterr().out


def test_a_revision_that_waits_is_shown_with_what_to_type(capsys):
    proposed = Proposed(2, "ab" * 32, "1 box added", ("+ 3. Three: new; by shell",))
    show_plan(replace(VIEW, tasks=(), proposed=proposed))
    told = capsys.readouterr().out
    assert "waits for a person  plan: revision 2 waits to be confirmed: 1 box added" in told
    assert "    watchbill confirm faster --digest abababababab\n    watchbill revise faster --withdraw\n" in told
    assert "    + 3. Three: new; by shell\n" in told


def test_a_box_that_was_struck_out_counts_as_done(capsys):
    gone = TaskView(1, "One", "cancelled", "faster-1a2b3c4d-1", struck=True)
    assert all_merged(replace(VIEW, tasks=(gone, TaskView(2, "Two", "removed", struck=True))))
    assert not all_merged(replace(VIEW, tasks=(replace(gone, struck=False),)))
    show_plan(replace(VIEW, tasks=(gone,)))
    assert "~~One~~" in capsys.readouterr().out


@pytest.mark.parametrize(("at", "revises"), [("working", False), ("reviewing", True)])
def test_a_question_of_money_says_what_to_type_wherever_it_was_asked(at: str, revises: bool):
    asks = TaskView(
        1, "One", "paused", question_id="q1", question="No money.", question_kind="out_of_budget", question_at=at
    )
    (found,) = waiting(replace(VIEW, tasks=(asks,)))
    assert any("--budget" in each for each in found.commands)
    assert any("review_budget" in each for each in found.commands) is revises
