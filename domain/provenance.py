"""What evidence is worth: which kinds prove what, which are only told, and what of its source has to be shown.

It fails closed. Evidence whose source cannot be shown is kept, and counts for nothing; and so is what an agent, or its
CLI, says of itself: that is told to people as unverified, and no proof, sum or ceiling has it in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from domain.review import Reviewer
from domain.run import EvidenceKind, Outcome, Role


class Standing(StrEnum):
    """Who answers for what a piece of evidence says."""

    SEEN = "seen"
    """A component of ours saw it happen, and its name is on it."""
    UNVERIFIED = "unverified"
    """An agent, or its CLI, says so of itself. Nobody of ours counted it or saw it."""


class Claim(StrEnum):
    """What a commit needs evidence of before it is called proven."""

    PASSED = "passed"
    APPROVED = "approved"


@dataclass(frozen=True)
class Worth:
    """What a kind of evidence is worth. `role` is the run's that it comes from, where it proves anything."""

    standing: Standing
    proves: Claim | None = None
    role: Role | None = None


WORTH: Mapping[EvidenceKind, Worth] = {
    EvidenceKind.CHECK: Worth(Standing.SEEN, Claim.PASSED, Role.CHECK),
    EvidenceKind.REVIEW: Worth(Standing.SEEN, Claim.APPROVED, Role.REVIEWER),
    EvidenceKind.CHANGES: Worth(Standing.SEEN),
    EvidenceKind.DIFF: Worth(Standing.SEEN),
    # That it crashed was seen; the words in it are its own.
    EvidenceKind.AGENT_CRASH: Worth(Standing.SEEN),
    EvidenceKind.WORKER_CRASH: Worth(Standing.SEEN),
    EvidenceKind.USAGE: Worth(Standing.UNVERIFIED),
}


def proving(claim: Claim) -> EvidenceKind:
    """The one kind of evidence that proves this."""
    (kind,) = (kind for kind, worth in WORTH.items() if worth.proves is claim)
    return kind


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a piece of evidence says of where it comes from."""

    task_id: str | None
    run_id: str | None
    epoch: int
    commit_sha: str
    command: str
    exit_code: int | None
    seen_by: str


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The run that a source names, as its own receipts have it."""

    id: str
    task_id: str
    role: str
    epoch: int
    start_sha: str
    command: str
    exit_code: int | None
    runtime: str
    model: str
    outcome: str


def why_void(kind: EvidenceKind, said: Source, run: Origin | None) -> str:
    """Why this evidence proves nothing, in a few words; empty where its run bears out all that it says.

    `run` is the one with the id that the source names, None where there is none.
    """
    worth = WORTH[kind]
    if worth.standing is not Standing.SEEN or worth.proves is None:
        return f"evidence of the kind {kind} proves nothing"
    if not said.seen_by:
        return "nobody says who saw it"
    if run is None or said.run_id != run.id:
        return "no run is known that it comes from"
    named = f"the run {run.id}"
    if run.task_id != said.task_id or run.role != worth.role:
        return f"{named} is no {worth.role} run of this task"
    if (run.epoch, run.start_sha) != (said.epoch, said.commit_sha):
        return f"{named} was of another epoch, or on another commit"
    if kind is EvidenceKind.CHECK and (run.command, run.exit_code) != (said.command, said.exit_code):
        return f"{named} ran another command, or ended otherwise"
    if kind is EvidenceKind.REVIEW and (str(Reviewer(run.runtime, run.model)), run.outcome) != (
        said.command,
        Outcome.DONE,
    ):
        return f"{named} was another reviewer's, or came to no end"
    return ""
