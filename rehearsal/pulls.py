"""Pull requests by GitHub's rules: what may be opened, edited, closed and opened again.

The words of the refusals are GitHub's own, because clients can tell them apart by nothing else.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from rehearsal import issues
from rehearsal.answers import custom, invalid, invalid_field, not_found
from rehearsal.events import announce
from rehearsal.git import Comparison
from rehearsal.pull_shapes import MERGEABLE_UNKNOWN, full
from rehearsal.repositories import bare, branch_sha, by_id, in_network
from rehearsal.shapes import Shape
from rehearsal.state import Row, State, now

PACKED_EVERY = 25
"""Pull requests after which what a repository holds is packed."""

_SELECT = "SELECT issue.*, pull.* FROM pull JOIN issue ON issue.id = pull.issue"


def read(state: State, repository: Row, number: int) -> Row:
    """The pull request with its issue's columns. Raises Refused 404."""
    row = state.one(f"{_SELECT} WHERE issue.repository = ? AND issue.number = ?", repository["id"], number)
    if row is None:
        raise not_found()
    return row


def again(state: State, pull: Row) -> Row:
    """The same pull request as it is now."""
    row = state.one(f"{_SELECT} WHERE pull.issue = ?", pull["issue"])
    assert row is not None
    return row


def with_node(state: State, node_id: str) -> Row | None:
    """The pull request that a `node_id` names."""
    kind, _, number = node_id.partition("_")
    return state.one(f"{_SELECT} WHERE pull.issue = ?", number) if kind == "PR" and number.isdecimal() else None


def mark_ready(state: State, pull: Row, actor: str) -> Row:
    """A draft that is ready for review; one that is ready stays so, and nobody is told."""
    if not pull["draft"]:
        return pull
    state.run("UPDATE pull SET draft = 0 WHERE issue = ?", pull["issue"])
    state.run("UPDATE issue SET updated_at = ? WHERE id = ?", now(), pull["issue"])
    tell(state, again(state, pull), "ready_for_review", actor)
    return again(state, pull)


def open_from(state: State, repository: int, branch: str) -> list[Row]:
    return state.all(
        f"{_SELECT} WHERE issue.state = 'open' AND head_repository = ? AND head_ref = ?", repository, branch
    )


def open_into(state: State, repository: int, branch: str) -> list[Row]:
    return state.all(
        f"{_SELECT} WHERE issue.state = 'open' AND issue.repository = ? AND base_ref = ?", repository, branch
    )


def search(state: State, repository: Row, asked: dict[str, str]) -> list[Row]:
    """Pull requests of a repository by `state`, `base` and `head`, newest first unless asked otherwise.

    `head` counts only in the form `owner:branch`; GitHub ignores a bare branch and lists everything.
    """
    rows = state.all(f"{_SELECT} WHERE issue.repository = ? ORDER BY issue.number", repository["id"])
    wanted = asked.get("state", "open")
    if wanted != "all":
        rows = [row for row in rows if row["state"] == wanted]
    if asked.get("base"):
        rows = [row for row in rows if row["base_ref"] == asked["base"]]
    owner, colon, branch = asked.get("head", "").partition(":")
    if colon:
        rows = [
            row for row in rows
            if row["head_ref"] == branch
            and by_id(state, row["head_repository"])["owner"].lower() == owner.lower()
        ]  # fmt: skip
    key = "updated_at" if asked.get("sort") == "updated" else "created_at"
    newest_first = asked.get("direction", "desc" if asked.get("sort", "created") == "created" else "asc") == "desc"
    return sorted(rows, key=lambda row: (row[key], row["number"]), reverse=newest_first)


