"""What a commit of ours changes, as evidence that a report and a later task can rest on."""

from __future__ import annotations

from domain.run import EvidenceKind, RunFacts
from forge.collect import Work
from store import evidence


def changes_of(run: RunFacts, work: Work, worker: str) -> evidence.Observation:
    """The paths by which a run's commit differs from its base, one a line; cut between two where they are too many."""
    lines = (path.replace("\n", "\\n") for path in work.changed)
    told = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
    room = told[: evidence.MAX_CONTENT]
    return evidence.Observation(
        plan_id=run.plan_id,
        task_id=run.task_id,
        run_id=run.id,
        epoch=run.epoch,
        kind=EvidenceKind.CHANGES,
        content=room[: room.rfind(b"\n") + 1],
        commit_sha=work.head_sha,
        truncated=len(told) > len(room),
        seen_by=worker,
    )
