"""What a person sees of a plan: what waits for them, what is proven, and every box."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from markdown_it import MarkdownIt

from domain.policy import PROVEN, UNPROVEN
from domain.task import ENDED, RUNNABLE, TaskState
from domain.view import (
    ROOM_FOR_QUESTIONS,
    Happening,
    PlanView,
    Proposed,
    TaskView,
    counts,
    followed,
    to_markdown,
    waits_for,
)


def a_box(ordinal: int = 1, state: str = TaskState.WORKING, **facts: Any) -> TaskView:
    return replace(TaskView(ordinal, f"Box {ordinal}", state, id=f"demo-12345678-{ordinal}"), **facts)


def a_plan(*tasks: TaskView, **facts: Any) -> PlanView:
    plan = PlanView(
        plan_id="demo-12345678", slug="demo", owner="ann", title="Demo", state="in_progress",
        repository="acme/shop", base="main", merge="when-proven", paused=False, revision=1, digest="d" * 64,
        seq=12, head="abcdef0123456789" * 4, tasks=tasks,
    )  # fmt: skip
    return replace(plan, **facts)


def asking(**facts: Any) -> TaskView:
    return a_box(state=TaskState.PAUSED, question_id="demo-12345678-1-q7", question="Take it as it is?", **facts)


def rendered(markdown: str) -> str:
    return MarkdownIt("commonmark").render(markdown)


def test_a_plan_that_waits_for_its_confirmation_needs_a_person() -> None:
    assert a_plan(state="awaiting_confirmation").needs_person


@pytest.mark.parametrize("state", ["confirmed", "in_progress", "completed", "archived"])
def test_a_plan_none_of_whose_tasks_asks_anything_needs_nobody(state: str) -> None:
    assert not a_plan(*(a_box(n, each) for n, each in enumerate(TaskState, start=1)), state=state).needs_person


def test_a_question_needs_a_person() -> None:
    plan = a_plan(a_box(), asking())
    assert plan.needs_person
    assert waits_for(plan, plan.tasks[1]) == "Take it as it is?"


def test_a_pull_request_that_is_merged_by_hand_waits_for_a_person() -> None:
    by_hand = a_plan(a_box(state=TaskState.IN_REVIEW), merge="by-hand")
    assert by_hand.needs_person
    assert not replace(by_hand, merge="when-proven").needs_person


def test_a_merge_that_the_forge_does_not_allow_waits_for_a_person_and_says_why() -> None:
    plan = a_plan(a_box(state=TaskState.IN_REVIEW, reason="2 reviews are required"))
    assert "2 reviews are required" in waits_for(plan, plan.tasks[0])


@pytest.mark.parametrize("state", [state for state in (*RUNNABLE, *ENDED) if state is not TaskState.IN_REVIEW])
def test_a_task_in_any_other_state_waits_for_nobody(state: TaskState) -> None:
    box = a_box(state=state, reason="gave up" if state in ENDED else "")
    assert waits_for(a_plan(box, merge="by-hand"), box) == ""


@pytest.mark.parametrize(("state", "ended"), [("in_progress", False), ("completed", True), ("archived", True)])
def test_a_plan_has_ended_when_it_is_completed_or_archived(state: str, ended: bool) -> None:
    assert a_plan(state=state).ended is ended


def test_merges_without_proof_are_counted_apart_as_well() -> None:
    merged = [a_box(n, TaskState.MERGED, proof=proof) for n, proof in enumerate((PROVEN, UNPROVEN), start=1)]
    assert counts(a_plan(*merged, a_box(3))) == {"merged": 2, "unproven": 1, "working": 1}


def test_every_box_is_shown_once_and_ticked_when_it_is_done() -> None:
    states = [*TaskState, "done", "unconfirmed"]
    text = to_markdown(a_plan(*(a_box(n, state) for n, state in enumerate(states, start=1))))
    ticked = {line.split("**")[1] for line in text.splitlines() if line.startswith("- [x]")}
    assert ticked == {"done", "merged", "no_changes"}
    assert sum(line.startswith("- [") for line in text.splitlines()) == len(states)


def test_what_waits_for_a_person_stands_below_its_box_with_the_name_to_answer() -> None:
    lines = to_markdown(a_plan(asking())).splitlines()
    (at,) = (n for n, line in enumerate(lines) if line.startswith("- ["))
    assert "`demo-12345678-1-q7`" in lines[at + 1]
    assert "Take it as it is?" in lines[at + 1]


def test_a_plan_to_be_confirmed_says_with_which_command() -> None:
    assert "watchbill confirm demo" in to_markdown(a_plan(state="awaiting_confirmation"))
    assert "watchbill confirm" not in to_markdown(a_plan())


def test_a_merge_by_hand_of_unproven_work_is_marked() -> None:
    assert "unproven" in to_markdown(a_plan(a_box(state=TaskState.MERGED, proof=UNPROVEN)))


def test_how_runs_are_confined_and_where_the_chain_stands_is_said_in_every_view() -> None:
    text = to_markdown(a_plan())
    assert "unconfined" in text
    assert "12:`abcdef0123456789`" in text


def test_a_paused_plan_says_so() -> None:
    assert "paused" in to_markdown(a_plan(paused=True))
    assert "paused" not in to_markdown(a_plan())


@pytest.mark.parametrize(
    "title",
    [
        "Break\nthe\n\n- [x] list",
        "**bold** `code` _it_",
        "[link](http://evil)",
        "<b>html</b>",
        "# heading | cell",
    ],
)
def test_a_title_is_shown_as_its_words_whatever_marks_are_in_it(title: str) -> None:
    html = rendered(to_markdown(a_plan(a_box(title=title), title=title)))
    assert html.count("<li>") == 1
    for tag in ("<a ", "<b>", "<code>code", "<em>", "<strong>bold", "<h1>"):
        assert tag not in html


def test_a_question_is_shown_to_its_last_word() -> None:
    asked = "Which of these names is meant? " * 250 + "Or none?"
    assert asked in to_markdown(a_plan(replace(asking(), question=asked)))


def test_questions_of_any_length_and_number_keep_the_view_readable() -> None:
    text = to_markdown(a_plan(*(replace(asking(), ordinal=n, question="`x` " * 5000) for n in range(1, 101))))
    assert len(text) < 6 * ROOM_FOR_QUESTIONS
    # The first is whole; of the others there is enough to know them by, and it shows that there is more.
    assert (text.count("waits for a person"), text.count("…\n")) == (100, 99)


def a_view(seq: int, story: range, starts_at: int) -> PlanView:
    told = tuple(Happening(n, "", f"line {n}") for n in story)
    return a_plan(seq=seq, story=told, story_starts_at=starts_at)


@pytest.mark.parametrize("again", [0, 3])
def test_a_view_that_follows_another_has_the_whole_story_once(again: int) -> None:
    known = a_view(5, range(1, 6), 1)
    news = a_view(8, range(6 - again, 9), 3)
    assert [line.seq for line in followed(known, news).story] == [3, 4, 5, 6, 7, 8]
    assert followed(None, news) == news


def test_a_story_that_was_cut_back_is_told_no_further_than_it_goes() -> None:
    """As when the store was restored from a copy of yesterday's."""
    assert [line.seq for line in followed(a_view(9, range(1, 10), 1), a_view(4, range(0), 1)).story] == [1, 2, 3, 4]


