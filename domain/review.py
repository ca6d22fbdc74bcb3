"""A review: the judgment of a model of another maker on one commit, given once and never changed.

A reviewer sees a checkout of exactly that commit, which it cannot change, and answers against a schema. What it
answers moves nothing by itself: it becomes a review in the graph, with the facts that make it count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from domain.agents import AGENTS, model_of
from domain.attributes import word
from domain.lifecycle import Lifecycle, table
from domain.vendors import vendor_of


class Verdict(StrEnum):
    """What a reviewer answers."""

    APPROVE = "approve"
    REQUEST_CHANGES = "request_changes"
    REJECT = "reject"
    """What was done should not be done at all: no round of changes would mend it."""


class ReviewState(StrEnum):
    APPROVED = "approved"
    CHANGES_REQUESTED = "changes_requested"
    REJECTED = "rejected"
    VOID = "void"
    """It counts for nothing: the reviewer changed what it was to judge, or gave no verdict."""


class ReviewEvent(StrEnum):
    APPROVE = "approve"
    REQUEST_CHANGES = "request_changes"
    REJECT = "reject"
    VOID = "void"


def _independent(facts: Mapping[str, Any]) -> str:
    """Why a review of these makers is none; empty where it is one."""
    maker, authors = facts.get("vendor", ""), facts.get("author_vendors", ())
    if not maker:
        return "nobody can tell who made the reviewer's model"
    if "" in authors:
        return "nobody can tell who made the author's model"
    return f"the reviewer's model and the author's are both {maker}'s" if maker in authors else ""


S, E = ReviewState, ReviewEvent

REVIEW = Lifecycle(
    "review",
    table(
        (None, E.APPROVE, S.APPROVED),
        (None, E.REQUEST_CHANGES, S.CHANGES_REQUESTED),
        (None, E.REJECT, S.REJECTED),
        (None, E.VOID, S.VOID),
    ),
    ended=frozenset(S),
    conditions={E.APPROVE: _independent},
)

EVENT_OF: Mapping[Verdict, ReviewEvent] = {
    Verdict.APPROVE: E.APPROVE,
    Verdict.REQUEST_CHANGES: E.REQUEST_CHANGES,
    Verdict.REJECT: E.REJECT,
}


@dataclass(frozen=True)
class Reviewer:
    """Who reviews: an agent CLI and the model that it uses. Written as `codex:gpt-5.5`."""

    runtime: str
    model: str

    @property
    def vendor(self) -> str:
        return vendor_of(self.model)

    def __str__(self) -> str:
        return f"{self.runtime}:{self.model}"


def reviewer_of(text: str) -> Reviewer:
    """`codex`, or `codex:gpt-5.5`, as a plan has it. ValueError, saying what is wrong, for anything else."""
    runtime, _, named = word(text).partition(":")
    if runtime not in AGENTS:
        raise ValueError(f"{runtime!r} is no agent that could review; there are {', '.join(AGENTS)}")
    model = model_of(runtime, named)
    if not model:
        raise ValueError(f"{runtime} has no model of its own; name one, as in {runtime}:gpt-5.5")
    found = Reviewer(runtime, model)
    if not found.vendor:
        raise ValueError(
            f"nobody can tell who made {model!r}, and a reviewer's maker has to be another than the author's"
        )
    return found


def why_not_independent(reviewer: Reviewer, runtime: str, model: str) -> str:
    """Why this reviewer cannot judge what that runtime and model make; empty where it can.

    A script has no maker: whoever wrote the plan wrote it, so every reviewer is another.
    """
    if runtime not in AGENTS:
        return ""
    author = vendor_of(model)
    if not author:
        return f"nobody can tell who made {model!r}, so nobody can tell whether {reviewer} is of another maker"
    if author == reviewer.vendor:
        return f"{reviewer} is {author}'s like the author's {model}; name a reviewer of another maker"
    return ""


VERDICT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": ["verdict", "summary", "findings"],
    "properties": {
        "verdict": {
            "type": "string",
            "enum": [str(verdict) for verdict in Verdict],
            "description": "approve: it may be merged as it is. request_changes: it may once the findings are mended. "
            "reject: it should not be done at all, or not like this.",
        },
        "summary": {
            "type": "string",
            "minLength": 1,
            "maxLength": 4000,
            "description": "Your judgment in a few sentences, for whoever decides on the merge.",
        },
        "findings": {
            "type": "array",
            "maxItems": 50,
            "description": "What has to change, each where it stands; empty where you approve.",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["path", "line", "text"],
                "properties": {
                    "path": {
                        "type": "string",
                        "maxLength": 400,
                        "description": "The file, from the root of the repository; empty for none in particular.",
                    },
                    "line": {"type": "integer", "minimum": 0, "description": "The line; 0 for none in particular."},
                    "text": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 2000,
                        "description": "What is wrong, and what would be right.",
                    },
                },
            },
        },
    },
}
"""What a reviewer has to answer, as JSON Schema."""


@dataclass(frozen=True)
class Finding:
    """One thing that a reviewer wants changed; `path` empty and `line` 0 where it is nowhere in particular."""

    path: str
    line: int
    text: str

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}" if self.path and self.line else self.path


@dataclass(frozen=True)
class Judgment:
    """What a reviewer answered, read from its result."""

    verdict: Verdict
    summary: str
    findings: tuple[Finding, ...] = ()


def judgment_in(result: Any) -> Judgment:
    """The judgment that a result is, which fits the schema.

    ValueError for one that contradicts itself: changes are asked for and none is named.
    """
    verdict = Verdict(result["verdict"])
    findings = tuple(Finding(each["path"], each["line"], each["text"]) for each in result["findings"])
    if verdict is Verdict.REQUEST_CHANGES and not findings:
        raise ValueError("it asks for changes and names none")
    return Judgment(verdict, result["summary"], findings)


@dataclass(frozen=True)
class ReviewFacts:
    """A review's row. `why` says why it is void; `findings` is what it asks for, as the author is told it."""

    id: str
    task_id: str
    run_id: str
    state: ReviewState
    commit_sha: str
    reviewer: str
    summary: str = ""
    findings: str = ""
    why: str = ""

    @property
    def is_void(self) -> bool:
        return self.state is ReviewState.VOID


def told(judgment: Judgment) -> str:
    """The findings as a list in Markdown, in the reviewer's order."""
    return "\n".join(
        f"- {f'`{finding.place}`: ' if finding.place else ''}{finding.text.strip()}" for finding in judgment.findings
    )
