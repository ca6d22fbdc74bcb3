"""The closing rule: a commit is proven when the graph holds everything that its plan asks for, for exactly that commit.

It is asked where facts change, by the move itself, so that no caller can say `proven` of what is not.
"""

from __future__ import annotations

from sqlalchemy import Connection, select

from domain.lifecycle import Move
from domain.policy import PROVEN
from domain.review import ReviewState
from domain.run import EvidenceKind
from domain.task import TaskEvent
from store.tables import evidence, plans, reviews, tasks


def missing(connection: Connection, task_id: str, sha: str) -> tuple[str, ...]:
    """What is not there of the evidence that the task's plan asks for on this commit, a sentence each."""
    asked = select(plans.c.checks, plans.c.reviewers).select_from(tasks.join(plans, plans.c.id == tasks.c.plan_id))
    checks, reviewers = connection.execute(asked.where(tasks.c.id == task_id)).one()
    if not checks and not reviewers:
        return ("the plan names no checks and no reviewers, so nothing is proven",)
    passed = set(connection.scalars(_PASSED.where(evidence.c.task_id == task_id, evidence.c.commit_sha == sha)))
    approved = set(connection.scalars(_APPROVED.where(reviews.c.task_id == task_id, reviews.c.commit_sha == sha)))
    return (
        *(f"`{check}` has not passed on {sha[:12]}" for check in checks if check not in passed),
        *(f"{reviewer} has not approved {sha[:12]}" for reviewer in reviewers if reviewer not in approved),
    )


_PASSED = select(evidence.c.command).where(evidence.c.kind == EvidenceKind.CHECK, evidence.c.exit_code == 0)
_APPROVED = select(reviews.c.reviewer).where(reviews.c.state == ReviewState.APPROVED)


def why_unproven(connection: Connection, wish: Move) -> str:
    """Why a task's move may not say that a commit is proven; empty where it may, or does not say so."""
    sha = wish.facts.get("proven_sha", "")
    if wish.event == TaskEvent.MERGED and wish.facts.get("proof") == PROVEN:
        sha = connection.scalar(select(tasks.c.proven_sha).where(tasks.c.id == wish.subject)) or ""
        if not sha:
            return "no commit of it is proven"
    return "; ".join(missing(connection, wish.subject, sha)) if sha else ""
