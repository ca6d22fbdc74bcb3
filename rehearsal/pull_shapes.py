"""Pull requests, reviews and review comments in the shapes of GitHub's OpenAPI description."""

from __future__ import annotations

from rehearsal import issues, protection, shapes
from rehearsal.git import Comparison
from rehearsal.repositories import by_id, full_name
from rehearsal.shapes import Shape
from rehearsal.state import Row, State

MERGEABLE_UNKNOWN: Shape = {"mergeable": None, "rebaseable": None, "mergeable_state": "unknown"}


def pull_url(state: State, repository: Row, number: int) -> str:
    return f"{shapes.repository_url(state, repository)}/pulls/{number}"


def html_url(state: State, repository: Row, number: int) -> str:
    return f"{state.address}{full_name(repository)}/pull/{number}"


def simple(state: State, pull: Row) -> Shape:
    """A pull request as lists show it."""
    repository = by_id(state, pull["repository"])
    number = pull["number"]
    here, page = pull_url(state, repository, number), html_url(state, repository, number)
    api = shapes.repository_url(state, repository)
    assignees = shapes.users(state, pull["assignees"])
    links = {
        "self": here,
        "html": page,
        "issue": f"{api}/issues/{number}",
        "comments": f"{api}/issues/{number}/comments",
        "review_comments": f"{here}/comments",
        "review_comment": f"{api}/pulls/comments{{/number}}",
        "commits": f"{here}/commits",
        "statuses": f"{api}/statuses/{pull['head_sha']}",
    }
    return {
        "id": pull["issue"],
        "node_id": shapes.node("PR", pull["issue"]),
        "url": here,
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        **{f"{name}_url": links[name] for name in links if name not in ("self", "html")},
        "_links": {name: {"href": href} for name, href in links.items()},
        "number": number,
        "state": pull["state"],
        "locked": False,
        "title": pull["title"],
        "body": pull["body"],
        "user": shapes.user(state, pull["author"]),
        "author_association": issues.association(state, repository, pull["author"]),
        "labels": issues.label_shapes(state, repository, pull["labels"]),
        "milestone": None,
        "assignee": assignees[0] if assignees else None,
        "assignees": assignees,
        "requested_reviewers": shapes.users(state, pull["reviewers"]),
        "requested_teams": [],
        "draft": bool(pull["draft"]),
        "auto_merge": None,
        "created_at": pull["created_at"],
        "updated_at": pull["updated_at"],
        "closed_at": pull["closed_at"],
        "merged_at": pull["merged_at"],
        "merge_commit_sha": pull["merge_commit_sha"],
        "head": _end(state, pull["head_repository"], pull["head_ref"], pull["head_sha"]),
        "base": _end(state, pull["repository"], pull["base_ref"], pull["base_sha"]),
    }


def _end(state: State, number: int, ref: str, sha: str) -> Shape:
    repository = by_id(state, number)
    return {
        "label": f"{repository['owner']}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": shapes.user(state, repository["owner"]),
        "repo": shapes.repository(state, repository),
    }


def full(state: State, pull: Row, found: Comparison) -> Shape:
    """A pull request as reading it alone shows it, with what git found between its two ends."""
    is_open = pull["state"] == "open"
    issue = pull["issue"]
    return simple(state, pull) | {
        "merged": pull["merged_at"] is not None,
        "merged_by": shapes.user(state, pull["merged_by"]) if pull["merged_by"] else None,
        "mergeable": found.mergeable if is_open else None,
        "rebaseable": found.mergeable if is_open else None,
        "mergeable_state": _mergeable_state(state, pull, found) if is_open else "unknown",
        "maintainer_can_modify": False,
        "comments": state.count("SELECT count(*) FROM comment WHERE issue = ?", issue),
        "review_comments": state.count("SELECT count(*) FROM review_comment WHERE pull = ?", issue),
        "commits": found.commits,
        "additions": found.additions,
        "deletions": found.deletions,
        "changed_files": found.changed_files,
    }


def _mergeable_state(state: State, pull: Row, found: Comparison) -> str:
    if not found.mergeable:
        return "dirty"
    if pull["draft"]:
        return "draft"
    return "blocked" if protection.unmet(state, pull) else "clean"


def review(state: State, repository: Row, pull: Row, row: Row) -> Shape:
    page = f"{html_url(state, repository, pull['number'])}#pullrequestreview-{row['id']}"
    here = pull_url(state, repository, pull["number"])
    return {
        "id": row["id"],
        "node_id": shapes.node("PRR", row["id"]),
        "user": shapes.user(state, row["author"]),
        "author_association": issues.association(state, repository, row["author"]),
        "body": row["body"],
        "state": row["state"],
        "commit_id": row["commit_id"],
        "submitted_at": row["submitted_at"],
        "html_url": page,
        "pull_request_url": here,
        "_links": {"html": {"href": page}, "pull_request": {"href": here}},
    }


def review_comment(state: State, repository: Row, pull: Row, row: Row) -> Shape:
    page = f"{html_url(state, repository, pull['number'])}#discussion_r{row['id']}"
    api = shapes.repository_url(state, repository)
    here, parent = f"{api}/pulls/comments/{row['id']}", pull_url(state, repository, pull["number"])
    return {
        "id": row["id"],
        "node_id": shapes.node("PRRC", row["id"]),
        "pull_request_review_id": row["review"],
        "url": here,
        "html_url": page,
        "pull_request_url": parent,
        "_links": {"self": {"href": here}, "html": {"href": page}, "pull_request": {"href": parent}},
        "user": shapes.user(state, row["author"]),
        "author_association": issues.association(state, repository, row["author"]),
        "body": row["body"],
        "path": row["path"],
        "line": row["line"],
        "diff_hunk": "",
        "commit_id": row["commit_id"],
        "original_commit_id": row["commit_id"],
        "created_at": row["created_at"],
        "updated_at": row["created_at"],
    }
