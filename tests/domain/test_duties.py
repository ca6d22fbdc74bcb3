"""Who may cause which move: every event is somebody's, none is an agent's but its own word."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from domain.duties import DUTIES, Actor, may, why_not
from domain.lifecycle import Move
from domain.publication import Moves
from domain.reference import LIFECYCLES
from domain.run import Role
from domain.task import RESUME_AT

EVENTS = {(lifecycle.name, str(event)) for lifecycle in LIFECYCLES for _, event in lifecycle.moves}
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

A_PERSONS_ALONE = {
    *(("plan", event) for event in ("publish", "republish", "confirm", "revise", "raised", "pause", "resume")),
    ("plan", "archive"),
    *(("revision", event) for event in ("propose", "confirm", "withdraw")),
    *(("task", event) for event in ("confirm", "approved", "raised", "revise", "retry", "cancel")),
    *(("task", str(event)) for event in RESUME_AT.values()),
    ("question", "answer"),
    *(("note", event) for event in ("replace", "remove")),
    *(("owner", event) for event in ("open", "pause", "resume", "budget")),
}


def of(actor: Actor) -> set[tuple[str, str]]:
    return {(kind, event) for kind, events in DUTIES[actor].items() for event in events}


def test_every_event_of_every_lifecycle_is_somebodys_duty() -> None:
    assert EVENTS - {duty for actor in Actor for duty in of(actor)} == set()


def test_no_duty_names_an_event_that_is_not_there() -> None:
    assert {duty for actor in Actor for duty in of(actor)} - EVENTS == set()


def test_the_table_says_of_everybody_what_they_may_and_nothing_twice() -> None:
    assert list(DUTIES) == list(Actor)
    for duties in DUTIES.values():
        assert all(len(set(events)) == len(events) for events in duties.values())


def test_what_a_person_decides_nobody_else_may_cause() -> None:
    for kind, event in A_PERSONS_ALONE:
        assert [actor for actor in Actor if may(actor, kind, event)] == [Actor.PERSON], (kind, event)


def test_an_authors_run_may_write_a_note_and_nothing_else() -> None:
    assert of(Actor.AUTHOR) == {("note", "write")}


def test_a_reviewers_run_may_give_its_judgment_and_write_a_note_and_nothing_else() -> None:
    judgments = {("review", "approve"), ("review", "request_changes"), ("review", "reject")}
    assert of(Actor.REVIEWER) == {*judgments, ("note", "write")}
    for kind, event in judgments:
        assert [actor for actor in Actor if may(actor, kind, event)] == [Actor.REVIEWER]


def test_a_checks_run_may_nothing() -> None:
    assert of(Actor.CHECK) == set()


def test_the_heartbeat_begins_what_is_confirmed_or_asks() -> None:
    assert of(Actor.HEARTBEAT) == {("plan", "begin"), ("task", "begin"), ("task", "pause"), ("question", "ask")}
    assert [actor for actor in Actor if may(actor, "task", "begin")] == [Actor.HEARTBEAT]


def test_only_the_worker_says_what_its_runs_came_to_and_what_proves_a_commit() -> None:
    for kind, event in (("task", "cleared"), ("evidence", "record"), ("run", "finish"), ("run", "start")):
        assert [actor for actor in Actor if may(actor, kind, event)] == [Actor.WORKER]


def test_a_merge_is_the_forges_fact_or_the_workers_own() -> None:
    assert [actor for actor in Actor if may(actor, "task", "merged")] == [Actor.FORGE, Actor.WORKER]


@pytest.mark.parametrize("role", Role)
def test_a_run_speaks_as_what_its_role_is(role: Role) -> None:
    assert {Role.AUTHOR: Actor.AUTHOR, Role.REVIEWER: Actor.REVIEWER, Role.CHECK: Actor.CHECK}[role] is role.actor


@pytest.mark.parametrize(
    ("by", "kind", "event", "why"),
    [
        (Actor.PERSON, "plan", "confirm", ""),
        (Actor.AUTHOR, "plan", "confirm", "an author's run may not cause that; only a person may"),
        (Actor.AUTHOR, "task", "merged", "an author's run may not cause that; only the forge or a worker may"),
        (Actor.PERSON, "task", "vanish", "a person may not cause that; nobody may"),
        (Actor.PERSON, "ghost", "confirm", "a person may not cause that; nobody may"),
        ("mallory", "plan", "confirm", "'mallory', which is nobody, may not cause that; only a person may"),
    ],
)
def test_a_refusal_says_who_may(by: str, kind: str, event: str, why: str) -> None:
    assert why_not(by, kind, event) == why


# On their way from a workflow.


def a_move(event: str, by: Actor) -> Move:
    return Move("task", "demo-12345678-1", event, "key", "demo-12345678", "a test", NOW, {"round": 2}, by=by)


@pytest.mark.parametrize(("event", "by"), [("worked", Actor.WORKER), ("merged", Actor.FORGE)])
def test_a_move_arrives_as_it_was_sent(event: str, by: Actor) -> None:
    (sent,) = Moves.of([a_move(event, by)], 7).moves
    assert sent.arrived() == a_move(event, by)


@pytest.mark.parametrize(
    ("event", "by"), [("worked", Actor.WORKER), ("merged", Actor.WORKER), ("closed", Actor.FORGE), ("fail", "worker")]
)
def test_a_move_that_was_sent_before_moves_named_anybody_arrives_as_one_that_may(event: str, by: str) -> None:
    (sent,) = Moves.of([a_move(event, Actor.WORKER)], 7).moves
    assert replace(sent, by="").arrived().by == by


@pytest.mark.parametrize("said", ["person", "reviewer", "mallory"])
def test_a_tasks_workflow_speaks_for_nobody_but_worker_and_forge(said: str) -> None:
    (sent,) = Moves.of([a_move("approved", Actor.WORKER)], 7).moves
    assert replace(sent, by=said).arrived().by is Actor.WORKER
