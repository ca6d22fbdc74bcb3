"""What evidence is worth, and that it is worth nothing where its source cannot be shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.provenance import WORTH, Claim, Origin, Source, Standing, proving, why_void
from domain.run import EvidenceKind
from domain.told import ToldUsage, read_content, usage_in

SHA = "c" * 40
SAID = Source(
    task_id="t", run_id="r", epoch=2, commit_sha=SHA, command="make test", exit_code=0, seen_by="worker-1",
)  # fmt: skip
RUN = Origin(
    id="r", task_id="t", role="check", epoch=2, start_sha=SHA, command="make test", exit_code=0, runtime="check",
    model="", outcome="done",
)  # fmt: skip
REVIEWED = replace(SAID, command="codex:gpt-5.5", exit_code=None)
REVIEWER = replace(RUN, role="reviewer", runtime="codex", model="gpt-5.5", command="", exit_code=0)


def test_every_kind_of_evidence_has_its_worth() -> None:
    assert WORTH.keys() == set(EvidenceKind)
    assert [(claim, proving(claim)) for claim in Claim] == [
        (Claim.PASSED, EvidenceKind.CHECK),
        (Claim.APPROVED, EvidenceKind.REVIEW),
    ]


def test_what_an_agent_says_of_itself_is_unverified_and_proves_nothing() -> None:
    told = [kind for kind, worth in WORTH.items() if worth.standing is Standing.UNVERIFIED]
    assert told == [EvidenceKind.USAGE]
    assert not [kind for kind in told if WORTH[kind].proves]


def test_what_its_run_bears_out_counts() -> None:
    assert why_void(EvidenceKind.CHECK, SAID, RUN) == ""
    assert why_void(EvidenceKind.REVIEW, REVIEWED, REVIEWER) == ""


@pytest.mark.parametrize("kind", sorted(set(EvidenceKind) - {EvidenceKind.CHECK, EvidenceKind.REVIEW}))
def test_no_other_kind_proves_anything_whatever_its_source(kind: EvidenceKind) -> None:
    assert why_void(kind, SAID, RUN) == f"evidence of the kind {kind} proves nothing"


@pytest.mark.parametrize(
    "said",
    [
        {"task_id": None}, {"task_id": "another"}, {"run_id": None}, {"run_id": "another"}, {"epoch": 0}, {"epoch": 3},
        {"commit_sha": ""}, {"commit_sha": "d" * 40}, {"command": "true"}, {"exit_code": 1}, {"exit_code": None},
        {"seen_by": ""},
    ],
)  # fmt: skip
def test_a_check_that_says_otherwise_than_its_run_counts_for_nothing(said: dict[str, Any]) -> None:
    assert why_void(EvidenceKind.CHECK, replace(SAID, **said), RUN)


@pytest.mark.parametrize(
    "run",
    [
        {"id": "another"}, {"task_id": "another"}, {"role": "author"}, {"role": "reviewer"}, {"epoch": 1},
        {"start_sha": ""}, {"command": "true"}, {"exit_code": None}, {"exit_code": 1},
    ],
)  # fmt: skip
def test_a_check_by_a_run_that_was_no_such_thing_counts_for_nothing(run: dict[str, Any]) -> None:
    assert why_void(EvidenceKind.CHECK, SAID, replace(RUN, **run))


@pytest.mark.parametrize(
    "run", [{"model": "gpt-4"}, {"runtime": "opencode"}, {"outcome": "crashed"}, {"outcome": ""}, {"role": "author"}]
)
def test_a_review_by_a_run_that_was_no_such_thing_counts_for_nothing(run: dict[str, Any]) -> None:
    assert why_void(EvidenceKind.REVIEW, REVIEWED, replace(REVIEWER, **run))


def test_evidence_without_a_run_counts_for_nothing() -> None:
    assert why_void(EvidenceKind.CHECK, SAID, None) == "no run is known that it comes from"


def test_a_told_usage_is_read_back_as_it_was_kept_and_says_what_it_is_worth_first() -> None:
    told = usage_in("claude", {"input": 3000, "cache_read": 0, "output": 150, "other": 5}, 0.015)
    assert told == ToldUsage("claude", {"input": 3000, "cache_read": 0, "output": 150}, 15_000_000)
    assert read_content(told.content) == told
    assert told.sentence == (
        "unverified: claude says of itself that it took 3000 input, 150 output tokens; it reckons 0.015 USD; in no sum"
    )
    assert usage_in("codex", {}) is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"tokens": 3}', b"\xff"])
def test_what_is_no_usage_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        read_content(content)
