"""Issues over the API, and what pull requests have in common with them: comments, labels, assignees."""

from __future__ import annotations

from rehearsal import issues, pulls, shapes
from rehearsal.answers import Answer
from rehearsal.auth import denied, may
from rehearsal.call import Call, Endpoint
from rehearsal.events import announce
from rehearsal.state import Row, now

_ISSUE = "/repos/{owner}/{repo}/issues/{number}"
# On a pull request either permission will do.
_READ, _WRITE = "issues:read|pull_requests:read", "issues:write|pull_requests:write"


def _issue(call: Call) -> Row:
    return issues.read(call.state, call.repository, call.number("number"))


def _shape(call: Call, issue: Row) -> shapes.Shape:
    return issues.shape(call.state, call.repository, issues.by_id(call.state, issue["id"]))


def list_issues(call: Call) -> Answer:
    wanted = call.asked.get("state", "open")
    rows = call.state.all("SELECT * FROM issue WHERE repository = ? ORDER BY number DESC", call.repository["id"])
    return call.page([_shape(call, row) for row in rows if wanted in ("all", row["state"])])


def create_issue(call: Call) -> Answer:
    body = call.text("body", "")
    number = issues.open_issue(call.state, call.repository, call.actor.login, call.text("title"), body)
    issue = issues.by_id(call.state, number)
    if call.body.get("labels"):
        issues.add_labels(call.state, issue, call.texts("labels"))
    shape = _shape(call, issue)
    announce(call.state, "issues", call.repository, call.actor.login, {"action": "opened", "issue": shape})
    return Answer(shape, 201, headers={"Location": shape["url"]})


def read_issue(call: Call) -> Answer:
    return Answer(_shape(call, _issue(call)))


def update_issue(call: Call) -> Answer:
    issue = _issue(call)
    own = call.actor.login.lower() == issue["author"].lower()
    if not own and not may(call.state, call.actor, call.repository, "issues", "write"):
        raise denied(call.actor)
    changes = {name: call.text(name) for name in ("title", "body", "state") if call.body.get(name) is not None}
    if issues.is_pull(call.state, issue):
        pull = pulls.read(call.state, call.repository, issue["number"])
        pulls.update(call.state, call.repository, pull, call.actor.login, changes)
    else:
        _update_plain(call, issue, changes)
    return Answer(_shape(call, issue))


def _update_plain(call: Call, issue: Row, changes: dict[str, str]) -> None:
    issues.check_text(changes.get("title"), changes.get("body"))
    new = {name: changes.get(name, issue[name]) for name in ("title", "body", "state")}
    closed_at = None if new["state"] == "open" else issue["closed_at"] or now()
    call.state.run(
        "UPDATE issue SET title = ?, body = ?, state = ?, closed_at = ?, updated_at = ? WHERE id = ?",
        new["title"], new["body"], new["state"], closed_at, now(), issue["id"],
    )  # fmt: skip
    actions = {"closed": "closed", "open": "reopened"} if new["state"] != issue["state"] else {}
    action = actions.get(new["state"], "edited")
    announce(
        call.state,
        "issues",
        call.repository,
        call.actor.login,
        {"action": action, "issue": _shape(call, issue)},
    )


def list_comments(call: Call) -> Answer:
    issue = _issue(call)
    rows = call.state.all("SELECT * FROM comment WHERE issue = ? ORDER BY id", issue["id"])
    return call.page([issues.comment_shape(call.state, call.repository, issue, row) for row in rows])


def create_comment(call: Call) -> Answer:
    issue = _issue(call)
    row = issues.comment(call.state, call.repository, issue, call.actor.login, call.text("body"))
    shape = issues.comment_shape(call.state, call.repository, issue, row)
    return Answer(shape, 201, headers={"Location": shape["url"]})


def read_comment(call: Call) -> Answer:
    return Answer(_comment_shape(call, issues.read_comment(call.state, call.repository, call.number("comment"))))


def edit_comment(call: Call) -> Answer:
    row = issues.read_comment(call.state, call.repository, call.number("comment"))
    own = call.actor.login.lower() == row["author"].lower()
    if not own and not may(call.state, call.actor, call.repository, "issues", "write"):
        raise denied(call.actor)
    edited = issues.edit_comment(call.state, call.repository, row["id"], call.actor.login, call.text("body"))
    return Answer(_comment_shape(call, edited))


def _comment_shape(call: Call, row: Row) -> shapes.Shape:
    return issues.comment_shape(call.state, call.repository, issues.by_id(call.state, row["issue"]), row)


def list_labels(call: Call) -> Answer:
    return call.page(issues.label_shapes(call.state, call.repository, _issue(call)["labels"]))


def add_labels(call: Call) -> Answer:
    names = issues.add_labels(call.state, _issue(call), call.texts("labels"))
    return Answer(issues.label_shapes(call.state, call.repository, names))


def add_assignees(call: Call) -> Answer:
    issue = _issue(call)
    issues.add_assignees(call.state, issue, call.texts("assignees"))
    return Answer(_shape(call, issue), 201)


ENDPOINTS = (
    Endpoint("GET", "/repos/{owner}/{repo}/issues", list_issues, _READ),
    Endpoint("POST", "/repos/{owner}/{repo}/issues", create_issue, "issues:write", person="read"),
    Endpoint("GET", "/repos/{owner}/{repo}/issues/comments/{comment}", read_comment, _READ),
    Endpoint("PATCH", "/repos/{owner}/{repo}/issues/comments/{comment}", edit_comment, _WRITE, person="read"),
    Endpoint("GET", _ISSUE, read_issue, _READ),
    Endpoint("PATCH", _ISSUE, update_issue, _WRITE, person="read"),
    Endpoint("GET", f"{_ISSUE}/comments", list_comments, _READ),
    Endpoint("POST", f"{_ISSUE}/comments", create_comment, _WRITE, person="read"),
    Endpoint("GET", f"{_ISSUE}/labels", list_labels, _READ),
    Endpoint("POST", f"{_ISSUE}/labels", add_labels, _WRITE),
    Endpoint("POST", f"{_ISSUE}/assignees", add_assignees, _WRITE),
)
