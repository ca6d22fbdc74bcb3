"""What CI says about a commit: check runs, the suites they form, and commit statuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rehearsal import pull_shapes, shapes
from rehearsal.answers import Refused, invalid_field, not_found
from rehearsal.events import announce
from rehearsal.repositories import bare, full_name
from rehearsal.shapes import Shape
from rehearsal.state import Row, State, now

_STATUSES = ("queued", "in_progress", "completed", "waiting", "requested", "pending")
_CONCLUSIONS = ("success", "failure", "neutral", "cancelled", "skipped", "timed_out", "action_required")
_COMMIT_STATES = ("error", "failure", "pending", "success")


def create_run(state: State, repository: Row, app: int | None, sender: str, asked: Mapping[str, Any]) -> Row:
    """A check run on `head_sha` by `name`; a `conclusion` completes it. Raises Refused 422."""
    for name in ("name", "head_sha"):
        if not asked.get(name):
            raise Refused(422, f'Invalid request.\n\n"{name}" wasn\'t supplied.')
    if bare(state, repository).resolve(asked["head_sha"]) is None:
        raise Refused(422, f"No commit found for SHA: {asked['head_sha']}")
    status, conclusion = _progress(asked, "queued")
    number = state.run(
        "INSERT INTO check_run (repository, head_sha, name, app, status, conclusion, output, external_id,"
        " details_url, started_at, completed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        repository["id"], asked["head_sha"], asked["name"], app, status, conclusion,
        json.dumps(asked.get("output") or {}), asked.get("external_id") or "", asked.get("details_url"),
        asked.get("started_at") or now(), now() if conclusion else None,
    )  # fmt: skip
    return _told(state, repository, number, sender, "created")


def update_run(state: State, repository: Row, number: int, sender: str, asked: Mapping[str, Any]) -> Row:
    row = read_run(state, repository, number)
    status, conclusion = _progress(asked, row["status"])
    output = json.dumps({**json.loads(row["output"]), **(asked.get("output") or {})})
    state.run(
        "UPDATE check_run SET status = ?, conclusion = ?, output = ?, completed_at = ? WHERE id = ?",
        status, conclusion, output, now() if conclusion else None, number,
    )  # fmt: skip
    return _told(state, repository, number, sender, "completed")


def _progress(asked: Mapping[str, Any], status: str) -> tuple[str, str | None]:
    conclusion: str | None = asked.get("conclusion")
    if conclusion is not None and conclusion not in _CONCLUSIONS:
        raise invalid_field("CheckRun", "conclusion")
    status = "completed" if conclusion else asked.get("status") or status
    if status not in _STATUSES:
        raise invalid_field("CheckRun", "status")
    if status == "completed" and conclusion is None:
        raise Refused(422, 'Invalid request.\n\n"conclusion" wasn\'t supplied.')
    return status, conclusion


def read_run(state: State, repository: Row, number: int) -> Row:
    row = state.one("SELECT * FROM check_run WHERE id = ? AND repository = ?", number, repository["id"])
    if row is None:
        raise not_found()
    return row


def runs(state: State, repository: Row, sha: str, name: str = "") -> list[Row]:
    """The latest check run of each name and App on a commit, as GitHub's default `filter=latest`."""
    found = state.all(
        "SELECT * FROM check_run WHERE id IN (SELECT max(id) FROM check_run"
        " WHERE repository = ? AND head_sha = ? GROUP BY name, app) ORDER BY id",
        repository["id"], sha,
    )  # fmt: skip
    return [row for row in found if not name or row["name"] == name]


def _told(state: State, repository: Row, number: int, sender: str, action: str) -> Row:
    row = read_run(state, repository, number)
    done = row["status"] == "completed"
    told = {"action": "completed" if done else action, "check_run": run_shape(state, repository, row)}
    announce(state, "check_run", repository, sender, told)
    latest = runs(state, repository, row["head_sha"])
    if done and all(run["status"] == "completed" for run in latest):
        suite = suite_shape(state, repository, row["head_sha"], latest)
        announce(state, "check_suite", repository, sender, {"action": "completed", "check_suite": suite})
    return row


def run_shape(state: State, repository: Row, row: Row) -> Shape:
    here = f"{shapes.repository_url(state, repository)}/check-runs/{row['id']}"
    output = json.loads(row["output"])
    app = state.one("SELECT * FROM app WHERE id = ?", row["app"])
    return {
        "id": row["id"],
        "node_id": shapes.node("CR", row["id"]),
        "name": row["name"],
        "head_sha": row["head_sha"],
        "external_id": row["external_id"],
        "url": here,
        "html_url": f"{state.address}{full_name(repository)}/runs/{row['id']}",
        "details_url": row["details_url"],
        "status": row["status"],
        "conclusion": row["conclusion"],
        "started_at": row["started_at"],
        "completed_at": row["completed_at"],
        "output": {
            "title": output.get("title"),
            "summary": output.get("summary"),
            "text": output.get("text"),
            "annotations_count": 0,
            "annotations_url": f"{here}/annotations",
        },
        "check_suite": {"id": _suite_id(repository, row["head_sha"])},
        "app": shapes.app(state, app) if app else None,
        "pull_requests": _pulls_at(state, repository, row["head_sha"]),
    }


