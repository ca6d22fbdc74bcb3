"""A projection is the plan's own text and what became of it, and nothing that anybody said can pass for either."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from domain.document import parse
from domain.errors import InvalidPlan
from domain.imprint import imprint_of
from domain.projection import Box, Check, Projection, Review, fenced, render
from domain.view import PlanView, TaskView

PLAN = "faster-1a2b3c4d"
TEXT = """\
---
title: Faster   # a comment
repository: acme/shop
runtime: claude
model: a-model
---
# Faster

Why we do *this*.

## Tasks

Read these first.

- [ ] Load it lazily {after=2}

  In **full**.

  ```sh
  echo '- [ ] not a box'
  ```
- [x] Measure it
* [ ] Say so

## Afterwards

- [ ] This list is for people.
"""
ASKED = TaskView(
    3, "Say so", "paused", f"{PLAN}-3", question_id="q1", question="Where?\n\n```\n# Not a heading", runs=2
)
MERGED = TaskView(1, "Load it lazily", "merged", f"{PLAN}-1", proof="proven", pull_url="https://forge/pull/1", runs=1)
VIEW = PlanView(
    PLAN, "faster", "ada", "Faster", "in_progress", "acme/shop", "main", "by-hand", paused=False, revision=1,
    digest="d" * 64, seq=12, head="c" * 64, confinement="confined",
    tasks=(replace(MERGED, after=(2,)), TaskView(2, "Measure it", "done"), ASKED),
)  # fmt: skip
FOUND = Projection(
    view=VIEW,
    text=TEXT,
    boxes=(
        Box(VIEW.tasks[0], "In **full**.", "claude", "a-model", 10**9, 10**7, 3 * 10**8, "b" * 40,
            (Check("make test", "b" * 40, 0),)),
        Box(VIEW.tasks[1]),
        Box(ASKED, "", "shell"),
    ),
    words=("2026-03-01T20:00:00+00:00: confirmed by ada",),
    held=10**7,
    spent=3 * 10**8,
    budget=12 * 10**9,
    seal=(11, "a.seal"),
)  # fmt: skip


def html(text: str) -> str:
    return MarkdownIt("commonmark").render(text)


def test_the_text_stands_as_it_was_published_but_for_its_boxes() -> None:
    lines = render(FOUND).splitlines()
    kept = ("title: Faster   # a comment", "# Faster", "Why we do *this*.", "## Tasks", "Read these first.")
    assert [line for line in lines if line in kept] == list(kept)
    assert render(FOUND).count("## Afterwards\n\n- [ ] This list is for people.\n") == 1


def test_every_box_tells_what_became_of_it() -> None:
    told = render(FOUND)
    assert (
        "- [x] 1. Load it lazily\n\n"
        f"  > **merged**, proven · <https://forge/pull/1>, merged as `{'b' * 12}` · 1 run"
        " · 0.30 USD spent, 0.01 USD held of 1.00 USD\n"
        "  >\n  > by claude, model a-model, after 2\n"
        f"  >\n  > - `make test` on `{'b' * 12}`: exit 0\n\n"
        "  In **full**.\n"
    ) in told
    assert "- [x] 2. Measure it\n\n  > **done**\n" in told
    assert "- [ ] 3. Say so\n\n  > **paused** · 2 runs\n" in told
    assert "Waits for a person (`q1`):" in told


def test_what_is_no_task_keeps_its_own_text() -> None:
    box = replace(FOUND.boxes[0], body="")
    assert "  echo '- [ ] not a box'\n" in render(replace(FOUND, boxes=(box, *FOUND.boxes[1:])))


def test_it_says_where_the_plan_stands_and_by_whose_word() -> None:
    told = render(FOUND)
    assert f"> **in_progress**: 1 merged, 1 done, 1 paused. Revision 1, text `{'d' * 12}`." in told
    assert "> 2026-03-01T20:00:00+00:00: confirmed by ada" in told
    assert "> 0.30 USD spent, 0.01 USD held of 12.00 USD. Runs are confined." in told
    assert f"> 12 receipts; the chain's head is `{'c' * 64}`." in told
    assert told.endswith("\nReceipt 11 is sealed: `a.seal`\n")


def test_the_same_facts_make_the_same_bytes() -> None:
    assert render(FOUND) == render(replace(FOUND))


def test_its_imprint_names_the_plan_and_its_head_and_notices_every_edit() -> None:
    told = render(FOUND)
    imprint = imprint_of(told)
    assert imprint is not None
    assert (imprint.plan, imprint.seq, imprint.head, imprint.intact) == (PLAN, 12, "c" * 64, True)
    assert told.splitlines()[imprint.line - 1].startswith("# watchbill-projection ")
    for edited in (
        told.replace("[ ] 3.", "[x] 3."),
        told + "\n",
        told.replace("chain=12", "chain=13"),
        told.replace("title: Faster", "title: Slower"),
        told.replace("# Made by", "# Written by"),
    ):
        again = imprint_of(edited)
        assert again is not None
        assert not again.intact
    assert imprint_of(told.replace("\n", "\r\n")) == imprint


@given(st.text(), st.integers(0, 10_000))
def test_no_edit_of_any_kind_goes_unnoticed(put: str, at: int) -> None:
    told = render(FOUND)
    edited = told[: at % len(told)] + put + told[at % len(told) :]
    imprint = imprint_of(edited)
    # Line ends alone may be another system's.
    same = edited.replace("\r\n", "\n").removeprefix("\ufeff") == told
    assert imprint is None or imprint.intact is same


@pytest.mark.parametrize(
    "text", [TEXT, "", "---\n", "# watchbill-projection plan=a chain=1:b digest=c", "---\n# a comment\n---\n"]
)
def test_what_was_never_made_here_has_no_imprint(text: str) -> None:
    assert imprint_of(text) is None


def test_what_is_no_utf_8_is_an_edit_too() -> None:
    imprint = imprint_of(render(FOUND) + "\udcff")
    assert imprint is not None
    assert not imprint.intact


def test_a_projection_is_never_read_back() -> None:
    with pytest.raises(InvalidPlan) as refused:
        parse(render(FOUND), file_name="faster.md")
    fault = refused.value.faults[0]
    assert (fault.line, PLAN in fault.message, "never read back" in fault.message) == (3, True, True)
    parse(TEXT, file_name="faster.md")


WORDS = "``` \n</details><script>alert(1)</script> [x](javascript:alert(1)) \u202e# Heading"


def test_what_anybody_said_is_words_and_nothing_else() -> None:
    said = replace(ASKED, question=WORDS, reason=WORDS, pull_url="javascript:alert(1)")
    told = html(render(replace(FOUND, boxes=(*FOUND.boxes[:2], Box(said)))))
    assert "<script" not in told
    assert "</details>" not in told
    assert 'href="javascript' not in told
    assert "\u202e" not in told
    assert told.count("<h1>") == html(render(FOUND)).count("<h1>")


@given(st.text())
def test_no_words_get_out_of_their_fence(words: str) -> None:
    tokens = MarkdownIt("commonmark").parse(f"{fenced(words)}\n\nafter\n")
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]


def test_tasks_that_the_text_does_not_have_are_told_all_the_same() -> None:
    other = Box(TaskView(7, "Gone", "cancelled", f"{PLAN}-7", reason="by ada"), "Its text.")
    told = render(replace(FOUND, boxes=(*FOUND.boxes, other)))
    gone, after = told.partition("### Tasks that the text no longer has\n\n")[2].split("## Afterwards")
    assert gone == "- [ ] 7. Gone\n\n  > **cancelled**\n  >\n  > by ada\n\n  Its text.\n\n"
    assert after


def test_a_text_that_can_no_longer_be_read_is_told_with_its_tasks_below_it() -> None:
    told = render(replace(FOUND, text="Just words.\n"))
    assert told.index("Just words.") < told.index("## Tasks\n\n- [x] 1. Load it lazily")


def test_what_is_not_known_is_never_said_to_be_nothing() -> None:
    view = replace(VIEW, metering="unmetered")
    box = replace(FOUND.boxes[0], view=MERGED, held=0, spent=0, unmetered_runs=1)
    told = render(replace(FOUND, view=view, boxes=(box, *FOUND.boxes[1:]), held=0, spent=0, unmetered_runs=2))
    sentence = "Agents are unmetered: they call their models on logins of their own, and what that costs is not known."
    unknown = "what 2 unmetered runs cost is not known; the budget is 12.00 USD"
    assert f"> {unknown}. Runs are confined. {sentence}\n" in told
    assert " · 1 run · what 1 unmetered run cost is not known; the budget is 1.00 USD\n" in told
    assert "0.00 USD" not in told
    partly = render(replace(FOUND, unmetered_runs=1))
    assert "> 0.30 USD spent, 0.01 USD held of 12.00 USD; what 1 unmetered run cost is not known." in partly


REVIEW = Review("codex:gpt-5.5", "b" * 40, "changes_requested", "Nearly.", f"- `a.py:3`: {WORDS}")


def test_every_box_tells_what_its_reviewers_said_in_their_own_words() -> None:
    void = Review("codex:gpt-5.5", "b" * 40, "void", why="it ended without a verdict")
    bare = Review("codex:gpt-5.5", "b" * 40, "approved")
    box = replace(FOUND.boxes[0], reviews=(void, REVIEW, bare))
    told = render(replace(FOUND, boxes=(box, *FOUND.boxes[1:])))
    by = f"  > - review by `codex:gpt-5.5` on `{'b' * 12}`: "
    assert f"{by}void. In its own words, which nobody has checked:\n  >\n  >   ```text\n  >   it ended without" in told
    assert (
        f"{by}changes requested. In its own words, which nobody has checked:\n  >\n  >   ````text\n  >   Nearly.\n"
        in told
    )
    assert f"{by}approved\n" in told
    page = html(told)
    assert "<script" not in page
    assert "</details>" not in page
    assert 'href="javascript' not in page
    assert page.count("<h1>") == html(render(FOUND)).count("<h1>")
