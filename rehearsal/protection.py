"""What a protected branch asks of a pull request before it may land there."""

from __future__ import annotations

import json

from rehearsal.auth import at_least, role
from rehearsal.repositories import by_id
from rehearsal.state import Row, State


def unmet(state: State, pull: Row) -> str:
    """What the protection of the base still asks for, in GitHub's words; empty when nothing."""
    rule = state.one(
        "SELECT * FROM protection WHERE repository = ? AND branch = ?", pull["repository"], pull["base_ref"]
    )
    if rule is None:
        return ""
    for context in json.loads(rule["checks"]):
        if not _succeeded(state, pull["repository"], pull["head_sha"], context):
            return f'Required status check "{context}" is expected.'
    if _approvals(state, pull) < rule["reviews"]:
        many = "approving review is" if rule["reviews"] == 1 else "approving reviews are"
        return f"At least {rule['reviews']} {many} required by reviewers with write access."
    return ""


def _succeeded(state: State, repository: int, sha: str, context: str) -> bool:
    run = state.one(
        "SELECT conclusion FROM check_run WHERE repository = ? AND head_sha = ? AND name = ?"
        " ORDER BY id DESC LIMIT 1",
        repository, sha, context,
    )  # fmt: skip
    if run is not None:
        return run["conclusion"] in ("success", "neutral", "skipped")
    status = state.one(
        "SELECT state FROM commit_status WHERE repository = ? AND sha = ? AND context = ?"
        " ORDER BY id DESC LIMIT 1",
        repository, sha, context,
    )  # fmt: skip
    return status is not None and status["state"] == "success"


def _approvals(state: State, pull: Row) -> int:
    """How many people with write access have approval as their last word. A comment is no word."""
    repository = by_id(state, pull["repository"])
    last: dict[str, str] = {}
    for row in state.all("SELECT * FROM review WHERE pull = ? ORDER BY id", pull["issue"]):
        if row["state"] != "COMMENTED":
            last[row["author"]] = row["state"]
    return sum(
        word == "APPROVED" and at_least(role(state, author, repository), "write") for author, word in last.items()
    )
