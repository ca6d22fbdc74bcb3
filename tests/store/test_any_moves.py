"""Whatever moves are made: the rows are the fold of their receipts, and both engines hold the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from sqlalchemy import select

from domain.duties import DUTIES, Actor, why_not
from domain.errors import KeyReused
from domain.identity import plan_id
from domain.lifecycle import Move, Moved
from domain.plan import PlanEvent
from domain.review import ReviewEvent
from domain.run import EvidenceKind, RunEvent
from domain.task import QuestionEvent, TaskEvent
from store import tables
from store.audit import audit
from store.closing import missing
from store.database import Store, open_store
from store.evidence import Observation, record
from store.moves import move
from tests.rightful import rightful

START = datetime(2026, 3, 1, tzinfo=UTC)
ORDINALS = st.integers(1, 2)
FACTS = st.fixed_dictionaries(
    {},
    optional={
        "round": st.integers(1, 3),
        "note": st.text(max_size=5) | st.just("\0\ud800"),
        "pull_number": st.none() | st.integers(1, 9),
        "after": st.lists(ORDINALS, max_size=2),
        "budget_nano_usd": st.none() | st.integers(0, 2**62),
        "fresh_start": st.booleans(),
    },
)
CHECK, REVIEWER = "make test", "codex:gpt-5.5"
SHAS = st.sampled_from(["a" * 40, "b" * 40])
MAKERS = st.sampled_from(["openai", "anthropic", ""])
EVENTS = st.sampled_from(
    [
        *(("task", str(event)) for event in TaskEvent),
        *(("plan", str(event)) for event in PlanEvent),
        *(("question", str(event)) for event in QuestionEvent),
        *(("review", str(event)) for event in ReviewEvent),
        *(("run", str(event)) for event in RunEvent),
        ("evidence", "record"),
        ("note", "remove"),
    ]
)
_numbers = count(1)


class AnyMoves(RuleBasedStateMachine):
    """Every example is a plan of its own in the same two stores."""

    def __init__(self, *stores: Store) -> None:
        super().__init__()
        self.stores = stores
        self.slug = f"plan-{next(_numbers)}"
        self.plan = plan_id("ada", self.slug)
        self.said: list[tuple[Move, ...]] = []

    @initialize()
    def publish_and_confirm(self) -> None:
        facts: dict[str, Any] = {"owner": "ada", "slug": self.slug, "title": "T", "repository": "a/b"}
        facts |= {"merge": "by-hand", "checks": [CHECK], "reviewers": [REVIEWER]}
        self.go(self.wish("plan", self.plan, PlanEvent.PUBLISH, facts))
        self.go(self.wish("plan", self.plan, PlanEvent.CONFIRM))

    @rule(ordinal=ORDINALS, event=st.sampled_from(TaskEvent), facts=FACTS)
    def move_a_task(self, ordinal: int, event: TaskEvent, facts: Mapping[str, Any]) -> None:
        self.go(self.task_wish(ordinal, event, facts))

    @rule(ordinal=ORDINALS, events=st.lists(st.sampled_from(TaskEvent), min_size=1, max_size=4), facts=FACTS)
    def move_a_task_along(self, ordinal: int, events: list[TaskEvent], facts: Mapping[str, Any]) -> None:
        self.go(*(self.task_wish(ordinal, event, facts) for event in events))

    @rule(ordinal=ORDINALS)
    def work(self, ordinal: int) -> None:
        self.go(self.task_wish(ordinal, TaskEvent.CONFIRM, {}))
        steps = (TaskEvent.BEGIN, TaskEvent.WORKED, TaskEvent.CLEARED, TaskEvent.PUBLISHED)
        self.go(*(self.task_wish(ordinal, event, {}) for event in steps))

    @rule(ordinal=ORDINALS, sha=SHAS, exit_code=st.sampled_from([0, 1]), command=st.sampled_from([CHECK, "true"]))
    def record_a_check(self, ordinal: int, sha: str, exit_code: int, command: str) -> None:
        for store in self.stores:
            with store.write() as connection:
                seen = Observation(
                    plan_id=self.plan, task_id=f"{self.plan}-{ordinal}", kind=EvidenceKind.CHECK, content=b"said",
                    commit_sha=sha, command=command, exit_code=exit_code,
                )  # fmt: skip
                if connection.scalar(select(tables.tasks.c.id).where(tables.tasks.c.id == seen.task_id)):
                    move(connection, record(connection, seen, "a test", START))

    @rule(
        ordinal=ORDINALS, number=st.integers(1, 3), event=st.sampled_from(ReviewEvent), sha=SHAS, vendor=MAKERS,
        authors=st.lists(MAKERS, max_size=2, unique=True),
    )  # fmt: skip
    def give_a_review(
        self, ordinal: int, number: int, event: ReviewEvent, sha: str, vendor: str, authors: list[str]
    ) -> None:
        task = f"{self.plan}-{ordinal}"
        self.go(self.task_wish(ordinal, TaskEvent.CONFIRM, {}))
        self.go(self.run_wish(ordinal, "reviewer", number))
        facts = {
            "plan_id": self.plan, "task_id": task, "run_id": f"{task}-reviewer-{number}", "commit_sha": sha,
            "reviewer": REVIEWER, "vendor": vendor, "author_vendors": authors,
        }  # fmt: skip
        self.go(self.wish("review", f"{task}-reviewer-{number}-review", event, facts))

    @rule(ordinal=ORDINALS, sha=SHAS, proof=st.sampled_from(["proven", "unproven"]))
    def call_a_commit_proven(self, ordinal: int, sha: str, proof: str) -> None:
        self.go(self.task_wish(ordinal, TaskEvent.CLEARED, {"proven_sha": sha, "head_sha": sha}))
        self.go(self.task_wish(ordinal, TaskEvent.MERGED, {"proof": proof}))

    @rule(ordinal=ORDINALS, sha=SHAS, checked=st.booleans(), reviewed=st.booleans())
    def take_a_commit_to_its_merge(self, ordinal: int, sha: str, checked: bool, reviewed: bool) -> None:
        self.go(self.task_wish(ordinal, TaskEvent.CONFIRM, {}))
        self.go(*(self.task_wish(ordinal, event, {}) for event in (TaskEvent.BEGIN, TaskEvent.WORKED)))
        if checked:
            self.record_a_check(ordinal, sha, 0, CHECK)
        if reviewed:
            self.give_a_review(ordinal, 1, ReviewEvent.APPROVE, sha, "openai", ["anthropic"])
        self.call_a_commit_proven(ordinal, sha, "proven")

    @rule(event=st.sampled_from(PlanEvent), paused=st.booleans())
    def move_the_plan(self, event: PlanEvent, paused: bool) -> None:
        if event is not PlanEvent.PUBLISH:
            self.go(self.wish("plan", self.plan, event, {"paused": paused}))

    @rule(ordinal=ORDINALS, event=st.sampled_from(QuestionEvent))
    def move_a_question_with_its_task(self, ordinal: int, event: QuestionEvent) -> None:
        task = f"{self.plan}-{ordinal}"
        asked = {
            "plan_id": self.plan,
            "task_id": task,
            "kind": "no_progress",
            "text": "?",
            "resume_at": "working",
        }
        question = self.wish("question", f"{task}-q1", event, asked if event is QuestionEvent.ASK else {})
        if event is QuestionEvent.ASK:
            self.go(self.task_wish(ordinal, TaskEvent.PAUSE, {"question_id": f"{task}-q1"}), question)
        else:
            self.go(question)

    @rule(
        ordinal=ORDINALS,
        what=EVENTS,
        by=st.sampled_from(Actor),
        before=st.lists(st.sampled_from(TaskEvent), max_size=2),
    )
    def overreach(self, ordinal: int, what: tuple[str, str], by: Actor, before: list[TaskEvent]) -> None:
        """Somebody wants what is none of their duties, maybe behind moves that are in order."""
        kind, event = what
        if not (why := why_not(by, kind, event)):
            return
        subject = {"plan": self.plan, "task": f"{self.plan}-{ordinal}"}.get(kind, f"{self.plan}-{ordinal}-{kind}")
        moved = self.go(
            *(self.task_wish(ordinal, event, {}) for event in before), replace(self.wish(kind, subject, event), by=by)
        )
        assert len(moved) == 1
        assert moved[0].refused
        # What comes before it in its group may be refused first.
        if not before:
            assert why in moved[0].refused
            assert (moved[0].receipt.actor, moved[0].receipt.before) == (by, moved[0].receipt.after)

    @rule(which=st.integers(0, 10**6), by=st.sampled_from(Actor))
    def say_as_somebody_else_what_was_said_before(self, which: int, by: Actor) -> None:
        wishes = [replace(wish, by=by) for wish in self.said[which % len(self.said)]]
        moved = self.go(*wishes)
        if any(why_not(by, wish.kind, wish.event) for wish in wishes):
            assert moved[-1].refused

    @rule(which=st.integers(0, 10**6), later=st.integers(1, 10**6))
    def say_again_what_was_said_before(self, which: int, later: int) -> None:
        wishes = self.said[which % len(self.said)]
        before = self.everything(self.stores[0])
        answers = self.go(*(replace(wish, at=wish.at + timedelta(seconds=later)) for wish in wishes))
        if not any(answer.fresh for answer in answers):
            assert self.everything(self.stores[0]) == before

    @rule(which=st.integers(0, 10**6))
    def use_a_key_again_for_something_else(self, which: int) -> None:
        wish = self.said[which % len(self.said)][0]
        other = Move(**{**vars(wish), "facts": {**wish.facts, "reason": "not what was said"}})
        if wish.kind in ("task", "plan") and self.was_made(wish.key):
            for store in self.stores:
                with pytest.raises(KeyReused), store.write() as connection:
                    move(connection, other)

    def teardown(self) -> None:
        assert self.everything(self.stores[0]) == self.everything(self.stores[1])
        for store in self.stores:
            with store.read() as connection:
                assert audit(connection, self.plan) == ()
                made = select(tables.receipts).where(tables.receipts.c.chain == self.plan)
                for receipt in connection.execute(made.where(tables.receipts.c.refused == "")):
                    assert receipt.event in DUTIES[receipt.actor][receipt.kind]
                for task in connection.execute(select(tables.tasks).where(tables.tasks.c.plan_id == self.plan)):
                    assert not task.proven_sha or missing(connection, task.id, task.proven_sha) == ()
                    assert task.proof != "proven" or task.proven_sha
                given = select(tables.reviews).where(tables.reviews.c.plan_id == self.plan)
                for review in connection.execute(given.where(tables.reviews.c.state == "approved")):
                    assert review.vendor
                    assert not {review.vendor, ""} & set(review.author_vendors)

    def run_wish(self, ordinal: int, role: str, number: int) -> Move:
        task = f"{self.plan}-{ordinal}"
        facts = {
            "plan_id": self.plan, "task_id": task, "role": role, "number": number, "runtime": "shell",
            "epoch": number,
        }  # fmt: skip
        return Move(
            "run", f"{task}-{role}-{number}", "start", f"start:{task}-{role}-{number}", self.plan, "t", START, facts,
            by=Actor.WORKER,
        )  # fmt: skip

    def task_wish(self, ordinal: int, event: TaskEvent, facts: Mapping[str, Any]) -> Move:
        born = {"plan_id": self.plan, "owner": "ada", "ordinal": ordinal, "title": "T", "runtime": "shell"}
        task = f"{self.plan}-{ordinal}"
        return self.wish("task", task, event, {**born, **facts} if event is TaskEvent.CONFIRM else facts)

    def wish(self, kind: str, subject: str, event: str, facts: Mapping[str, Any] | None = None) -> Move:
        at = START + timedelta(seconds=len(self.said))
        key = f"{event}:{subject}:{len(self.said)}:{next(_numbers)}"
        return Move(kind, subject, event, key, self.plan, "a test", at, facts or {}, by=rightful(kind, event))

    def go(self, *wishes: Move) -> tuple[Moved, ...]:
        """Make the moves on every engine: all answer alike."""
        self.said.append(wishes)
        answers = []
        for store in self.stores:
            with store.write() as connection:
                answers.append(move(connection, *wishes))
        assert answers[0] == answers[1]
        return answers[0]

    def was_made(self, key: str) -> bool:
        made = select(tables.receipts.c.seq).where(
            tables.receipts.c.chain == self.plan,
            tables.receipts.c.key == key,
            tables.receipts.c.refused == "",
        )
        with self.stores[0].read() as connection:
            return connection.scalar(made) is not None

    def everything(self, store: Store) -> list[Any]:
        """The plan's rows, receipts and head as they are kept."""
        homes = {
            tables.plans: tables.plans.c.id,
            tables.tasks: tables.tasks.c.plan_id,
            tables.questions: tables.questions.c.plan_id,
            tables.reviews: tables.reviews.c.plan_id,
            tables.evidence: tables.evidence.c.plan_id,
            tables.receipts: tables.receipts.c.chain,
            tables.chains: tables.chains.c.chain,
        }
        with store.read() as connection:
            return [
                [
                    tuple(row)
                    for row in connection.execute(select(table).where(home == self.plan).order_by(*table.primary_key))
                ]
                for table, home in homes.items()
            ]


@pytest.fixture
def both_engines(sqlite_url: str, postgres_url: str) -> Iterator[tuple[Store, Store]]:
    stores = open_store(sqlite_url), open_store(postgres_url)
    yield stores
    for store in stores:
        store.close()


def test_rows_are_the_fold_of_receipts_and_both_engines_agree(both_engines: tuple[Store, Store]) -> None:
    run_state_machine_as_test(
        lambda: AnyMoves(*both_engines),
        settings=settings(
            max_examples=8,
            stateful_step_count=10,
            database=None,
            # Explaining would trace every line of every example: ten times as slow.
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )
