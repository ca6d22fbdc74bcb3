"""Duties: who may cause which move. The store asks before every move, and the audit asks again of every receipt.

What is not here is nobody's. Kinds and events are written as the lifecycles write them; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Actor(StrEnum):
    """Who causes a move. Whoever carries it to the store says so from what it is, never from what it was told."""

    PERSON = "person"
    """Somebody at the command, the Temporal UI or a signed webhook: publishes, decides, edits."""
    FORGE = "forge"
    """Where work lands: what was done there, or is so there, and was read from it."""
    HEARTBEAT = "heartbeat"
    WORKER = "worker"
    """A worker that takes tasks through their steps, and looks after their runs."""
    AUTHOR = "author"
    """An author's run, by its capability: an agent, or whatever has come over it."""
    REVIEWER = "reviewer"
    """A reviewer's run, likewise."""
    CHECK = "check"
    """A check's run. It has no capability: the worker that ran it says how it exited."""
    RELAY = "relay"
    """What stands between agents and models, and keeps the money."""

    @property
    def who(self) -> str:
        """Who that is, as in a sentence."""
        return _WHO[self]


_WHO: Mapping[Actor, str] = {
    Actor.PERSON: "a person",
    Actor.FORGE: "the forge",
    Actor.HEARTBEAT: "the heartbeat",
    Actor.WORKER: "a worker",
    Actor.AUTHOR: "an author's run",
    Actor.REVIEWER: "a reviewer's run",
    Actor.CHECK: "a check's run",
    Actor.RELAY: "the relay",
}

DUTIES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    Actor.PERSON: {
        "plan": ("publish", "republish", "confirm", "revise", "pause", "resume", "raised", "reopen", "archive"),
        "revision": ("propose", "confirm", "withdraw"),
        "task": (
            "confirm", "approved", "raised", "revise", "pause", "retry", "cancel", "resume_pending", "resume_working",
            "resume_checking", "resume_reviewing", "resume_publishing", "resume_in_review",
        ),
        # A pause asks when to go on, and a revision of what waits asks anew.
        "question": ("ask", "answer", "withdraw"),
        "note": ("write", "replace", "remove"),
        "owner": ("open", "pause", "resume", "budget"),
    },
    Actor.FORGE: {
        "task": (
            "merged", "closed", "reopened", "head_moved", "branch_moved", "changes_requested", "ci_failed",
            "conflicted", "blocked",
        ),
        # What was closed lives again; what the task asked is settled by what was done there.
        "plan": ("reopen",),
        "question": ("withdraw",),
    },
    Actor.HEARTBEAT: {
        "plan": ("begin",),
        # It begins what is confirmed; where what comes before has failed, it asks instead.
        "task": ("begin", "pause"),
        "question": ("ask",),
    },
    Actor.WORKER: {
        "plan": ("complete",),
        # `merged` is what it merged itself, as the plan or a person allows; `blocked` what it has no proof to merge by.
        "task": (
            "worked", "nothing_changed", "checked", "cleared", "checks_failed", "changes_requested", "outdated",
            "work_lost", "published", "blocked", "merged", "pause", "fail",
        ),
        "question": ("ask", "withdraw"),
        "run": ("start", "spawn", "finish", "crash", "lose", "refuse", "stop", "collect", "worker_crashed"),
        "evidence": ("record",),
        # A review that counts for nothing: that is said of the reviewer, not by it.
        "review": ("void",),
        "reservation": ("expire",),
    },
    Actor.AUTHOR: {
        "note": ("write",),
    },
    Actor.REVIEWER: {
        "review": ("approve", "request_changes", "reject"),
        "note": ("write",),
    },
    Actor.CHECK: {},
    Actor.RELAY: {
        # These leave no receipts: they are proven by their sums.
        "reservation": ("hold", "renew", "settle", "release"),
    },
}  # fmt: skip
"""For each actor, by kind of thing, the events that it may cause."""


def why_not(by: str, kind: str, event: str) -> str:
    """Why it is not for this actor to cause this event, saying who may; empty where it may."""
    if may(by, kind, event):
        return ""
    who = Actor(by).who if by in DUTIES else f"{by!r}, which is nobody,"
    others = [actor.who for actor in Actor if may(actor, kind, event)]
    return f"{who} may not cause that; " + (f"only {' or '.join(others)} may" if others else "nobody may")


def may(by: str, kind: str, event: str) -> bool:
    """Whether the event is among this actor's duties. Nobody's are those of an actor that is not there."""
    return event in DUTIES.get(by, {}).get(kind, ())
