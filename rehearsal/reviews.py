"""Reviews, comments on lines, and who was asked to review."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rehearsal import pull_shapes, pulls
from rehearsal.answers import Refused, not_found
from rehearsal.events import announce
from rehearsal.repositories import bare
from rehearsal.state import Row, State, now

_STATES = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}
_NO_COLLABORATOR = (
    "Reviews may only be requested from collaborators. One or more of the users or teams you specified is "
    "not a collaborator of the repository."
)


def submit(state: State, repository: Row, pull: Row, author: str, asked: Mapping[str, Any]) -> Row:
    """Submit a review: `event`, `body`, `commit_id` (the head when absent), `comments` on lines.

    Raises Refused 422. As on GitHub, nobody approves or requests changes on their own pull request.
    """
    event, body = asked.get("event", ""), asked.get("body") or ""
    if event not in _STATES:
        raise Refused(
            422, "Validation Failed", [{"resource": "PullRequestReview", "code": "invalid", "field": "event"}]
        )
    if event != "APPROVE" and not body and not asked.get("comments"):
        raise _unprocessable("You need to leave a comment indicating the requested changes.")
    if event != "COMMENT" and author.lower() == pull["author"].lower():
        verb = "approve" if event == "APPROVE" else "request changes on"
        raise _unprocessable(f"Can not {verb} your own pull request")
    commit = asked.get("commit_id") or pull["head_sha"]
    number = state.run(
        "INSERT INTO review (pull, author, state, body, commit_id, submitted_at) VALUES (?, ?, ?, ?, ?, ?)",
        pull["issue"], author, _STATES[event], body, commit, now(),
    )  # fmt: skip
    for line in asked.get("comments") or []:
        comment(state, repository, pull, author, {**line, "commit_id": commit}, review=number)
    row = read(state, pull, number)
    told = pull_shapes.review(state, repository, pull, row) | {"state": row["state"].lower()}
    payload = {"action": "submitted", "review": told, "pull_request": pull_shapes.simple(state, pull)}
    announce(state, "pull_request_review", repository, author, payload)
    return row


def _unprocessable(message: str) -> Refused:
    refused = Refused(422, "Unprocessable Entity")
    refused.body["errors"] = [message]
    return refused


def read(state: State, pull: Row, number: int) -> Row:
    row = state.one("SELECT * FROM review WHERE id = ? AND pull = ?", number, pull["issue"])
    if row is None:
        raise not_found()
    return row


def of(state: State, pull: Row) -> list[Row]:
    """Every review, in the order in which they came."""
    return state.all("SELECT * FROM review WHERE pull = ? ORDER BY id", pull["issue"])


def dismiss(state: State, repository: Row, pull: Row, number: int, actor: str) -> Row:
    read(state, pull, number)
    state.run("UPDATE review SET state = 'DISMISSED' WHERE id = ?", number)
    row = read(state, pull, number)
    told = pull_shapes.review(state, repository, pull, row) | {"state": "dismissed"}
    payload = {"action": "dismissed", "review": told, "pull_request": pull_shapes.simple(state, pull)}
    announce(state, "pull_request_review", repository, actor, payload)
    return row


def comment(
    state: State,
    repository: Row,
    pull: Row,
    author: str,
    asked: Mapping[str, Any],
    review: int | None = None,
) -> Row:
    """Comment on a line: `path`, `line`, `body`, `commit_id`. Raises Refused 422 for an unknown commit."""
    commit = asked.get("commit_id") or ""
    if bare(state, repository).resolve(commit) is None:
        raise Refused(
            422,
            "Validation Failed",
            [{"resource": "PullRequestReviewComment", "code": "custom", "field": "commit_id",
              "message": "commit_id is not part of the pull request"}],
        )  # fmt: skip
    number = state.run(
        "INSERT INTO review_comment (pull, review, author, body, commit_id, path, line, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        pull["issue"], review, author, asked.get("body") or "", commit, asked.get("path") or "",
        asked.get("line"), now(),
    )  # fmt: skip
    row = state.one("SELECT * FROM review_comment WHERE id = ?", number)
    assert row is not None
    payload = {
        "action": "created",
        "comment": pull_shapes.review_comment(state, repository, pull, row),
        "pull_request": pull_shapes.simple(state, pull),
    }
    announce(state, "pull_request_review_comment", repository, author, payload)
    return row


def comments_of(state: State, pull: Row) -> list[Row]:
    return state.all("SELECT * FROM review_comment WHERE pull = ? ORDER BY id", pull["issue"])


def request(state: State, pull: Row, logins: Iterable[str], actor: str) -> Row:
    """Ask people for a review. Raises Refused 422 for somebody without an account, and for the author."""
    wanted = list(logins)
    for login in wanted:
        if login.lower() == pull["author"].lower():
            raise _unprocessable("Review cannot be requested from pull request author.")
        if state.one("SELECT 1 FROM account WHERE login = ?", login) is None:
            raise _unprocessable(_NO_COLLABORATOR)
    asked = list(dict.fromkeys([*json.loads(pull["reviewers"]), *wanted]))
    state.run("UPDATE pull SET reviewers = ? WHERE issue = ?", json.dumps(asked), pull["issue"])
    found = pulls.again(state, pull)
    pulls.tell(state, found, "review_requested", actor)
    return found
