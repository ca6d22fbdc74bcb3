"""Reviews by real agent CLIs, each with a model of another maker than the author's. Only the models are stand-ins."""

from __future__ import annotations

import shutil

import pytest

from tests.end_to_end.plans import PROVEN, Box
from tests.end_to_end.rig import Rig

pytestmark = [pytest.mark.agents, pytest.mark.slow, pytest.mark.timeout(400)]

MODELS = {"claude": "claude-sonnet-4-6", "codex": "gpt-5.5", "opencode": "gpt-5.5"}
AUTHORS = {"claude": "opencode", "codex": "claude", "opencode": "claude"}
"""Who works where this one reviews."""


@pytest.fixture(params=["claude", "codex", "opencode"])
def cli(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    for each in (name, AUTHORS[name]):
        if shutil.which(each) is None:
            pytest.skip(f"{each} is not installed; `watchbill doctor` says how to install it")
    return name


def front(author: str, reviewer: str) -> dict[str, str]:
    return {"runtime": author, "model": MODELS[author], "reviewers": f"['{reviewer}:{MODELS[reviewer]}']", **PROVEN}


def test_requested_changes_go_back_to_the_author_and_an_approval_lands_the_work(rig: Rig, cli: str) -> None:
    slug, reviewer = f"judged-by-{cli}", cli
    author = AUTHORS[cli]
    file = f"{slug}.txt"
    work = f"if [ -e {file} ]; then echo mended >> {file}; else echo begun > {file}; fi"
    judge = f'if grep -q mended {file}; then echo approve; else echo "request_changes {file}:1 It is not mended."; fi'
    rig.submit(slug, Box("Write it down", work, review=judge), **front(author, reviewer))
    view = rig.until_completed(slug)
    assert [(task.state, task.proof, task.runs) for task in view.tasks] == [("merged", "proven", 2)]
    assert rig.file(file) == "begun\nmended\n"
    given = rig.rows(
        "SELECT r.state, r.reviewer, r.commit_sha, r.findings FROM reviews r JOIN plans p ON p.id = r.plan_id "
        "WHERE p.slug = :slug ORDER BY r.receipt_seq",
        slug=slug,
    )
    assert [row.state for row in given] == ["changes_requested", "approved"]
    assert {row.reviewer for row in given} == {f"{reviewer}:{MODELS[reviewer]}"}
    assert given[0].findings == f"- `{file}:1`: It is not mended."
    assert given[0].commit_sha != given[1].commit_sha
    body = rig.pulls(slug)[0]["body"]
    assert f"review by `{reviewer}:{MODELS[reviewer]}`" in body
    # Only the review of the commit that was merged stands there.
    assert body.count("review by") == 1
    assert rig.rows("SELECT 1 FROM runs WHERE role = 'reviewer' AND id LIKE :run AND outcome = 'done'", run=f"{slug}-%")


def test_a_reviewer_that_writes_into_the_checkout_has_given_no_review(rig: Rig, cli: str) -> None:
    slug, reviewer = f"tampered-by-{cli}", cli
    author = AUTHORS[cli]
    # By a way that no hook sees; in a cell it would fail.
    meddle = "python3 -c \"open('meddled.txt', 'w').write('x')\" && echo approve"
    rig.submit(slug, Box("Write it down", f"echo done > {slug}.txt", review=meddle), **front(author, reviewer))
    rig.until_asked(slug, "cannot_go_on")
    given = rig.rows(
        "SELECT r.state, r.why FROM reviews r JOIN plans p ON p.id = r.plan_id WHERE p.slug = :slug", slug=slug
    )
    assert {row.state for row in given} == {"void"}
    assert {row.why for row in given} == {"it changed what it was to judge: meddled.txt"}
    assert not rig.pulls(slug)
    rig.command("cancel", slug)
