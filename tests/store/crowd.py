"""Plans of any size, made by real moves and a real ledger: what reading has to be quick at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from sqlalchemy import Connection

from domain.decision import Decision, DecisionKind
from domain.document import parse
from domain.identity import digest, plan_id, run_id, task_id
from domain.lifecycle import Move
from domain.publication import Publish, PublishTo
from domain.pull import Repository
from domain.review import Reviewer
from domain.run import EvidenceKind
from store.database import Store
from store.evidence import Observation, record
from store.ledger import Ask, Spent, enter
from store.moves import move
from store.plans import load_plan
from store.publication import confirm, publish
from store.reviews import Ending, give
from store.tasks import load_run
from store.words import Speaker, WordKind, say
from tests.rightful import rightful

AT = datetime(2026, 3, 1, 20, 0, tzinfo=UTC)
MODELS = ("claude-sonnet-4-6", "gpt-5.5")
REVIEWER = Reviewer("opencode", "gemini-2.5-pro")
PRICE = "p1"
HOUR = timedelta(hours=1)

_calls = count(1)


def done(connection: Connection, *moves: Move) -> None:
    """Make these moves, of which none may be refused."""
    assert not [receipt.refused for receipt in move(connection, *moves) if receipt.refused]


@dataclass(frozen=True)
class Crowd:
    """A plan whose every box is worked on `rounds` times, each with a run of its author and one of a check.

    The last box waits for an answer, the one before failed, and the one before that was merged without proof; all
    others are merged with proof. Of three boxes or more there is one of each.

    Where it is `reviewed`, another maker's model judges the last round's commits: it asks for changes of the box that
    failed, and approves all others.
    """

    slug: str = "crowd"
    owner: str = "ada"
    tasks: int = 6
    rounds: int = 2
    begins: datetime = AT
    asks: str = "Which `name`?"
    fails: str = "It could not be done."
    reviewed: bool = False
    finds: str = "It says nothing of `why`."

    @property
    def plan(self) -> str:
        return plan_id(self.owner, self.slug)

    @property
    def text(self) -> str:
        front = {"title": f"A crowd of {self.tasks}", "slug": self.slug, "repository": "acme/shop"}
        front |= {"runtime": "claude", "model": MODELS[0], "checks": '["make test"]', "budget": "12.00 USD"}
        front |= {"reviewers": f"[{REVIEWER}]"} if self.reviewed else {}
        head = "\n".join(f"{key}: {value}" for key, value in front.items())
        boxes = (f"- [ ] Do thing {each}\n\n  In **full**.\n" for each in self.ordinals)
        return f"---\n{head}\n---\nWhy we do *this*.\n\n## Tasks\n\n{''.join(boxes)}\n## Afterwards\n\nWe rest.\n"

    @property
    def ordinals(self) -> Iterable[int]:
        return range(1, self.tasks + 1)

    def task(self, ordinal: int) -> str:
        return task_id(self.plan, ordinal)

    def model(self, ordinal: int) -> str:
        return MODELS[ordinal % len(MODELS)]

    def sha(self, ordinal: int, number: int) -> str:
        return digest(f"{ordinal}, {number}")[:40]

    def make(self, store: Store) -> Crowd:
        """Make all of it. A round takes an hour."""
        self._publish(store)
        for number in range(1, self.rounds + 1):
            at = self.begins + HOUR * number
            self._work(store, number, at)
            self._check(store, number, at + HOUR / 2, last=number == self.rounds)
        if self.reviewed:
            self._review(store, self.begins + HOUR * self.rounds + HOUR * 3 / 4)
        self._land(store, self.begins + HOUR * (self.rounds + 1))
        return self

    def _publish(self, store: Store) -> None:
        order = PublishTo(
            Publish(self.owner, self.text, "acme/shop", by="ada"),
            Repository("acme/shop", "main", ""),
            "main",
            self.begins,
        )
        with store.write() as connection:
            publish(connection, order, parse(self.text), 0)
        with store.write() as connection:
            plan = load_plan(connection, self.plan)
            decision = Decision(DecisionKind.CONFIRM, self.plan, names=plan.digest, by="ada")
            confirm(connection, decision, plan, self.begins, 0)
            done(connection, self._move("plan", self.plan, "begin", self.begins))

    def _work(self, store: Store, number: int, at: datetime) -> None:
        """An author's run of every task, with one call of its model, and its word of the work."""
        begun = [self._move("task", self.task(each), "begin", at) for each in self.ordinals] if number == 1 else []
        runs = [self._run(each, "author", number, at, self.model(each)) for each in self.ordinals]
        with store.write() as connection:
            done(connection, *begun, *runs)
        asks = [self._ask(each, "author", number, 2 * number - 1, self.model(each), at) for each in self.ordinals]
        with store.write() as connection:
            enter(connection, asks)
        with store.write() as connection:
            enter(connection, [self._spent(ask, each, at) for each, ask in enumerate(asks, 1)])
        with store.write() as connection:
            for each in self.ordinals:
                result = {"summary": f"Thing {each} is done."}
                body = {"result": result, "revision": 1, "brief": ""}
                say(connection, self._speaker(each, number), WordKind.RESULT, body, at)
        took = timedelta(minutes=20)
        ended = [
            self._end(each, "author", number, at + took, {"outcome": "done", "head_sha": self.sha(each, number)})
            for each in self.ordinals
        ]
        worked = [
            self._move("task", self.task(each), "worked", at + took, {"head_sha": self.sha(each, number)})
            for each in self.ordinals
        ]
        with store.write() as connection:
            done(connection, *ended, *worked)

    def _check(self, store: Store, number: int, at: datetime, *, last: bool) -> None:
        runs = [self._run(each, "check", number, at) for each in self.ordinals]
        code = 0 if last else 1
        ended = [self._end(each, "check", number, at + HOUR / 4, {"exit_code": code}) for each in self.ordinals]
        after = "checked" if self.reviewed else ""
        failed = {"note": "make test exited with 1"}
        with store.write() as connection:
            done(connection, *runs)
            seen = [record(connection, self._seen(each, number, code), "seen", at) for each in self.ordinals]
            done(connection, *ended, *seen)
            for each in self.ordinals if after or not last else ():
                event, facts = (after, {}) if last else ("checks_failed", failed)
                done(connection, self._move("task", self.task(each), event, at + HOUR / 4, facts))

    def _review(self, store: Store, at: datetime) -> None:
        """A reviewer's run on the last commit of every task, with one call of its model, and its judgment."""
        epoch, took = 2 * self.rounds + 1, timedelta(minutes=5)
        for each in self.ordinals:
            ask = self._ask(each, "reviewer", 1, epoch, REVIEWER.model, at)
            fails = self.tasks >= 3 and each == self.tasks - 1
            finding = {"path": "a.py", "line": 3, "text": self.finds}
            result = {
                "verdict": "request_changes" if fails else "approve",
                "summary": f"I looked at {each}.",
                "findings": [finding] if fails else [],
            }
            run = run_id(self.task(each), "reviewer", 1)
            with store.write() as connection:
                done(connection, self._run(each, "reviewer", 1, at, REVIEWER.model))
                enter(connection, [ask])
            with store.write() as connection:
                enter(connection, [self._spent(ask, each, at)])
                body = {"result": result, "revision": 1, "brief": ""}
                say(connection, self._speaker(each, 1, "reviewer", epoch), WordKind.RESULT, body, at)
                done(connection, self._end(each, "reviewer", 1, at + took, {"outcome": "done"}))
            with store.write() as connection:
                give(connection, Ending(load_run(connection, run), "", "a test", at + took), 0)

    def _land(self, store: Store, at: datetime) -> None:
        # In groups: whether a merge is proven is looked up, and what a group itself says counts for nothing.
        groups: list[list[Move]] = []
        for ordinal in self.ordinals:
            task, last = self.task(ordinal), self.sha(ordinal, self.rounds)
            pull = {"pull_number": ordinal, "pull_url": f"https://forge.example/acme/shop/pull/{ordinal}"}
            left = self.tasks - ordinal if self.tasks >= 3 else 9
            if left == 0:
                question = {"plan_id": self.plan, "task_id": task, "kind": "agent_asks", "text": self.asks}
                paused = self._move("task", task, "pause", at, {"question_id": f"{task}-q1"})
                asked = self._move("question", f"{task}-q1", "ask", at, {**question, "resume_at": "working"})
                groups.append([paused, asked])
            elif left == 1:
                groups.append([self._move("task", task, "fail", at, {"reason": self.fails})])
            else:
                merged = {"merged_sha": last, "proof": "unproven" if left == 2 else "proven"}
                cleared = self._move("task", task, "cleared", at, {"proven_sha": last})
                published = self._move("task", task, "published", at, {**pull, "pushed_sha": last})
                groups += [[cleared, published], [self._move("task", task, "merged", at, merged)]]
        with store.write() as connection:
            for group in groups:
                done(connection, *group)

    def _run(self, ordinal: int, role: str, number: int, at: datetime, model: str = "") -> Move:
        facts = {
            "plan_id": self.plan, "task_id": self.task(ordinal), "role": role, "number": number, "model": model,
            "runtime": {"author": "claude", "reviewer": REVIEWER.runtime}.get(role, "shell"),
            "epoch": 2 * self.rounds + 1 if role == "reviewer" else 2 * number - (role == "author"),
            "start_sha": {"reviewer": self.sha(ordinal, self.rounds), "check": self.sha(ordinal, number)}.get(role, ""),
            "command": "make test" if role == "check" else "",
        }  # fmt: skip
        return self._move("run", run_id(self.task(ordinal), role, number), "start", at, facts)

    def _end(self, ordinal: int, role: str, number: int, at: datetime, facts: Mapping[str, Any]) -> Move:
        return self._move("run", run_id(self.task(ordinal), role, number), "finish", at, facts)

    def _ask(self, ordinal: int, role: str, number: int, epoch: int, model: str, at: datetime) -> Ask:
        return Ask(
            id=f"{next(_calls):032x}", owner=self.owner, plan=self.plan, task=self.task(ordinal),
            run=run_id(self.task(ordinal), role, number), epoch=epoch, run_cap_nano_usd=0, model=model,
            endpoint="anthropic.messages", least=1, most=2_000_000, price=PRICE, at=at,
            lease_until=at + HOUR,
        )  # fmt: skip

    def _spent(self, ask: Ask, ordinal: int, at: datetime) -> Spent:
        tokens = {"input": 1000 + ordinal, "cache_read": 500, "output": 70}
        return Spent(ask.id, 1_000_000 + ordinal, tokens, PRICE, at, "whole", 200, f"req_{ask.id}")

    def _speaker(self, ordinal: int, number: int, role: str = "author", epoch: int = 0) -> Speaker:
        task = self.task(ordinal)
        return Speaker(self.owner, self.plan, task, run_id(task, role, number), epoch or 2 * number - 1, role)

    def _seen(self, ordinal: int, number: int, code: int) -> Observation:
        return Observation(
            plan_id=self.plan, task_id=self.task(ordinal), run_id=run_id(self.task(ordinal), "check", number),
            epoch=2 * number, kind=EvidenceKind.CHECK, content=b"ok", commit_sha=self.sha(ordinal, number),
            command="make test", exit_code=code, seen_by="a test",
        )  # fmt: skip

    def _move(self, kind: str, subject: str, event: str, at: datetime, facts: Mapping[str, Any] | None = None) -> Move:
        key = f"{event}:{subject}:{at.isoformat()}"
        return Move(kind, subject, event, key, self.plan, "a test", at, facts or {}, by=rightful(kind, event))
