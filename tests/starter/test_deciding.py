"""What a decision names when the person named it in part, or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.decision import Decision, DecisionKind
from domain.errors import NotFound
from domain.view import PlanView, TaskView
from starter.deciding import what_it_answers

HEAD = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"
VIEW = PlanView(
    "faster-1a2b3c4d", "faster", "ada", "Faster", "in_progress", "acme/shop", "main", "by-hand",
    paused=False, revision=1, digest="d" * 64, seq=9, head="h" * 64,
    tasks=(TaskView(1, "One", "in_review", head_sha=HEAD), TaskView(2, "Two", "paused", question_id="q7")),
)  # fmt: skip
APPROVE = Decision(DecisionKind.APPROVE, VIEW.plan_id, 1)


@pytest.mark.parametrize(("said", "meant"), [("", HEAD), (HEAD[:7], HEAD), (HEAD, HEAD), ("f" * 12, "f" * 12)])
def test_a_commit_is_named_by_its_beginning_and_another_one_stays_another(said, meant):
    assert what_it_answers(replace(APPROVE, names=said), VIEW) == meant


@pytest.mark.parametrize(("said", "meant"), [("", "q7"), ("q3", "q3")])
def test_the_open_question_is_meant_where_none_is_named(said, meant):
    for kind in (DecisionKind.APPROVE, DecisionKind.ANSWER, DecisionKind.RESUME):
        assert what_it_answers(Decision(kind, VIEW.plan_id, 2, said), VIEW) == meant
    assert what_it_answers(Decision(DecisionKind.RETRY, VIEW.plan_id, 2), VIEW) == ""


def test_a_task_that_the_plan_lacks_is_not_found_whatever_is_named():
    with pytest.raises(NotFound, match="has no task 9; it has 2"):
        what_it_answers(replace(APPROVE, ordinal=9, names=HEAD), VIEW)
