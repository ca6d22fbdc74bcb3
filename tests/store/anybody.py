"""Whatever moves are made, in any order and by anybody: what `tests.store.holding` tells holds after each of them, and
both engines hold the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import select

from domain.duties import Actor, why_not
from domain.errors import KeyReused
from domain.plan import PlanEvent
from domain.projection import render
from domain.review import ReviewEvent
from domain.run import EvidenceKind, Role, RunEvent
from domain.task import QuestionEvent, TaskEvent
from store import tables
from store.audit import audit
from store.closing import as_borne_out, missing
from store.moves import move
from store.projections import projection_of
from tests.store.both import Both
from tests.store.holding import AGENTS, MAKERS, WATCHBILL_MERGED, broken

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
MODELS = st.sampled_from(sorted(MAKERS))
LIES = (
    "no run", "another epoch", "another commit", "another command", "another exit", "nobody saw it", "another task",
    "another kind", "a run that failed", "an author's run", "nothing at all",
)  # fmt: skip
"""What may be wrong with what is said of a check."""
FLAWS = (
    "the author's maker", "the author's maker, openly", "another model", "an author's run", "another commit", "no end",
    "no evidence", "lost",
)  # fmt: skip
"""What may be wrong with what is said of a review."""
WRONG = st.sampled_from([("", ""), *((lie, "") for lie in LIES), *(("", flaw) for flaw in FLAWS)])
SHAS = st.sampled_from(["a" * 40, "b" * 40])
OTHER = "d" * 40
VENDORS = st.sampled_from(["openai", "anthropic", ""])
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


class AnyMoves(Both, RuleBasedStateMachine):
    """Every example is a plan of its own in the same two stores."""

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

    @rule(ordinal=ORDINALS, model=MODELS, runtime=st.sampled_from(["claude", "opencode", "shell"]))
    def an_author_begins(self, ordinal: int, model: str = "claude-sonnet-4-6", runtime: str = "claude") -> None:
        self.begin(ordinal, "author", model=model, runtime=runtime)

    @rule(
        ordinal=ORDINALS, role=st.sampled_from(Role), number=st.integers(1, 3), event=st.sampled_from(RunEvent),
        exit_code=st.sampled_from([0, 1]), outcome=st.sampled_from(["done", "crashed"]),
    )  # fmt: skip
    def move_a_run(self, ordinal: int, role: Role, number: int, event: RunEvent, exit_code: int, outcome: str) -> None:
        facts = {} if event is RunEvent.START else {"exit_code": exit_code, "outcome": outcome}
        if event is not RunEvent.START:
            self.go(self.wish("run", f"{self.task(ordinal)}-{role}-{number}", event, facts))

    @rule(
        ordinal=ORDINALS, sha=SHAS, exit_code=st.sampled_from([0, 1]), command=st.sampled_from([CHECK, "true"]),
        lie=st.sampled_from(["", *LIES]),
    )  # fmt: skip
    def a_check_is_run(self, ordinal: int, sha: str, exit_code: int = 0, command: str = CHECK, lie: str = "") -> None:
        """A run of a check, its end, and what is said to have been seen of it; with a lie one thing of that is none."""
        self.go(self.task_wish(ordinal, TaskEvent.CONFIRM, {}))
        role = "author" if lie == "an author's run" else "check"
        run, epoch = self.begin(ordinal, role, sha=sha, command=command)
        ended = 1 if lie == "a run that failed" else exit_code
        self.go(self.wish("run", run, RunEvent.FINISH, {"exit_code": ended, "outcome": "done"}))
        said: dict[str, Any] = {
            "task_id": self.task(3 - ordinal if lie == "another task" else ordinal), "run_id": run, "epoch": epoch,
            "commit_sha": sha, "command": command, "exit_code": exit_code, "seen_by": "worker-1",
            "kind": EvidenceKind.AGENT_CRASH if lie == "another kind" else EvidenceKind.CHECK,
        }  # fmt: skip
        instead: dict[str, dict[str, Any]] = {
            "no run": {"run_id": None}, "another epoch": {"epoch": epoch + 1}, "another commit": {"commit_sha": OTHER},
            "another command": {"command": "make lint"}, "another exit": {"exit_code": 1 - exit_code},
            "nobody saw it": {"seen_by": ""},
        }  # fmt: skip
        said |= instead.get(lie, {})
        if lie != "nothing at all":
            self.see(f"{command} said {next(_numbers)}", **said)

    @rule(
        ordinal=ORDINALS, event=st.sampled_from(ReviewEvent), sha=SHAS, vendor=VENDORS,
        authors=st.lists(VENDORS, max_size=2, unique=True), model=MODELS,
    )  # fmt: skip
    def anybody_claims_a_review(
        self, ordinal: int, event: ReviewEvent, sha: str, vendor: str, authors: list[str], model: str
    ) -> None:
        """What a caller says of makers is its word; what the graph has of the run is not asked for by it."""
        self.go(self.task_wish(ordinal, TaskEvent.CONFIRM, {}))
        run, _ = self.begin(ordinal, "reviewer", sha=sha, model=model, runtime="codex")
        self.go(self.wish("run", run, RunEvent.FINISH, {"outcome": "done"}))
        facts = {"plan_id": self.plan, "task_id": self.task(ordinal), "run_id": run, "commit_sha": sha}
        claims = {"reviewer": REVIEWER, "vendor": vendor, "author_vendors": authors}
        self.go(self.wish("review", f"{run}-review", event, {**facts, **claims}))

    @rule(ordinal=ORDINALS, sha=SHAS, flaw=st.sampled_from(["", *FLAWS]))
    def a_review_is_given(self, ordinal: int, sha: str, flaw: str = "") -> None:
        """An approval with its run, its end and its evidence; with a flaw one thing of that is not as it has to be."""
        task = self.task(ordinal)
        self.go(self.task_wish(ordinal, TaskEvent.CONFIRM, {}))
        self.an_author_begins(ordinal, "gpt-5.5" if flaw.startswith("the author's maker") else "claude-sonnet-4-6")
        role = "author" if flaw == "an author's run" else "reviewer"
        model = "gemini-2.5-pro" if flaw == "another model" else "gpt-5.5"
        run, epoch = self.begin(
            ordinal, role, sha="d" * 40 if flaw == "another commit" else sha, model=model, runtime="codex"
        )
        if flaw != "no end":
            self.go(self.wish("run", run, RunEvent.FINISH, {"outcome": "done"}))
        facts = {
            "plan_id": self.plan, "task_id": task, "run_id": run, "commit_sha": sha, "reviewer": REVIEWER,
            "vendor": "openai", "author_vendors": sorted(self.makers(task, flaw)),
        }  # fmt: skip
        self.go(self.wish("review", f"{run}-review", ReviewEvent.APPROVE, facts))
        if flaw != "no evidence":
            name = self.see(
                f"approved {next(_numbers)}", task_id=task, run_id=run, epoch=epoch, commit_sha=sha, command=REVIEWER,
                seen_by="worker-1", kind=EvidenceKind.REVIEW,
            )  # fmt: skip
            if flaw == "lost":
                self.void.add(name)
                self.lose(name)

    @rule(ordinal=ORDINALS, sha=SHAS, proof=st.sampled_from(["proven", "unproven"]))
    def call_a_commit_proven(self, ordinal: int, sha: str, proof: str) -> None:
        self.go(self.task_wish(ordinal, TaskEvent.CLEARED, {"proven_sha": sha, "head_sha": sha}))
        self.go(self.task_wish(ordinal, TaskEvent.MERGED, {"proof": proof}))

    @rule(ordinal=ORDINALS, sha=SHAS, wrong=WRONG)
    def take_a_commit_as_far_as_it_goes(self, ordinal: int, sha: str, wrong: tuple[str, str]) -> None:
        self.take_a_commit_to_its_merge(ordinal, sha, *wrong)

    def take_a_commit_to_its_merge(self, ordinal: int, sha: str, lie: str = "", flaw: str = "") -> None:
        self.go(self.task_wish(ordinal, TaskEvent.CONFIRM, {}))
        self.go(*(self.task_wish(ordinal, event, {}) for event in (TaskEvent.BEGIN, TaskEvent.WORKED)))
        self.a_check_is_run(ordinal, sha, lie=lie)
        self.a_review_is_given(ordinal, sha, flaw)
        self.go(self.task_wish(ordinal, TaskEvent.CLEARED, {"proven_sha": sha, "head_sha": sha}))
        self.go(self.task_wish(ordinal, TaskEvent.CLEARED, {"head_sha": sha}))
        self.go(self.task_wish(ordinal, TaskEvent.PUBLISHED, {}))
        self.watchbill_merges(ordinal)
        if lie or flaw:
            # Whoever says so all the same.
            self.go(self.task_wish(ordinal, TaskEvent.MERGED, {"proof": "proven"}))

    @rule(ordinal=ORDINALS, sha=SHAS)
    def a_person_approves_a_commit(self, ordinal: int, sha: str) -> None:
        self.go(self.task_wish(ordinal, TaskEvent.RAISED, {"approved_sha": sha}))

    @rule(ordinal=ORDINALS)
    def watchbill_merges(self, ordinal: int) -> None:
        """As the activity that merges and what is judged of its answer do: asked of the graph, and moved by that."""
        task, wishes = self.task(ordinal), []
        for store in self.stores:
            with store.write() as connection:
                row = connection.execute(select(tables.tasks).where(tables.tasks.c.id == task)).one_or_none()
                if row is None or not row.head_sha or row.state == "merged":
                    return
                if row.head_sha != row.approved_sha and missing(connection, task, row.head_sha):
                    return
                proof = "proven" if row.head_sha == row.proven_sha else "unproven"
                wish = self.task_wish(ordinal, TaskEvent.MERGED, {"proof": proof}, WATCHBILL_MERGED)
                wishes.append(replace(as_borne_out(connection, wish), key=f"merged:{task}"))
        assert wishes[0] == wishes[1]
        self.go(wishes[0])

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
        task = self.task(ordinal)
        subject = {"plan": self.plan, "task": task}.get(kind, f"{task}-{kind}")
        moved = self.go(
            *(self.task_wish(ordinal, each, {}) for each in before), replace(self.wish(kind, subject, event), by=by)
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
        other = replace(wish, facts={**wish.facts, "reason": "not what was said"})
        if wish.kind in ("task", "plan") and self.was_made(wish.key):
            for store in self.stores:
                with pytest.raises(KeyReused), store.write() as connection:
                    move(connection, other)

    @invariant()
    def what_has_to_hold_holds_on_both_engines_alike(self) -> None:
        assert self.everything(self.stores[0]) == self.everything(self.stores[1])
        for store in self.stores:
            with store.read() as connection:
                assert broken(connection, self.plan, self.void) == []

    def teardown(self) -> None:
        shown = []
        self.find_again()
        for store in self.stores:
            with store.read() as connection:
                assert audit(connection, self.plan) == ()
                found = projection_of(connection, self.plan)
                shown.append(render(found) if found else "")
        assert shown[0] == shown[1]

    def makers(self, task: str, flaw: str) -> set[str]:
        """Who made the models that worked on the task; a caller who hides that says another."""
        ours = (tables.runs.c.task_id == task) & (tables.runs.c.role == "author") & tables.runs.c.runtime.in_(AGENTS)
        with self.stores[0].read() as connection:
            made = {MAKERS.get(model, "") for model in connection.scalars(select(tables.runs.c.model).where(ours))}
        return {"anthropic"} if flaw == "the author's maker" else made