def test_operators_see_that_agents_are_not_metered() -> None:
    told = to_markdown(a_plan(confinement="partly confined", metering="unmetered"))
    assert "Runs are partly confined. Agents are unmetered: they call their models on logins of their own" in told
    assert "metered" not in to_markdown(a_plan(metering="metered"))


def test_a_revision_that_waits_needs_a_person_and_is_shown_line_by_line() -> None:
    proposed = Proposed(2, "ab" * 32, "1 box added", ("+ 4. Four: new; by *shell*", "= 3 boxes unchanged"))
    plan = a_plan(a_box(), proposed=proposed)
    assert plan.needs_person
    shown = to_markdown(plan)
    assert "Revision 2 waits for confirmation: `watchbill confirm demo --digest abababababab`" in shown
    assert "<pre><code>+ 4. Four: new; by *shell*\n= 3 boxes unchanged\n</code></pre>" in rendered(shown)
    assert not replace(plan, proposed=None).needs_person


def test_a_box_that_was_struck_out_is_shown_so() -> None:
    shown = to_markdown(a_plan(a_box(state=TaskState.CANCELLED, struck=True)))
    assert "1. ~~Box 1~~ — **cancelled**" in shown


@pytest.mark.parametrize(
    ("merge", "facts", "waits"),
    [
        ("when-proven", {}, ""),
        ("when-proven", {"reason": "2 reviews are required"}, "it could not be merged yet: 2 reviews are required"),
        ("when-proven", {"unproven": True}, "waits to be merged by hand, because it is not proven"),
        ("by-hand", {"unproven": True}, "waits to be merged by hand"),
    ],
)
def test_who_a_pull_request_waits_for(merge: str, facts: dict[str, Any], waits: str) -> None:
    plan = replace(a_plan(), merge=merge)
    assert waits_for(plan, replace(a_box(state=TaskState.IN_REVIEW), **facts)) == waits
