"""The tables say what may happen to a thing; what they do not say is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import IllegalMove
from domain.lifecycle import GENESIS, Lifecycle, canonical, receipt_hash, table
from domain.plan import PLAN, REVISION, PlanEvent, PlanState
from domain.run import EVIDENCE, LIVE, RUN, RunEvent, RunState
from domain.task import (
    ENDED,
    QUESTION,
    RESUME_AT,
    RUNNABLE,
    SLOTTED,
    SUCCEEDED,
    TASK,
    TaskEvent,
    TaskState,
)

LIFECYCLES = [PLAN, REVISION, TASK, QUESTION, RUN, EVIDENCE]
every_lifecycle = pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda lifecycle: lifecycle.name)


def events_from(lifecycle: Lifecycle, state: str | None) -> set[str]:
    return {event for before, event in lifecycle.moves if before == state}


def states_after(lifecycle: Lifecycle, state: str | None) -> set[str]:
    return {after for (before, _), after in lifecycle.moves.items() if before == state}


# Every table.


@every_lifecycle
def test_a_move_that_the_table_does_not_have_is_refused(lifecycle: Lifecycle) -> None:
    events = {event for _, event in lifecycle.moves}
    for state in (None, *lifecycle.states):
        for event in (*events, "no such event"):
            if (state, event) in lifecycle.moves:
                assert lifecycle.allows(state, event)
                assert lifecycle.after(state, event) == lifecycle.moves[state, event]
                continue
            assert not lifecycle.allows(state, event)
            with pytest.raises(IllegalMove, match=f"a {lifecycle.name} that is .* cannot {event}") as refusal:
                lifecycle.after(state, event)
            assert (refusal.value.state, refusal.value.event) == (state, event)


@every_lifecycle
def test_every_state_can_be_reached_and_an_end_from_each(lifecycle: Lifecycle) -> None:
    def reachable(state: str | None) -> set[str]:
        found: set[str] = set()
        ahead = states_after(lifecycle, state)
        while ahead:
            found |= ahead
            ahead = {after for each in ahead for after in states_after(lifecycle, each)} - found
        return found

    assert reachable(None) == set(lifecycle.states)
    for state in set(lifecycle.states) - lifecycle.ended:
        assert reachable(state) & lifecycle.ended


@every_lifecycle
def test_nothing_comes_to_be_twice(lifecycle: Lifecycle) -> None:
    (birth,) = events_from(lifecycle, None)
    assert not any(event == birth for state, event in lifecycle.moves if state is not None)


@given(st.sampled_from(LIFECYCLES), st.data())
def test_any_walk_replays_to_the_same_states(lifecycle: Lifecycle, data: st.DataObject) -> None:
    state: str | None = None
    walk: list[tuple[str, str]] = []
    while len(walk) < 12 and (choices := sorted(events_from(lifecycle, state))):
        event = data.draw(st.sampled_from(choices))
        state = lifecycle.after(state, event)
        walk.append((event, state))
    replayed: str | None = None
    for event, expected in walk:
        replayed = lifecycle.after(replayed, event)
        assert replayed == expected
        assert replayed in lifecycle.states


def test_a_pair_that_stands_twice_makes_no_table() -> None:
    with pytest.raises(ValueError, match="stands twice"):
        table((None, "begin", "a"), (None, "begin", "b"))


def test_a_table_cannot_be_changed() -> None:
    moves: Any = TASK.moves
    with pytest.raises(TypeError):
        moves[TaskState.MERGED, TaskEvent.RETRY] = TaskState.PENDING


# Plans.


def test_a_plan_begins_only_after_a_person_confirmed_it() -> None:
    assert events_from(PLAN, None) == {PlanEvent.PUBLISH}
    assert {event for (_, event), after in PLAN.moves.items() if after == PlanState.CONFIRMED} == {
        PlanEvent.CONFIRM,
        PlanEvent.REVISE,
        PlanEvent.PAUSE,
        PlanEvent.RESUME,
        PlanEvent.RAISED,
    }
    assert [state for (state, event) in PLAN.moves if event == PlanEvent.BEGIN] == [PlanState.CONFIRMED]


def test_pausing_a_plan_changes_no_state() -> None:
    pauses = {PlanEvent.PAUSE, PlanEvent.RESUME}
    assert all(before == after for (before, event), after in PLAN.moves.items() if event in pauses)


def test_a_plan_that_ended_is_only_archived_or_opened_again() -> None:
    for state in PLAN.ended:
        assert events_from(PLAN, state) <= {PlanEvent.ARCHIVE, PlanEvent.REOPEN}


# Tasks.


def test_a_merged_task_never_moves_again() -> None:
    assert events_from(TASK, TaskState.MERGED) == set()


def test_the_forges_merge_moves_a_task_wherever_it_stands() -> None:
    for state in set(TaskState) - {TaskState.MERGED}:
        assert TASK.after(state, TaskEvent.MERGED) == TaskState.MERGED


def test_an_ended_task_is_moved_only_by_a_retry_or_by_the_forge() -> None:
    wakers = {TaskEvent.RETRY, TaskEvent.REOPENED, TaskEvent.MERGED}
    assert all(events_from(TASK, state) <= wakers for state in ENDED)
    assert TASK.ended == set(ENDED)
    assert set(SUCCEEDED) <= set(ENDED)


def test_a_task_resumes_at_the_step_where_it_paused() -> None:
    assert set(RESUME_AT) == set(RUNNABLE)
    for state in RUNNABLE:
        paused = TASK.after(state, TaskEvent.PAUSE)
        assert paused == TaskState.PAUSED
        assert TASK.after(paused, RESUME_AT[state]) == state


def test_a_task_that_can_run_or_waits_can_be_cancelled_or_fail() -> None:
    for state in (*RUNNABLE, TaskState.PAUSED):
        assert TASK.after(state, TaskEvent.CANCEL) == TaskState.CANCELLED
        assert TASK.after(state, TaskEvent.FAIL) == TaskState.FAILED


def test_every_state_of_a_task_can_run_waits_or_has_ended() -> None:
    assert {*RUNNABLE, TaskState.PAUSED, *ENDED} == set(TaskState)
    assert set(SLOTTED) < set(RUNNABLE)


def test_a_task_is_published_only_after_its_checks() -> None:
    there = TaskState.PUBLISHING
    before = {state for (state, _), after in TASK.moves.items() if after == there != state}
    assert before == {TaskState.CHECKING, TaskState.REVIEWING, TaskState.PAUSED}


# Runs.


def test_a_run_that_ended_never_lives_again_and_can_only_be_found_lost() -> None:
    for state in RUN.ended:
        assert states_after(RUN, state) <= {state, RunState.LOST}
    assert states_after(RUN, RunState.LOST) == {RunState.LOST}


def test_a_run_may_end_before_anybody_saw_it_spawn() -> None:
    ends = {RunEvent.FINISH, RunEvent.CRASH, RunEvent.LOSE, RunEvent.REFUSE, RunEvent.STOP}
    for state in LIVE:
        assert ends <= events_from(RUN, state)


def test_a_workers_crash_never_ends_a_run() -> None:
    for state in RunState:
        assert RUN.after(state, RunEvent.WORKER_CRASHED) == state


def test_evidence_never_changes() -> None:
    assert events_from(EVIDENCE, "recorded") == set()


# Receipts.

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


@given(st.dictionaries(st.text(), VALUES))
def test_canonical_json_does_not_depend_on_the_order_of_keys(value: dict[str, Any]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical(value) == canonical(turned)
    assert json.loads(canonical(value)) == value


def test_canonical_json_refuses_what_json_cannot_say() -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical(float("nan"))


RECEIPT: dict[str, Any] = {
    "previous": GENESIS,
    "chain": "shop-1234abcd",
    "seq": 1,
    "kind": "task",
    "subject": "shop-1234abcd-1",
    "before": "pending",
    "after": "working",
    "event": "begin",
    "key": "shop-1234abcd-1:begin:1",
    "cause": "heartbeat",
    "at": datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC),
    "facts": {"round": 1},
    "refused": "",
}


@pytest.mark.parametrize("field", [*RECEIPT, "actor"])
def test_a_receipts_hash_covers_everything_it_says(field: str) -> None:
    other = {
        "seq": 2,
        "before": None,
        "after": None,
        "at": datetime(2030, 1, 2, 3, 4, 5, 1, tzinfo=UTC),
        "facts": {"round": 2},
    }.get(field, "other")
    assert receipt_hash(**{**RECEIPT, field: other}) != receipt_hash(**RECEIPT)


def test_a_receipts_hash_is_known_for_good() -> None:
    assert receipt_hash(**RECEIPT) == "ff6c90e5419fff034b8b9008bbb35b2bad80365a54f9895215770a4c3012ea07"
    assert len(receipt_hash(**RECEIPT)) == len(GENESIS) == 64


def test_a_receipt_from_before_there_were_actors_keeps_its_hash() -> None:
    assert receipt_hash(**RECEIPT, actor="") == receipt_hash(**RECEIPT)
    assert receipt_hash(**RECEIPT, actor="worker") != receipt_hash(**{**RECEIPT, "refused": "worker"})
