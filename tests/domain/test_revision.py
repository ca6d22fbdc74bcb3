"""What a revision may change of a plan under way, and what its moves are: nothing that began is touched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.decision import Decision, DecisionKind, PlanFacts, decide_task
from domain.difference import BoxKind, Difference, in_words
from domain.document import parse
from domain.duties import why_not
from domain.errors import Fault
from domain.identity import task_id
from domain.lifecycle import Move
from domain.plan import PLAN, REVISION, PlanSpec, PlanState
from domain.revising import Order, revise
from domain.revision import EDITABLE, Comparison, compare
from domain.task import (
    ENDED,
    QUESTION,
    RESUME_AT,
    TASK,
    Question,
    QuestionKind,
    TaskEvent,
    TaskFacts,
    TaskState,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLAN_ID = "demo-12345678"
AT_WORK = [state for state in TaskState if state not in (*EDITABLE, *ENDED)]


@dataclass(frozen=True)
class Box:
    title: str
    script: str = ""
    attributes: str = ""
    mark: str = " "
    struck: bool = False

    def lines(self) -> str:
        title = f"~~{self.title}~~" if self.struck else self.title
        extra = f" {{{self.attributes}}}" if self.attributes else ""
        return f"- [{self.mark}] {title}{extra}\n\n  ```sh\n  {self.script or f'make {self.title}'}\n  ```\n"


ONE, TWO, THREE = Box("One"), Box("Two"), Box("Three")
OLD = (ONE, TWO, THREE)


def text(*boxes: Box, about: str = "", **front: str) -> str:
    values = {"slug": "demo", "repository": "acme/shop", **front}
    head = "\n".join(f"{key}: {value}" for key, value in values.items())
    return f"---\n{head}\n---\n{about}\n## Tasks\n\n" + "\n".join(box.lines() for box in boxes)


def plan_facts(**facts: Any) -> PlanFacts:
    plan = PlanFacts(
        id=PLAN_ID, owner="ann", slug="demo", title="demo", state=PlanState.IN_PROGRESS, seq=7, paused=False,
        repository="acme/shop", base="main", merge="by-hand", concurrency=1, revision=1, digest="d" * 64, proposed=2,
    )  # fmt: skip
    return replace(plan, **facts)


def a_task(ordinal: int, state: TaskState = TaskState.PENDING, **facts: Any) -> TaskFacts:
    id = task_id(PLAN_ID, ordinal)
    question = Question(f"{id}-q1", id, QuestionKind.PAUSED_BY_PERSON, "Paused.", TaskState.WORKING)
    task = TaskFacts(
        id=id, plan_id=PLAN_ID, owner="ann", ordinal=ordinal, title=f"Box {ordinal}", body="", state=state,
        seq=20 + ordinal, round=1, epoch=0, repository="acme/shop", base="main", merge="by-hand", runtime="shell",
        timeout=3600, question=question if state is TaskState.PAUSED else None,
        runs_begun=0 if state is TaskState.PENDING else 1,
    )  # fmt: skip
    return replace(task, **facts)


def pending(*states: TaskState) -> list[TaskFacts]:
    """Three tasks: those whose states are given, and pending ones behind them."""
    given = (*states, *[TaskState.PENDING] * 3)[:3]
    return [a_task(ordinal, state) for ordinal, state in enumerate(given, 1)]


def compared(old: str, new: str, tasks: Iterable[TaskFacts], plan: PlanFacts | None = None, **more: Any) -> Comparison:
    return compare(plan or plan_facts(), parse(old), parse(new), tasks, **more)


def faults(*boxes: Box, tasks: Iterable[TaskFacts] = (), old: Iterable[Box] = OLD, **front: str) -> list[Fault]:
    return list(compared(text(*old), text(*boxes, **front), tasks or pending()).faults)


def difference(*boxes: Box, tasks: Iterable[TaskFacts] = (), **front: str) -> Difference:
    found = compared(text(*OLD), text(*boxes, **front), tasks or pending())
    assert found.faults == ()
    return found.difference


def line_of(box: Box, *boxes: Box, **front: str) -> int:
    """The line on which a box stands."""
    return text(*boxes, **front).split("\n").index(box.lines().split("\n")[0]) + 1


# What changes.


def test_the_same_text_changes_nothing() -> None:
    found = difference(*OLD)
    assert found == Difference(unchanged=3)
    assert in_words(found) == ("= 3 boxes unchanged",)
    assert found.summary == "nothing of what is done"


def test_a_box_at_the_end_is_added() -> None:
    found = difference(*OLD, Box("Four", attributes="after=3"))
    assert [(box.ordinal, box.kind) for box in found.boxes] == [(4, BoxKind.ADDED)]
    assert str(found.boxes[0]) == "+ 4. Four: new; by shell; after 3"


@pytest.mark.parametrize("box", [Box("Four", mark="x"), Box("Four", struck=True)])
def test_a_new_box_that_is_done_or_struck_out_starts_nothing(box: Box) -> None:
    assert difference(*OLD, box).boxes == ()


@pytest.mark.parametrize(
    ("box", "what", "before", "after"),
    [
        (Box("Second", "make Two"), "title", "'Two'", "'Second'"),
        (Box("Two", attributes="after=1"), "after", "none", "1"),
        (Box("Two", attributes="timeout=5m"), "timeout", "3600", "300"),
        (Box("Two", attributes='budget="2 USD"'), "budget_nano_usd", "none", "2.00 USD"),
        (Box("Two", attributes="runtime=claude"), "runtime", "shell", "claude"),
    ],
)
def test_what_of_a_box_changes_is_told(box: Box, what: str, before: str, after: str) -> None:
    (changed,) = difference(ONE, box, THREE).boxes
    assert (changed.ordinal, changed.kind, changed.state) == (2, BoxKind.CHANGED, "pending")
    (told, *_) = changed.changes
    assert (told.what, told.before, told.after) == (what, before, after)


def test_a_changed_text_is_told_as_the_lines_that_differ() -> None:
    (changed,) = difference(ONE, replace(TWO, script="make all"), THREE).boxes
    (told,) = changed.changes
    assert told.what == "body"
    assert {"-make Two", "+make all"} <= set(told.lines)
    assert "    +make all" in in_words(difference(ONE, replace(TWO, script="make all"), THREE), whole=True)
    assert not any("make all" in line for line in in_words(difference(ONE, replace(TWO, script="make all"), THREE)))


def test_spaces_at_the_ends_of_lines_are_no_change() -> None:
    new = text(*OLD).replace("make Two\n", "make Two   \n")
    assert compared(text(*OLD), new, pending(TaskState.MERGED, TaskState.MERGED)).difference.boxes == ()


@pytest.mark.parametrize("state", EDITABLE)
def test_a_box_that_is_struck_out_is_removed(state: TaskState) -> None:
    tasks = pending(TaskState.PENDING, state)
    (removed,) = difference(ONE, replace(TWO, struck=True), THREE, tasks=tasks).boxes
    assert (removed.ordinal, removed.kind, removed.title) == (2, BoxKind.REMOVED, "Two")


def test_a_longer_difference_than_a_view_has_room_for_says_how_much_is_left_out() -> None:
    many = difference(*OLD, *(Box(f"More {n}") for n in range(100)))
    told = in_words(many)
    assert (len(told), told[-1]) == (61, "and 41 more lines")
    assert len(in_words(many, whole=True)) == 101


# What may not be touched.


@pytest.mark.parametrize("state", AT_WORK)
@pytest.mark.parametrize("box", [Box("Second", "make Two"), replace(TWO, script="true"), replace(TWO, struck=True)])
def test_a_task_at_work_is_not_touched_and_it_is_said_how_it_could_be(state: TaskState, box: Box) -> None:
    (fault,) = faults(ONE, box, THREE, tasks=pending(TaskState.MERGED, state))
    assert fault.line == line_of(box, ONE, box, THREE)
    assert fault.message.startswith(f"task 2 is {state}")
    assert "`watchbill pause demo#2`" in fault.message


@pytest.mark.parametrize("state", [state for state in ENDED if state is not TaskState.CANCELLED])
@pytest.mark.parametrize(
    "box",
    [
        Box("Second", "make Two"),
        replace(TWO, script="true"),
        replace(TWO, attributes="after=1"),
        replace(TWO, attributes="timeout=5m"),
        replace(TWO, struck=True),
    ],
)
def test_what_has_ended_is_never_touched(state: TaskState, box: Box) -> None:
    (fault,) = faults(ONE, box, THREE, tasks=pending(TaskState.MERGED, state))
    assert (fault.line, "what has ended" in fault.message) == (line_of(box, ONE, box, THREE), True)


def test_every_fault_is_told_at_once() -> None:
    boxes = (replace(ONE, script="true"), replace(TWO, struck=True), THREE)
    found = faults(*boxes, tasks=pending(TaskState.MERGED, TaskState.WORKING), repository="acme/other", base="next")
    assert [fault.message.split(":")[0].split(" is ")[0] for fault in found] == [
        "repository", "base", "task 1", "task 2",
    ]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), [("slug", "other"), ("repository", "acme/other"), ("base", "next")])
def test_what_a_plan_is_for_good_does_not_change(key: str, value: str) -> None:
    (fault,) = faults(*OLD, **{key: value})
    lines = text(*OLD, **{key: value}).split("\n")
    assert fault.line == lines.index(f"{key}: {value}") + 1


def test_a_base_that_is_named_as_it_is_is_no_other() -> None:
    assert faults(*OLD, base="main") == []
    found = compared(text(*OLD, base="main"), text(*OLD), pending(), base="trunk")
    assert [fault.message.split(":")[0] for fault in found.faults] == ["base"]


def test_a_box_is_checked_once_it_is_merged_and_not_before() -> None:
    checked = replace(TWO, mark="x")
    assert difference(ONE, checked, THREE, tasks=pending(TaskState.MERGED, TaskState.MERGED)).boxes == ()
    (fault,) = faults(ONE, checked, THREE)
    assert "strike it out" in fault.message


def test_a_task_that_began_is_not_made_another_one() -> None:
    """Its number would be given to another task, with the branch and the pull request that it has."""
    other = Box("Another", "make another")
    assert faults(ONE, other, THREE) == []
    (fault,) = faults(ONE, other, THREE, tasks=pending(TaskState.MERGED, TaskState.PAUSED))
    assert "another task" in fault.message


# Numbers.


@pytest.mark.parametrize("boxes", [(ONE, THREE), (ONE, THREE, Box("Four"))])
def test_a_box_that_is_left_out_moves_no_other_into_its_place(boxes: tuple[Box, ...]) -> None:
    found = faults(*boxes)
    line = line_of(THREE, *boxes)
    told = [fault.message for fault in found if fault.line == line]
    assert any("this is task 3, and here it would become task 2" in message for message in told)
    assert any("- [ ] ~~Two~~" in message for message in told)


def test_a_last_box_that_is_left_out_leaves_its_number_to_nobody() -> None:
    (fault,) = faults(ONE, TWO)
    assert fault.message.startswith("task 3 is gone")


@pytest.mark.parametrize("boxes", [(TWO, ONE, THREE), (ONE, Box("New"), TWO, THREE)])
def test_boxes_do_not_change_places(boxes: tuple[Box, ...]) -> None:
    assert any("here it would become" in fault.message for fault in faults(*boxes))


def test_a_box_that_moved_is_known_by_its_text_where_its_title_is_another() -> None:
    found = faults(ONE, Box("Drei", "make Three"))
    assert any("this is task 3, and here it would become task 2" in fault.message for fault in found)


def test_boxes_of_one_text_are_told_apart_by_their_titles() -> None:
    one, two, three = (Box(title, "true") for title in ("A", "B", "C"))
    assert any("would become task 2" in fault.message for fault in faults(one, three, old=(one, two, three)))
    assert any("would become" in fault.message for fault in faults(one, three, two, old=(one, two, three)))
    assert faults(one, Box("Bee", "true"), three, old=(one, two, three)) == []


@pytest.mark.parametrize("was", [replace(TWO, struck=True), replace(TWO, mark="x")])
def test_a_number_that_was_struck_out_or_done_starts_nothing_any_more(was: Box) -> None:
    old = (ONE, was, THREE)
    (fault,) = faults(ONE, TWO, THREE, old=old, tasks=[a_task(1), a_task(3)])
    assert "starts nothing any more" in fault.message
    cancelled = [a_task(1), a_task(2, TaskState.CANCELLED), a_task(3)]
    assert [each.message for each in faults(*OLD, old=(ONE, replace(TWO, struck=True), THREE), tasks=cancelled)] == [
        "task 2 is struck out, and its number starts nothing any more; write it anew, at the end"
    ]


@pytest.mark.parametrize("state", [TaskState.CANCELLED, TaskState.MERGED])
def test_a_box_that_was_struck_out_stays_so_whatever_the_forge_said_since(state: TaskState) -> None:
    struck = (ONE, replace(TWO, struck=True), THREE)
    assert faults(*struck, old=struck, tasks=pending(TaskState.PENDING, state)) == []


def test_no_box_waits_for_one_that_is_struck_out() -> None:
    with pytest.raises(Exception, match="task 2 is struck out, so nothing can wait for it"):
        parse(text(ONE, replace(TWO, struck=True), replace(THREE, attributes="after=2")))
    merged = parse(text(ONE, replace(TWO, struck=True), replace(THREE, attributes="after=2", mark="x")))
    assert merged.tasks[2].after == (2,)


# Keys of the whole plan.


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("checks", "make test"),
        ("paths", "src/**"),
        ("refuse_commands", "git push*"),
        ("refuse_tools", "WebFetch"),
        ("refuse_paths", ".github/**"),
        ("network", "open"),
        ("confine", "required"),
    ],
)
def test_what_judges_work_changes_only_while_none_of_it_is_at_work(key: str, value: str) -> None:
    front = {key: f'"{value}"'}
    for state in AT_WORK:
        (fault,) = faults(*OLD, tasks=pending(TaskState.MERGED, state), **front)
        assert fault.message.startswith(f"{key}: what judges work does not change under task 2 ({state})")
    found = difference(*OLD, tasks=pending(TaskState.MERGED, TaskState.PAUSED), **front)
    assert [change.what for change in found.plan] == [key]
    # The one that is paused goes on by it; the one that has yet to begin simply will.
    assert [(box.ordinal, box.by) for box in found.boxes] == [(2, (key,))]


def test_a_merge_policy_disturbs_no_paused_task_and_is_not_changed_under_work() -> None:
    old, new = text(*OLD, checks="x"), text(*OLD, checks="x", merge="when-proven")
    found = compared(old, new, pending(TaskState.PAUSED))
    assert (found.difference.boxes, found.faults) == ((), ())
    assert compared(old, new, pending(TaskState.IN_REVIEW)).faults


def test_a_default_reaches_what_has_not_begun_and_is_kept_by_what_has() -> None:
    tasks = [a_task(1, TaskState.MERGED), a_task(2, TaskState.WORKING), a_task(3)]
    found = difference(*OLD, tasks=tasks, timeout="5m")
    assert [(box.ordinal, [each.what for each in box.changes]) for box in found.boxes] == [(3, ["timeout"])]
    assert (found.kept, found.unchanged) == ((2,), 2)


def test_a_model_that_a_box_does_not_name_is_a_default_also_where_it_names_its_runtime() -> None:
    old, new = (
        text(ONE, replace(TWO, attributes="runtime=claude"), runtime="claude", model=model) for model in ("a", "b")
    )
    found = compared(old, new, [a_task(1), a_task(2, TaskState.WORKING)])
    assert (found.faults, found.difference.kept) == ((), (2,))


def test_what_a_box_says_for_itself_is_no_default() -> None:
    old = (replace(ONE, attributes="timeout=5m"), TWO, THREE)
    assert faults(*OLD, old=old, tasks=pending(TaskState.WORKING))
    assert faults(replace(ONE, attributes="timeout=60m"), TWO, THREE, tasks=pending(TaskState.WORKING)) == []


def test_a_budget_that_was_raised_to_what_the_text_says_now_is_no_change() -> None:
    new = text(*OLD, budget="12 USD")
    plan = plan_facts(budget_nano_usd=12_000_000_000)
    tasks = [a_task(n, TaskState.WORKING, budget_nano_usd=12_000_000_000) for n in (1, 2, 3)]
    found = compared(text(*OLD, budget="5 USD"), new, tasks, plan)
    assert (found.difference.plan, found.difference.boxes, found.faults) == ((), (), ())


def test_what_a_review_may_cost_changes_whatever_is_at_work() -> None:
    front = {"runtime": "claude", "reviewers": "[codex]"}
    old, new = text(*OLD, **front), text(*OLD, **front, review_budget="2 USD")
    found = compared(old, new, pending(TaskState.WORKING))
    assert (list(map(str, found.difference.plan)), found.faults) == (["review_budget none → 2.00 USD"], ())


def test_a_budget_covers_what_is_spent_already() -> None:
    old, new = text(*OLD, budget="5 USD"), text(*OLD, budget="2 USD")
    plan = plan_facts(budget_nano_usd=5_000_000_000)
    tasks = [replace(task, budget_nano_usd=5_000_000_000) for task in pending(TaskState.PAUSED)]
    used = {PLAN_ID: 3_000_000_000, tasks[0].id: 2_500_000_000}
    found = compared(old, new, tasks, plan, used=used).faults
    assert [fault.message.split(":")[0] for fault in found] == ["budget", "task 1"]
    assert compared(old, new, tasks, plan, used={PLAN_ID: 2_000_000_000}).faults == ()


# The moves.


def moves_of(old: str, new: str, tasks: list[TaskFacts], plan: PlanFacts | None = None) -> tuple[Move, ...]:
    found = compared(old, new, tasks, plan)
    assert found.faults == ()
    order = Order(2, parse(new), "revision 2 confirmed by bob", NOW)
    return revise(plan or plan_facts(), found.difference, tasks, order)


def of(moves: Iterable[Move], kind: str, subject: str = "") -> list[Move]:
    return [move for move in moves if move.kind == kind and subject in ("", move.subject)]


def paused(resume_at: TaskState = TaskState.WORKING, **facts: Any) -> list[TaskFacts]:
    """A paused task between two that are pending; its question resumes there."""
    one, two, three = pending(TaskState.PENDING, TaskState.PAUSED)
    assert two.question is not None
    return [one, replace(two, question=replace(two.question, resume_at=resume_at), **facts), three]


def test_a_paused_task_whose_text_changed_asks_anew_and_begins_again() -> None:
    tasks = paused(
        TaskState.IN_REVIEW, head_sha="c" * 40, proven_sha="c" * 40, approved_sha="c" * 40, note="An old note."
    )
    moves = moves_of(text(*OLD), text(ONE, replace(TWO, script="make all"), THREE), tasks)
    task, withdrawn, asked = (move for move in moves if move.subject.startswith(f"{PLAN_ID}-2"))
    assert (task.event, withdrawn.event, asked.event) == (TaskEvent.REVISE, "withdraw", "ask")
    assert task.facts["body"] == "```sh\nmake all\n```"
    assert task.facts["note"].startswith("The plan was revised (revision 2), and this task with it: text.")
    assert "An old note" not in task.facts["note"]
    assert {"proven_sha": "", "approved_sha": "", "fresh_start": True, "revision": 2}.items() <= task.facts.items()
    assert task.facts["question_id"] == asked.subject != withdrawn.subject
    assert (asked.facts["kind"], asked.facts["resume_at"]) == (QuestionKind.REVISED, TaskState.WORKING)
    assert "What it asked before: Paused." in asked.facts["text"]


def test_somebodys_commits_are_kept_also_for_another_text() -> None:
    new = text(ONE, replace(TWO, script="make all"), THREE)
    (task,) = of(moves_of(text(*OLD), new, paused(foreign_commits=True)), "task")
    assert task.facts["fresh_start"] is False
    assert "made for the text before" in task.facts["note"]


def test_what_was_done_stays_where_only_the_terms_changed() -> None:
    tasks = paused(TaskState.IN_REVIEW, proven_sha="c" * 40, note="An old note.")
    moves = moves_of(text(*OLD), text(ONE, replace(TWO, attributes="timeout=5m"), THREE), tasks)
    (task,), (asked,) = of(moves, "task"), [move for move in of(moves, "question") if move.event == "ask"]
    assert task.facts["timeout"] == 300
    assert "An old note." in task.facts["note"]
    assert not {"fresh_start", "proven_sha", "approved_sha"} & task.facts.keys()
    assert asked.facts["resume_at"] == TaskState.IN_REVIEW


@pytest.mark.parametrize(
    ("key", "resume_at"),
    [("checks", TaskState.CHECKING), ("network", TaskState.CHECKING), ("paths", TaskState.WORKING)],
)
@pytest.mark.parametrize("stood", RESUME_AT)
def test_a_paused_task_goes_on_no_further_than_where_the_plans_new_rules_have_their_say(
    key: str, resume_at: TaskState, stood: TaskState
) -> None:
    order = list(RESUME_AT)
    new = text(*OLD, **{key: "open" if key == "network" else "src/**"})
    moves = moves_of(text(*OLD), new, paused(stood))
    (asked,) = (move for move in of(moves, "question") if move.event == "ask")
    assert asked.facts["resume_at"] == min(stood, resume_at, key=order.index)
    assert of(moves, "plan")[-1].facts["judged"] == 2


def test_no_proof_is_out_of_date_where_nothing_that_judges_changed() -> None:
    moves = moves_of(text(*OLD), text(*OLD, Box("Four"), concurrency="3"), pending())
    assert "judged" not in of(moves, "plan")[-1].facts


def test_a_word_with_which_a_revised_task_goes_on_is_beside_what_was_revised() -> None:
    (task,) = of(moves_of(text(*OLD), text(ONE, replace(TWO, script="x"), THREE), paused()), "task")
    question = Question("q2", f"{PLAN_ID}-2", QuestionKind.REVISED, "?", TaskState.WORKING)
    asking = replace(paused()[1], note=task.facts["note"], question=question)
    word = Decision(DecisionKind.ANSWER, PLAN_ID, 2, "q2", "mind the gap")
    ruling = decide_task(word, plan_facts(), asking, question, NOW)
    assert isinstance(ruling, tuple)
    assert ruling[0].facts["note"] == f"{task.facts['note']}\n\nA person says: mind the gap"


def test_a_waiver_is_for_what_a_task_came_after_then() -> None:
    (task,) = of(moves_of(text(*OLD), text(ONE, replace(TWO, attributes="after=1"), THREE), pending()), "task")
    assert (task.facts["after"], task.facts["after_waived"]) == ([1], False)


def test_a_removed_task_is_cancelled_with_what_it_asks() -> None:
    moves = moves_of(text(*OLD), text(ONE, replace(TWO, struck=True), THREE), paused())
    assert [(move.kind, str(move.event)) for move in moves] == [
        ("revision", "confirm"), ("task", "cancel"), ("question", "withdraw"), ("plan", "revise"),
    ]  # fmt: skip
    assert moves[1].facts["reason"] == "struck out by revision 2"


def test_an_added_task_is_born_pending_with_as_many_runs_as_the_new_text_allows() -> None:
    moves = moves_of(text(*OLD), text(*OLD, Box("Four", attributes="after=3"), attempts="7"), pending())
    born = next(move for move in of(moves, "task") if move.event == TaskEvent.CONFIRM)
    assert (born.subject, born.key) == (f"{PLAN_ID}-4", "task:4:r2")
    assert {"allowed_runs": 7, "after": [3], "title": "Four", "revision": 2}.items() <= born.facts.items()
    fresh = [move for move in of(moves, "task") if move.event == TaskEvent.REVISE]
    assert [move.facts for move in fresh] == [{"allowed_runs": 7}] * 3


def test_a_plan_that_has_ended_is_opened_again() -> None:
    plan = plan_facts(state=PlanState.COMPLETED)
    tasks = pending(*[TaskState.MERGED] * 3)
    moves = moves_of(text(*OLD), text(*OLD, Box("Four")), tasks, plan)
    assert [str(move.event) for move in of(moves, "plan")] == ["reopen", "revise"]


def test_every_key_names_the_revision_or_what_it_reads() -> None:
    moves = moves_of(text(*OLD), text(ONE, replace(TWO, script="x"), THREE, Box("Four")), paused())
    named = [move.key for move in moves if move.kind != "question"]
    assert all("2" in key.rpartition(":")[2] or ":2:" in key for key in named), named
    assert len({move.key for move in moves}) == len(moves)


# Anything at all.

BOXES = st.lists(st.sampled_from("ABCDEFG"), min_size=1, max_size=5, unique=True)
# Mostly such as may be changed, or hardly any edit would come to anything.
STATES = st.sampled_from([*TaskState, *EDITABLE * 8])
EDITS = st.lists(
    st.tuples(
        st.sampled_from(
            ["strike", "unstrike", "retitle", "rewrite", "delete", "swap", "insert", "append", "check", "after"]
        ),
        st.integers(0, 6),
        st.integers(0, 6),
    ),
    max_size=4,
)
FRONTS = st.fixed_dictionaries(
    {},
    optional={
        "checks": st.sampled_from(["make", "true"]),
        "paths": st.sampled_from(["src/**", "docs/"]),
        "timeout": st.sampled_from(["5m", "60m"]),
        "attempts": st.sampled_from(["2", "4"]),
        "concurrency": st.just("3"),
    },
)


def edited(boxes: list[Box], edits: list[tuple[str, int, int]]) -> list[Box]:
    boxes = list(boxes)
    for number, (edit, one, another) in enumerate(edits):
        if not boxes:
            break
        at, other = one % len(boxes), another % len(boxes)
        match edit:
            case "strike" | "unstrike":
                boxes[at] = replace(boxes[at], struck=edit == "strike")
            case "retitle":
                boxes[at] = replace(boxes[at], title=f"{boxes[at].title}{number}", script=boxes[at].script)
            case "rewrite":
                boxes[at] = replace(boxes[at], script=f"make {number}")
            case "delete":
                del boxes[at]
            case "swap":
                boxes[at], boxes[other] = boxes[other], boxes[at]
            case "insert":
                boxes.insert(at, Box(f"New {number}"))
            case "append":
                boxes.append(Box(f"New {number}"))
            case "check":
                boxes[at] = replace(boxes[at], mark="x")
            case "after" if at != other:
                boxes[at] = replace(boxes[at], attributes=f"after={other + 1}")
    return boxes


def read(*boxes: Box, **front: str) -> PlanSpec | None:
    try:
        return parse(text(*boxes, **front))
    except Exception:  # noqa: BLE001 - an edit may make no plan at all, which is the document's matter
        return None


class Rows:
    """Tasks and questions as moves leave them, each move as its table allows it."""

    def __init__(self, tasks: Iterable[TaskFacts]) -> None:
        self.tasks = {task.id: task for task in tasks}
        self.made: set[str] = set()
        self.states: dict[tuple[str, str], str | None] = {}
        for task in self.tasks.values():
            self.states["task", task.id] = task.state
            if task.question:
                self.states["question", task.question.id] = "open"
        self.states["plan", PLAN_ID], self.states["revision", f"{PLAN_ID}-r2"] = "in_progress", "proposed"

    def make(self, moves: Iterable[Move]) -> None:
        tables = {"plan": PLAN, "revision": REVISION, "task": TASK, "question": QUESTION}
        for move in moves:
            assert why_not(move.by, move.kind, move.event) == ""
            if move.key in self.made:
                continue
            self.made.add(move.key)
            before = self.states.get((move.kind, move.subject))
            self.states[move.kind, move.subject] = state = tables[move.kind].after(before, move.event)
            if move.kind != "task":
                continue
            there = self.tasks.get(move.subject) or a_task(move.facts["ordinal"])
            named = {name: value for name, value in move.facts.items() if name in TaskFacts.__dataclass_fields__}
            asks = None if "question_id" in named else there.question
            self.tasks[move.subject] = replace(there, **named, state=TaskState(state), seq=there.seq + 1, question=asks)


@settings(max_examples=300)
@given(BOXES, st.lists(STATES, min_size=5, max_size=5), EDITS, FRONTS, FRONTS)
def test_whatever_is_edited_nothing_that_began_or_ended_is_touched_and_no_number_is_given_twice(
    titles: list[str],
    states: list[TaskState],
    edits: list[tuple[str, int, int]],
    front: dict[str, str],
    new_front: dict[str, str],
) -> None:
    boxes = [Box(title, f"make {title}") for title in titles]
    old = read(*boxes, **front)
    new = read(*edited(boxes, edits), **new_front)
    if old is None or new is None:
        return
    tasks = [a_task(ordinal, state) for ordinal, state in zip(range(1, len(boxes) + 1), states, strict=False)]
    found = compare(plan_facts(), old, new, tasks)
    if found.faults:
        return
    moves = revise(plan_facts(), found.difference, tasks, Order(2, new, "confirmed", NOW))
    rows = Rows(tasks)
    rows.make(moves)

    for task in tasks:
        box = new.tasks[task.ordinal - 1]
        if task.state not in EDITABLE:
            assert rows.tasks[task.id] == task
            was = old.tasks[task.ordinal - 1]
            # What is struck out of a cancelled task is said about nothing that there is.
            assert box.struck or (box.title, box.body) == (was.title, was.body)
        else:
            assert (rows.tasks[task.id].state is TaskState.CANCELLED) == box.struck
    born = [move for move in moves if move.event == TaskEvent.CONFIRM and move.kind == "task"]
    assert all(move.facts["ordinal"] > len(boxes) for move in born)
    assert len(new.tasks) >= len(old.tasks)
    again = compare(plan_facts(revision=2), new, new, rows.tasks.values())
    assert (again.difference.boxes, again.difference.plan, again.faults) == ((), (), ())
    before = dict(rows.tasks)
    rows.make(moves)
    assert rows.tasks == before
