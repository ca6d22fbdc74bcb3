"""What issues and pull requests share: numbers, titles, states, comments, labels, assignees."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable

from rehearsal import shapes
from rehearsal.answers import custom, invalid_field, not_found
from rehearsal.events import announce
from rehearsal.repositories import full_name
from rehearsal.shapes import Shape
from rehearsal.state import Row, State, now

LONGEST_BODY = 65_536
LONGEST_TITLE = 256


def open_issue(state: State, repository: Row, author: str, title: str, body: str | None) -> int:
    """The id of a new issue under the repository's next number."""
    check_text(title, body)
    state.run("UPDATE repository SET last_number = last_number + 1 WHERE id = ?", repository["id"])
    number = state.count("SELECT last_number FROM repository WHERE id = ?", repository["id"])
    return state.run(
        "INSERT INTO issue (repository, number, title, body, state, author, created_at, updated_at)"
        " VALUES (?, ?, ?, ?, 'open', ?, ?, ?)",
        repository["id"], number, title, body, author, now(), now(),
    )  # fmt: skip


def check_text(title: str | None, body: str | None, resource: str = "Issue") -> None:
    """Raises Refused 422 for an empty or over-long title, or an over-long body."""
    if title is not None and not title.strip():
        raise invalid_field(resource, "title", "missing_field")
    if title is not None and len(title) > LONGEST_TITLE:
        raise custom(resource, f"title is too long (maximum is {LONGEST_TITLE} characters)")
    if body is not None and len(body) > LONGEST_BODY:
        raise custom(resource, f"body is too long (maximum is {LONGEST_BODY} characters)")


def read(state: State, repository: Row, number: int) -> Row:
    """The issue, or the issue behind the pull request, of this number. Raises Refused 404."""
    row = state.one("SELECT * FROM issue WHERE repository = ? AND number = ?", repository["id"], number)
    if row is None:
        raise not_found()
    return row


def by_id(state: State, issue: int) -> Row:
    row = state.one("SELECT * FROM issue WHERE id = ?", issue)
    if row is None:
        raise not_found()
    return row


def is_pull(state: State, issue: Row) -> bool:
    return state.one("SELECT 1 FROM pull WHERE issue = ?", issue["id"]) is not None


def comment(state: State, repository: Row, issue: Row, author: str, body: str) -> Row:
    check_text(None, body, "IssueComment")
    number = state.run(
        "INSERT INTO comment (issue, author, body, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
        issue["id"], author, body, now(), now(),
    )  # fmt: skip
    return _told(state, repository, issue, author, number, "created")


def edit_comment(state: State, repository: Row, number: int, editor: str, body: str) -> Row:
    check_text(None, body, "IssueComment")
    issue = by_id(state, read_comment(state, repository, number)["issue"])
    state.run("UPDATE comment SET body = ?, updated_at = ? WHERE id = ?", body, now(), number)
    return _told(state, repository, issue, editor, number, "edited")


def read_comment(state: State, repository: Row, number: int) -> Row:
    row = state.one(
        "SELECT comment.* FROM comment JOIN issue ON issue.id = comment.issue"
        " WHERE comment.id = ? AND issue.repository = ?",
        number, repository["id"],
    )  # fmt: skip
    if row is None:
        raise not_found()
    return row


def _told(state: State, repository: Row, issue: Row, sender: str, number: int, action: str) -> Row:
    row = read_comment(state, repository, number)
    payload = {
        "action": action,
        "issue": shape(state, repository, issue),
        "comment": comment_shape(state, repository, issue, row),
    }
    announce(state, "issue_comment", repository, sender, payload)
    return row


def add_labels(state: State, issue: Row, names: Iterable[str]) -> list[str]:
    """Adds them; GitHub makes a label that the repository does not have yet."""
    labels = list(dict.fromkeys([*json.loads(issue["labels"]), *names]))
    state.run("UPDATE issue SET labels = ?, updated_at = ? WHERE id = ?", json.dumps(labels), now(), issue["id"])
    return labels


def add_assignees(state: State, issue: Row, logins: Iterable[str]) -> None:
    """Adds those that have an account; GitHub leaves out the others without a word."""
    known = [login for login in logins if state.one("SELECT 1 FROM account WHERE login = ?", login)]
    assigned = list(dict.fromkeys([*json.loads(issue["assignees"]), *known]))[:10]
    state.run(
        "UPDATE issue SET assignees = ?, updated_at = ? WHERE id = ?",
        json.dumps(assigned),
        now(),
        issue["id"],
    )


def url(state: State, repository: Row, number: int) -> str:
    return f"{shapes.repository_url(state, repository)}/issues/{number}"


def html_url(state: State, repository: Row, issue: Row) -> str:
    kind = "pull" if is_pull(state, issue) else "issues"
    return f"{state.address}{full_name(repository)}/{kind}/{issue['number']}"


def association(state: State, repository: Row, login: str) -> str:
    """How somebody belongs to a repository, as GitHub's `author_association` says it."""
    if login.lower() == repository["owner"].lower():
        return "OWNER"
    known = state.one("SELECT 1 FROM collaborator WHERE repository = ? AND login = ?", repository["id"], login)
    return "COLLABORATOR" if known else "NONE"


def label_shapes(state: State, repository: Row, names: str | Iterable[str]) -> list[Shape]:
    listed: Iterable[str] = json.loads(names) if isinstance(names, str) else names
    here = shapes.repository_url(state, repository)
    return [
        {
            "id": zlib.crc32(name.encode()),
            "node_id": f"LA_{name}",
            "url": f"{here}/labels/{name}",
            "name": name,
            "description": "",
            "color": "ededed",
            "default": False,
        }
        for name in listed
    ]


def shape(state: State, repository: Row, issue: Row) -> Shape:
    here = url(state, repository, issue["number"])
    assignees = shapes.users(state, issue["assignees"])
    page = html_url(state, repository, issue)
    found: Shape = {
        "id": issue["id"],
        "node_id": shapes.node("I", issue["id"]),
        "url": here,
        "repository_url": shapes.repository_url(state, repository),
        "labels_url": f"{here}/labels{{/name}}",
        "comments_url": f"{here}/comments",
        "events_url": f"{here}/events",
        "html_url": page,
        "number": issue["number"],
        "state": issue["state"],
        "title": issue["title"],
        "body": issue["body"],
        "user": shapes.user(state, issue["author"]),
        "author_association": association(state, repository, issue["author"]),
        "labels": label_shapes(state, repository, issue["labels"]),
        "assignee": assignees[0] if assignees else None,
        "assignees": assignees,
        "milestone": None,
        "locked": False,
        "comments": state.count("SELECT count(*) FROM comment WHERE issue = ?", issue["id"]),
        "created_at": issue["created_at"],
        "updated_at": issue["updated_at"],
        "closed_at": issue["closed_at"],
    }
    if is_pull(state, issue):
        pull = f"{shapes.repository_url(state, repository)}/pulls/{issue['number']}"
        found["pull_request"] = {
            "url": pull,
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
        }
    return found


def comment_shape(state: State, repository: Row, issue: Row, row: Row) -> Shape:
    return {
        "id": row["id"],
        "node_id": shapes.node("IC", row["id"]),
        "url": f"{shapes.repository_url(state, repository)}/issues/comments/{row['id']}",
        "html_url": f"{html_url(state, repository, issue)}#issuecomment-{row['id']}",
        "issue_url": url(state, repository, issue["number"]),
        "user": shapes.user(state, row["author"]),
        "author_association": association(state, repository, row["author"]),
        "body": row["body"],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
    }