def create(
    state: State,
    repository: Row,
    author: str,
    *,
    title: str,
    body: str | None,
    head: str,
    base: str,
    draft: bool,
) -> Row:
    """Open a pull request from `branch` or `owner:branch` into `base`. Raises Refused 422."""
    owner, colon, branch = head.partition(":")
    if not colon:
        owner, branch = repository["owner"], head
    source = in_network(state, repository, owner)
    head_sha = branch_sha(state, source["id"], branch) if source is not None else None
    base_sha = branch_sha(state, repository["id"], base)
    problems = [
        {"resource": "PullRequest", "field": name, "code": "invalid"}
        for name, sha in (("head", head_sha), ("base", base_sha))
        if sha is None
    ]
    if source is None or head_sha is None or base_sha is None:
        raise invalid(*problems)
    refuse_duplicate(state, repository, source, branch, base)
    number = state.count("SELECT last_number FROM repository WHERE id = ?", repository["id"]) + 1
    _bring_head(state, repository["id"], source["id"], number, head_sha)
    _refuse_nothing_new(repository, source, branch, base, compared(state, repository["id"], base_sha, head_sha))
    issue = issues.open_issue(state, repository, author, title, body)
    state.run(
        "INSERT INTO pull (issue, head_repository, head_ref, head_sha, base_ref, base_sha, draft)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        issue, source["id"], branch, head_sha, base, base_sha, draft,
    )  # fmt: skip
    if number % PACKED_EVERY == 0:
        bare(state, repository).pack()
    pull = read(state, repository, number)
    tell(state, pull, "opened", author)
    return pull


def refuse_duplicate(state: State, repository: Row, source: Row, branch: str, base: str) -> None:
    same = [pull for pull in open_from(state, source["id"], branch)
            if pull["repository"] == repository["id"] and pull["base_ref"] == base]  # fmt: skip
    if same:
        raise custom("PullRequest", f"A pull request already exists for {source['owner']}:{branch}.")


def _refuse_nothing_new(repository: Row, source: Row, branch: str, base: str, found: Comparison) -> None:
    within = source["id"] == repository["id"]
    one = base if within else f"{repository['owner']}:{base}"
    other = branch if within else f"{source['owner']}:{branch}"
    if not found.related:
        raise custom("PullRequest", f"The {other} branch has no history in common with {one}")
    if not found.commits:
        raise custom("PullRequest", f"No commits between {one} and {other}")


def update(state: State, repository: Row, pull: Row, editor: str, changes: dict[str, Any]) -> Row:
    """Change `title`, `body`, `base` and `state` (open | closed). Raises Refused 422."""
    title, body, base = changes.get("title"), changes.get("body"), changes.get("base")
    issues.check_text(title, body, "PullRequest")
    was: dict[str, Any] = {}
    for name, value in (("title", title), ("body", body)):
        if value is not None and value != pull[name]:
            was[name] = {"from": pull[name] or ""}
    if was:
        state.run(
            "UPDATE issue SET title = coalesce(?, title), body = coalesce(?, body), updated_at = ?"
            " WHERE id = ?",
            title, body, now(), pull["issue"],
        )  # fmt: skip
    if base is not None and base != pull["base_ref"]:
        was["base"] = {"ref": {"from": pull["base_ref"]}, "sha": {"from": pull["base_sha"]}}
        _retarget(state, repository, pull, base)
    if was:
        tell(state, again(state, pull), "edited", editor, changes=was)
    match changes.get("state"):
        case "closed" if pull["state"] == "open":
            close(state, pull, editor)
        case "open" if pull["state"] == "closed":
            reopen(state, repository, pull, editor)
        case None | "open" | "closed":
            pass
        case _:
            raise invalid_field("PullRequest", "state")
    return again(state, pull)


def _retarget(state: State, repository: Row, pull: Row, base: str) -> None:
    if pull["state"] == "closed":
        raise custom("PullRequest", "Cannot change the base branch of a closed pull request.")
    sha = branch_sha(state, repository["id"], base)
    if sha is None:
        raise invalid_field("PullRequest", "base")
    refuse_duplicate(state, repository, by_id(state, pull["head_repository"]), pull["head_ref"], base)
    state.run("UPDATE pull SET base_ref = ?, base_sha = ? WHERE issue = ?", base, sha, pull["issue"])


def close(state: State, pull: Row, actor: str) -> None:
    state.run(
        "UPDATE issue SET state = 'closed', closed_at = ?, updated_at = ? WHERE id = ?",
        now(), now(), pull["issue"],
    )  # fmt: skip
    tell(state, again(state, pull), "closed", actor)


