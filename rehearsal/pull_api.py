"""Pull requests and their reviews over the API."""

from __future__ import annotations

from rehearsal import faults, merging, pull_shapes, pulls, reviews, shapes
from rehearsal.answers import Answer, custom, not_found
from rehearsal.auth import denied, may
from rehearsal.call import Call, Endpoint
from rehearsal.faults import FaultKind
from rehearsal.pull_shapes import pull_url
from rehearsal.shapes import Shape
from rehearsal.state import Row

_PULL = "/repos/{owner}/{repo}/pulls/{number}"


# From this version on, GitHub no longer tells which commit merged a pull request.
_WITHOUT_MERGE_COMMIT = "2026-03-10"


def _pull(call: Call) -> Row:
    return pulls.read(call.state, call.repository, call.number("number"))


def _simple(call: Call, pull: Row) -> Shape:
    return _in_version(call, pull_shapes.simple(call.state, pull))


def _full(call: Call, pull: Row, *, mergeable_known: bool = True) -> Shape:
    return _in_version(call, pulls.shape(call.state, pull, mergeable_known=mergeable_known))


def _in_version(call: Call, shape: Shape) -> Shape:
    if call.version >= _WITHOUT_MERGE_COMMIT:
        del shape["merge_commit_sha"], shape["assignee"]
    return shape


def list_pulls(call: Call) -> Answer:
    rows = pulls.search(call.state, call.repository, call.asked)
    if faults.strike(call.state, (FaultKind.STALE_LIST,), "GET", call.path_name):
        newest = max((row["number"] for row in rows), default=0)
        rows = [row for row in rows if row["number"] != newest]
    return call.page([_simple(call, row) for row in rows])


def create_pull(call: Call) -> Answer:
    body, draft = call.body.get("body"), bool(call.body.get("draft"))
    if draft and faults.strike(call.state, (FaultKind.NO_DRAFTS,), "POST", call.path_name):
        raise custom("PullRequest", "Draft pull requests are not supported in this repository.")
    pull = pulls.create(
        call.state,
        call.repository,
        call.actor.login,
        title=call.text("title"),
        body=call.text("body") if body is not None else None,
        head=call.text("head"),
        base=call.text("base"),
        draft=draft,
    )
    location = pull_url(call.state, call.repository, pull["number"])
    return Answer(_full(call, pull), 201, headers={"Location": location})


def read_pull(call: Call) -> Answer:
    pull = _pull(call)
    if "diff" in call.accept or "patch" in call.accept:
        diff = call.git.diff(pull["base_sha"], pull["head_sha"])
        return Answer(diff, media="application/vnd.github.diff; charset=utf-8")
    struck = faults.strike(call.state, (FaultKind.MERGEABLE_UNKNOWN,), "GET", call.path_name)
    return Answer(_full(call, pull, mergeable_known=struck is None))


def update_pull(call: Call) -> Answer:
    pull = _pull(call)
    own = call.actor.login.lower() == pull["author"].lower()
    if not own and not may(call.state, call.actor, call.repository, "pull_requests", "write"):
        raise denied(call.actor)
    changes = {name: call.text(name) for name in ("title", "body", "base", "state") if call.body.get(name) is not None}
    return Answer(_full(call, pulls.update(call.state, call.repository, pull, call.actor.login, changes)))


def merge_pull(call: Call) -> Answer:
    sha = merging.merge(
        call.state,
        call.repository,
        _pull(call),
        call.actor.login,
        method=call.text("merge_method", "merge"),
        sha=call.text("sha", ""),
        title=call.text("commit_title", ""),
        message=call.text("commit_message", ""),
    )
    return Answer({"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


def is_merged(call: Call) -> Answer:
    if not _pull(call)["merged_at"]:
        raise not_found()
    return Answer(status=204)


def list_commits(call: Call) -> Answer:
    pull = _pull(call)
    found = call.git.commits(pull["base_sha"], pull["head_sha"], limit=250)
    return call.page([shapes.commit(call.state, call.repository, commit) for commit in found])


def update_branch(call: Call) -> Answer:
    """Merge the base into the head branch. `expected_head_sha` guards the head (422)."""
    merging.update_branch(
        call.state, call.repository, _pull(call), call.actor.login, call.text("expected_head_sha", "")
    )
    return Answer({"message": "Updating pull request branch.", "url": call.url.removesuffix("/update-branch")}, 202)


def list_reviews(call: Call) -> Answer:
    pull = _pull(call)
    found = reviews.of(call.state, pull)
    return call.page([pull_shapes.review(call.state, call.repository, pull, row) for row in found])


def create_review(call: Call) -> Answer:
    pull = _pull(call)
    row = reviews.submit(call.state, call.repository, pull, call.actor.login, call.body)
    return Answer(pull_shapes.review(call.state, call.repository, pull, row))


def dismiss_review(call: Call) -> Answer:
    pull = _pull(call)
    call.text("message")
    row = reviews.dismiss(call.state, call.repository, pull, call.number("review"), call.actor.login)
    return Answer(pull_shapes.review(call.state, call.repository, pull, row))


def list_review_comments(call: Call) -> Answer:
    pull = _pull(call)
    found = reviews.comments_of(call.state, pull)
    return call.page([pull_shapes.review_comment(call.state, call.repository, pull, row) for row in found])


def create_review_comment(call: Call) -> Answer:
    pull = _pull(call)
    call.text("body")
    row = reviews.comment(call.state, call.repository, pull, call.actor.login, call.body)
    return Answer(pull_shapes.review_comment(call.state, call.repository, pull, row), 201)


def request_reviewers(call: Call) -> Answer:
    pull = reviews.request(call.state, _pull(call), call.texts("reviewers"), call.actor.login)
    return Answer(_simple(call, pull), 201)


ENDPOINTS = (
    Endpoint("GET", "/repos/{owner}/{repo}/pulls", list_pulls, "pull_requests:read"),
    # Anybody who can read a repository may propose a change to it, and talk about one.
    Endpoint("POST", "/repos/{owner}/{repo}/pulls", create_pull, "pull_requests:write", person="read"),
    Endpoint("GET", _PULL, read_pull, "pull_requests:read"),
    Endpoint("PATCH", _PULL, update_pull, "pull_requests:write", person="read"),
    Endpoint("GET", f"{_PULL}/merge", is_merged, "pull_requests:read"),
    Endpoint("PUT", f"{_PULL}/merge", merge_pull, "contents:write"),
    Endpoint("PUT", f"{_PULL}/update-branch", update_branch, "pull_requests:write"),
    Endpoint("GET", f"{_PULL}/commits", list_commits, "pull_requests:read"),
    Endpoint("GET", f"{_PULL}/reviews", list_reviews, "pull_requests:read"),
    Endpoint("POST", f"{_PULL}/reviews", create_review, "pull_requests:write", person="read"),
    Endpoint("PUT", f"{_PULL}/reviews/{{review}}/dismissals", dismiss_review, "pull_requests:write"),
    Endpoint("GET", f"{_PULL}/comments", list_review_comments, "pull_requests:read"),
    Endpoint("POST", f"{_PULL}/comments", create_review_comment, "pull_requests:write", person="read"),
    Endpoint("POST", f"{_PULL}/requested_reviewers", request_reviewers, "pull_requests:write"),
)
