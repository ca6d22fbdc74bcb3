"""The closing rule: a commit is proven when the graph holds everything that its plan asks for, for exactly that commit.

It is asked where facts change, by the move itself, so that no caller can say `proven` of what is not. It fails closed:
evidence counts where the run that it names bears it out, and its content is still what was seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from sqlalchemy import ColumnElement, Connection, select

from domain.agents import AGENTS
from domain.errors import Damaged, NotFound
from domain.lifecycle import Move
from domain.policy import PROVEN, UNPROVEN
from domain.provenance import Claim, Origin, Source, proving, why_void
from domain.review import Reviewer, ReviewEvent, ReviewState
from domain.run import EvidenceKind, Role
from domain.task import TaskEvent
from domain.vendors import vendor_of
from store import contents
from store.tables import evidence, plans, receipts, reviews, runs, tasks


def missing(connection: Connection, task_id: str, sha: str) -> tuple[str, ...]:
    """What is not there of the evidence that the task's plan asks for on this commit, a sentence each.

    Raises Unavailable where nobody can tell, as the disk with the evidence does not answer.
    """
    asked = select(plans.c.checks, plans.c.reviewers).select_from(tasks.join(plans, plans.c.id == tasks.c.plan_id))
    checks, reviewers = connection.execute(asked.where(tasks.c.id == task_id)).one()
    if not checks and not reviewers:
        return ("the plan names no checks and no reviewers, so nothing is proven",)
    passed = _borne_out(connection, Claim.PASSED, task_id, sha, evidence.c.exit_code == 0) if checks else {}
    approved = _borne_out(connection, Claim.APPROVED, task_id, sha, _APPROVED) if reviewers else {}
    return (
        *_lacking(checks, passed, "`{}` has not passed on " + sha[:12]),
        *_lacking(reviewers, approved, "{} has not approved " + sha[:12]),
    )


_APPROVED = (
    select(reviews.c.id)
    .where(
        reviews.c.run_id == evidence.c.run_id,
        reviews.c.task_id == evidence.c.task_id,
        reviews.c.commit_sha == evidence.c.commit_sha,
        reviews.c.reviewer == evidence.c.command,
        reviews.c.state == ReviewState.APPROVED,
    )
    .exists()
)
_ORIGIN = [runs.c[name] for name in Origin.__dataclass_fields__]
_SAID = [evidence.c[name].label(f"said_{name}") for name in Source.__dataclass_fields__]


def _lacking(asked: list[str], found: dict[str, str], sentence: str) -> Iterator[str]:
    """Of what is asked for, what has no evidence that counts; and why what there is does not."""
    for each in asked:
        if (why := found.get(each)) != "":
            yield sentence.format(each) + (f": {why}" if why else "")


def _borne_out(
    connection: Connection, claim: Claim, task_id: str, sha: str, holds: ColumnElement[bool]
) -> dict[str, str]:
    """By what was run why none of the evidence of it counts; empty where one does."""
    kind = proving(claim)
    query = (
        select(evidence.c.digest, *_SAID, *_ORIGIN)
        .select_from(evidence.outerjoin(runs, runs.c.id == evidence.c.run_id))
        .where(evidence.c.task_id == task_id, evidence.c.commit_sha == sha, evidence.c.kind == kind, holds)
        .order_by(evidence.c.receipt_seq)
    )
    found: dict[str, str] = {}
    for row in connection.execute(query).mappings().all():
        said = Source(**{name: row[f"said_{name}"] for name in Source.__dataclass_fields__})
        if found.get(said.command) != "":
            run = Origin(**{name: row[name] for name in Origin.__dataclass_fields__}) if row["id"] else None
            found[said.command] = why_void(kind, said, run) or _why_lost(connection, row["digest"])
    return found


def _why_lost(connection: Connection, name: str) -> str:
    """Why the content of this digest is no more what was seen; empty where it is."""
    try:
        contents.read(connection, name)
    except NotFound:
        return "what was seen of it is gone"
    except Damaged:
        return "what is kept of it is not what was seen"
    return ""


def why_unproven(connection: Connection, wish: Move) -> str:
    """Why a task's move may not say that a commit is proven; empty where it may, or does not say so."""
    sha = wish.facts.get("proven_sha", "")
    if wish.event == TaskEvent.MERGED and wish.facts.get("proof") == PROVEN:
        sha = connection.scalar(select(tasks.c.proven_sha).where(tasks.c.id == wish.subject)) or ""
        if not sha:
            return "no commit of it is proven"
    return "; ".join(missing(connection, wish.subject, sha)) if sha else ""


def as_borne_out(connection: Connection, wish: Move) -> Move:
    """The move as the graph bears it out: of what is not proven (any more) it says no such thing, and why.

    The caller holds the chain's lock. What the forge tells, and what a run came to, moves the task all the same.
    A repeat says what was said under its key, whatever has become of the evidence since.
    """
    if wish.kind != "task" or not (wish.facts.get("proven_sha") or wish.facts.get("proof") == PROVEN):
        return wish
    less = {name: none for name, none in (("proven_sha", ""), ("proof", UNPROVEN)) if name in wish.facts}
    made = select(receipts.c.facts).where(
        receipts.c.chain == wish.chain, receipts.c.key == wish.key, receipts.c.refused == ""
    )
    if (told := connection.scalar(made)) is not None:
        facts = json.loads(told)
        return replace(wish, facts={**wish.facts, **{name: facts[name] for name in less if name in facts}})
    why = why_unproven(connection, wish)
    return replace(wish, facts={**wish.facts, **less}, cause=f"{wish.cause}; unproven: {why}") if why else wish


def makers_of(connection: Connection, task_id: str) -> list[str]:
    """The makers of all models that worked on the task so far; of one that nobody can tell, an empty name."""
    query = select(runs.c.model).where(
        runs.c.task_id == task_id, runs.c.role == Role.AUTHOR, runs.c.runtime.in_(list(AGENTS))
    )
    return sorted({vendor_of(model) for model in connection.scalars(query)})


def why_no_approval(connection: Connection, wish: Move) -> str:
    """Why a review's move may not approve: what it says of its run and of who made what is not what the graph says."""
    if wish.event != ReviewEvent.APPROVE:
        return ""
    facts = wish.facts
    row = connection.execute(select(*_ORIGIN).where(runs.c.id == facts["run_id"])).mappings().one_or_none()
    run = Origin(**row) if row else None
    said = Source(
        task_id=facts["task_id"],
        run_id=facts["run_id"],
        epoch=run.epoch if run else 0,
        commit_sha=facts["commit_sha"],
        command=facts["reviewer"],
        exit_code=None,
        seen_by="the move",
    )
    if why := why_void(EvidenceKind.REVIEW, said, run):
        return why
    assert run is not None
    if facts["vendor"] != Reviewer(run.runtime, run.model).vendor:
        return f"{facts['vendor']} did not make {run.model}"
    makers = makers_of(connection, facts["task_id"])
    return (
        "" if sorted(facts["author_vendors"]) == makers else f"the task's authors are {', '.join(makers) or 'nobody'}'s"
    )