def reopen(state: State, repository: Row, pull: Row, actor: str) -> None:
    """Open a closed pull request again. Raises Refused 422.

    GitHub refuses once it was merged, while its branch (or its base) is gone, and when the branch
    does not descend from the head that it had when it was closed.
    """
    source = by_id(state, pull["head_repository"])
    tip = branch_sha(state, source["id"], pull["head_ref"])
    base = branch_sha(state, repository["id"], pull["base_ref"])
    if pull["merged_at"]:
        raise _unchangeable("The pull request has been merged.")
    if tip is None:
        raise _unchangeable(f"The {pull['head_ref']} branch has been deleted.")
    if base is None:
        raise _unchangeable(f"The {pull['base_ref']} branch has been deleted.")
    if not bare(state, source).contains(tip, pull["head_sha"]):
        raise _unchangeable(f"The {pull['head_ref']} branch was force-pushed or recreated.")
    refuse_duplicate(state, repository, source, pull["head_ref"], pull["base_ref"])
    state.run("UPDATE issue SET state = 'open', closed_at = NULL, updated_at = ? WHERE id = ?", now(), pull["issue"])
    follow_head(state, pull, tip)
    tell(state, again(state, pull), "reopened", actor)


def _unchangeable(reason: str) -> Exception:
    return invalid(
        {
            "resource": "PullRequest",
            "field": "state",
            "code": "invalid",
            "message": f"state cannot be changed. {reason}",
        }
    )


def follow_head(state: State, pull: Row, sha: str) -> None:
    """The head branch is at this commit now: so is the pull request, and `refs/pull/<number>/head`."""
    _bring_head(state, pull["repository"], pull["head_repository"], pull["number"], sha)
    base = branch_sha(state, pull["repository"], pull["base_ref"]) or pull["base_sha"]
    state.run("UPDATE pull SET head_sha = ?, base_sha = ? WHERE issue = ?", sha, base, pull["issue"])
    state.run("UPDATE issue SET updated_at = ? WHERE id = ?", now(), pull["issue"])


def _bring_head(state: State, repository: int, source: int, number: int, sha: str) -> None:
    ref = f"refs/pull/{number}/head"
    if source == repository:
        bare(state, repository).update(ref, sha)
    else:
        bare(state, repository).fetch(bare(state, source), f"+{sha}:{ref}")


def mark_merged(state: State, pull: Row, sha: str, actor: str) -> None:
    """The base holds it: closed and merged, with `sha` as the commit that landed."""
    state.run(
        "UPDATE pull SET merge_commit_sha = ?, merged_at = ?, merged_by = ? WHERE issue = ?",
        sha, now(), actor, pull["issue"],
    )  # fmt: skip
    close(state, pull, actor)


def compare(state: State, pull: Row) -> Comparison:
    """The pull request against its base: as the base is now while open, as it was when closed."""
    base = pull["base_sha"]
    if pull["state"] == "open":
        base = branch_sha(state, pull["repository"], pull["base_ref"]) or base
    return compared(state, pull["repository"], base, pull["head_sha"])


def compared(state: State, repository: int, base: str, head: str) -> Comparison:
    """What git says about two commits of a repository, asked once."""
    known = state.one(
        "SELECT facts FROM comparison WHERE repository = ? AND base = ? AND head = ?", repository, base, head
    )
    if known is not None:
        return Comparison(**json.loads(known["facts"]))
    found = bare(state, repository).compare(base, head)
    state.run("INSERT INTO comparison VALUES (?, ?, ?, ?)", repository, base, head, json.dumps(asdict(found)))
    return found


def shape(state: State, pull: Row, *, mergeable_known: bool = True) -> Shape:
    """The pull request as reading it answers, with everything that git has to work out."""
    found = full(state, pull, compare(state, pull))
    return found if mergeable_known else found | MERGEABLE_UNKNOWN


def tell(state: State, pull: Row, action: str, sender: str, **more: Any) -> None:
    """Announce a pull_request event. Its `mergeable` is not known yet, as it usually is not in GitHub's."""
    repository = by_id(state, pull["repository"])
    told = {
        "action": action,
        "number": pull["number"],
        "pull_request": shape(state, pull, mergeable_known=False),
    }
    announce(state, "pull_request", repository, sender, told | more)