def suite_shape(state: State, repository: Row, sha: str, latest: list[Row]) -> Shape:
    """The suite as check_suite events carry it; one suite a commit, whatever the Apps."""
    failed = [row["conclusion"] for row in latest if row["conclusion"] not in ("success", "neutral", "skipped")]
    number = _suite_id(repository, sha)
    return {
        "id": number,
        "node_id": shapes.node("CS", number),
        "head_sha": sha,
        "status": "completed",
        "conclusion": failed[0] if failed else "success",
        "pull_requests": _pulls_at(state, repository, sha),
    }


def _suite_id(repository: Row, sha: str) -> int:
    return int(sha[:8], 16) + int(repository["id"])


def _pulls_at(state: State, repository: Row, sha: str) -> list[Shape]:
    """The open pull requests of this repository's own branches: GitHub leaves out those from forks."""
    found = state.all(
        "SELECT issue.number, pull.* FROM pull JOIN issue ON issue.id = pull.issue WHERE issue.state = 'open'"
        " AND issue.repository = ? AND head_repository = issue.repository AND head_sha = ?",
        repository["id"], sha,
    )  # fmt: skip
    here = {
        "id": repository["id"],
        "name": repository["name"],
        "url": shapes.repository_url(state, repository),
    }
    return [
        {
            "id": pull["issue"],
            "number": pull["number"],
            "url": pull_shapes.pull_url(state, repository, pull["number"]),
            "head": {"ref": pull["head_ref"], "sha": pull["head_sha"], "repo": here},
            "base": {"ref": pull["base_ref"], "sha": pull["base_sha"], "repo": here},
        }
        for pull in found
    ]


def create_status(state: State, repository: Row, sha: str, creator: str, asked: Mapping[str, Any]) -> Row:
    """A commit status: `state`, `context`, `description`, `target_url`. Raises Refused 422."""
    if asked.get("state") not in _COMMIT_STATES:
        raise invalid_field("Status", "state", "custom")
    if bare(state, repository).resolve(sha) is None:
        raise Refused(422, f"No commit found for SHA: {sha}")
    number = state.run(
        "INSERT INTO commit_status (repository, sha, state, context, description, target_url, creator,"
        " created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        repository["id"], sha, asked["state"], asked.get("context") or "default", asked.get("description"),
        asked.get("target_url"), creator, now(),
    )  # fmt: skip
    row = state.one("SELECT * FROM commit_status WHERE id = ?", number)
    assert row is not None
    told = {
        "id": number,
        "sha": sha,
        "name": full_name(repository),
        "context": row["context"],
        "state": row["state"],
        "description": row["description"],
        "target_url": row["target_url"],
        "branches": [
            {"name": branch["name"]}
            for branch in state.all("SELECT name FROM branch WHERE repository = ? AND sha = ?", repository["id"], sha)
        ],
    }
    announce(state, "status", repository, creator, told)
    return row


def statuses(state: State, repository: Row, sha: str) -> list[Row]:
    """The latest status of each context on a commit."""
    return state.all(
        "SELECT * FROM commit_status WHERE id IN (SELECT max(id) FROM commit_status"
        " WHERE repository = ? AND sha = ? GROUP BY context) ORDER BY id",
        repository["id"], sha,
    )  # fmt: skip


def status_shape(state: State, repository: Row, row: Row) -> Shape:
    creator = shapes.user(state, row["creator"])
    return {
        "id": row["id"],
        "node_id": shapes.node("SC", row["id"]),
        "url": f"{shapes.repository_url(state, repository)}/statuses/{row['sha']}",
        "avatar_url": creator["avatar_url"],
        "state": row["state"],
        "context": row["context"],
        "description": row["description"],
        "target_url": row["target_url"],
        "created_at": row["created_at"],
        "updated_at": row["created_at"],
        "creator": creator,
    }


def combined_shape(state: State, repository: Row, sha: str) -> Shape:
    """The combined status: pending while there is none, as GitHub says it."""
    found = statuses(state, repository, sha)
    states = {row["state"] for row in found}
    verdict = "success" if states == {"success"} else "pending"
    if states & {"error", "failure"}:
        verdict = "failure"
    here = shapes.repository_url(state, repository)
    return {
        "state": verdict,
        "sha": sha,
        "total_count": len(found),
        "statuses": [status_shape(state, repository, row) for row in found],
        "repository": shapes.repository(state, repository),
        "commit_url": f"{here}/commits/{sha}",
        "url": f"{here}/commits/{sha}/status",
    }
