"""What a task is told of those that it follows, and of the run before."""

from __future__ import annotations

from datetime import UTC, datetime

from domain.decision import Decision, DecisionKind
from domain.document import parse
from domain.identity import digest, plan_id, task_id
from domain.lifecycle import Move
from domain.publication import Publish, PublishTo
from domain.pull import Repository
from domain.run import EvidenceKind
from store import briefing, words
from store.database import Store
from store.decisions import decide
from store.evidence import Observation, record
from store.moves import move
from store.publication import publish
from tests.rightful import rightful

AT = datetime(2026, 3, 1, 22, 30, tzinfo=UTC)
PLAN = plan_id("ada", "three")
TEXT = """---
slug: three
repository: acme/shop
runtime: claude
---
## Tasks

- [x] Measure it
- [ ] Load it lazily
- [ ] Cache it  {after=1,2}
"""


def begun(store: Store) -> None:
    order = PublishTo(Publish("ada", TEXT, "acme/shop"), Repository("acme/shop", "main", ""), "main", AT)
    with store.write() as connection:
        publish(connection, order, parse(TEXT), 1)
    with store.write() as connection:
        decide(connection, Decision(DecisionKind.CONFIRM, PLAN, names=digest(TEXT), by="ada"), AT, 1)


def make(store: Store, kind: str, subject: str, event: str, **facts: object) -> None:
    with store.write() as connection:
        key, by = f"{subject}:{event}", rightful(kind, event)
        (moved,) = move(connection, Move(kind, subject, event, key, PLAN, "a test", AT, facts, by=by))
    assert not moved.refused


def see(store: Store, task: str, run: str, kind: EvidenceKind, what: bytes, sha: str) -> None:
    command, exit_code = ("make test", 0) if kind is EvidenceKind.CHECK else ("", None)
    seen = Observation(
        plan_id=PLAN, task_id=task, run_id=run, epoch=1, kind=kind, content=what, commit_sha=sha, command=command,
        exit_code=exit_code, seen_by="worker-1",
    )  # fmt: skip
    with store.write() as connection:
        move(connection, record(connection, seen, "a test", AT))


def test_a_task_is_told_what_its_predecessors_delivered(store: Store) -> None:
    begun(store)
    second, run = task_id(PLAN, 2), f"{task_id(PLAN, 2)}-author-1"
    make(store, "task", second, "begin")
    about = {"plan_id": PLAN, "task_id": second, "role": "author", "number": 1, "runtime": "claude", "epoch": 1}
    make(store, "run", run, "start", **about)
    speaker = words.Speaker("ada", PLAN, second, run, 1, "author")
    with store.write() as connection:
        body = {"result": {"summary": "It loads at its first use."}, "revision": 1, "brief": "d"}
        words.say(connection, speaker, words.WordKind.RESULT, body, AT)
    make(store, "run", run, "finish")
    see(store, second, run, EvidenceKind.CHANGES, b"src/old.py\n", "a" * 40)
    see(store, second, run, EvidenceKind.CHANGES, b"src/a.py\nsrc/b.py\n", "b" * 40)
    see(store, second, run, EvidenceKind.CHECK, b"2 passed", "b" * 40)
    see(store, second, run, EvidenceKind.CHECK, b"1 failed", "a" * 40)
    make(store, "task", second, "merged", proof="unproven", pull_url="https://forge/2", head_sha="b" * 40)

    with store.read() as connection:
        measured, loaded = briefing.delivered_to(connection, task_id(PLAN, 3))
        assert briefing.delivered_to(connection, second) == ()

    assert (measured.ordinal, measured.title, measured.state, measured.summary) == (1, "Measure it", "done", "")
    assert (loaded.ordinal, loaded.title, loaded.state, loaded.proof) == (2, "Load it lazily", "merged", "unproven")
    assert (loaded.pull_url, loaded.head_sha) == ("https://forge/2", "b" * 40)
    assert loaded.summary == "It loads at its first use."
    # Of the commit that it came to, and of no earlier one.
    assert loaded.files == ("src/a.py", "src/b.py")
    assert [(each.name, each.digest) for each in loaded.artifacts] == [
        ("2/changes", digest(b"src/a.py\nsrc/b.py\n")),
        ("2/check-1", digest(b"2 passed")),
    ]
    assert "`make test` said, which exited 0" in loaded.artifacts[1].about
    with store.read() as connection:
        assert briefing.artifacts_for(connection, task_id(PLAN, 3)) == loaded.artifacts
