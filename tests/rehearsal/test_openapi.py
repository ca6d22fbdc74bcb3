"""Every endpoint answers in the shape that GitHub's own description gives it, refusals included."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import jsonschema
import pytest

from rehearsal.api import ENDPOINTS
from tests.rehearsal.conftest import NAME, Client, Ear, Installed, Shop, eventually
from tests.rehearsal.openapi.extract import anonymous

ANSWERS = json.loads(Path(__file__).with_name("openapi").joinpath("answers.json").read_text())
REPOSITORY = f"repos/{NAME}"


class Described:
    """Holds each answer against the description, and knows which endpoints have been heard."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._endpoints = [
            (
                endpoint.method,
                endpoint.path,
                re.compile(re.sub(r"\\\{(\w+:path)\\\}", ".+", _escaped(endpoint.path))),
            )
            for endpoint in ENDPOINTS
        ]
        self.heard: set[str] = set()
        self.faults: list[str] = []

    def __call__(self, answer: httpx.Response) -> None:
        answer.read()
        path = answer.request.url.path
        operation = next(
            f"{method} {anonymous(described)}"
            for method, described, pattern in self._endpoints
            if method == answer.request.method and pattern.fullmatch(path)
        )
        described = ANSWERS["operations"][operation]
        status = str(answer.status_code)
        if status not in described:
            self.faults.append(f"{operation} answers {status}, and by GitHub's word only {sorted(described)}")
        elif described[status] is not None:
            schema = {**described[status], "schemas": ANSWERS["schemas"]}
            for error in jsonschema.Draft4Validator(schema).iter_errors(answer.json()):
                place = "/".join(str(step) for step in error.absolute_path)
                self.faults.append(f"{operation} {status}: {place}: {error.message}")
        if answer.is_success:
            self.heard.add(operation)


def _escaped(path: str) -> str:
    return re.sub(r"\\\{(\w+)\\\}", "[^/]+", re.escape(path))


@pytest.fixture
def described(shop: Shop) -> Described:
    return Described(shop.github.url)


@pytest.fixture
def callers(shop: Shop, installed: Installed, described: Described) -> Iterator[dict[str, Client]]:
    """The owner, the App itself, its installation and a reviewer, each held against the description."""
    shop.github.scene.collaborator(NAME, "bob")
    tokens = {
        "owner": shop.token,
        "app": installed.jwt(),
        "installation": installed.mint()["token"],
        "bob": shop.github.scene.personal_token("bob"),
    }
    made = {name: Client(shop.github.url, token, described) for name, token in tokens.items()}
    yield made
    for client in made.values():
        client.http.close()


def test_every_endpoint_answers_as_described(
    shop: Shop, installed: Installed, ear: Ear, described: Described, callers: dict[str, Client]
) -> None:
    shop.github.scene.app_webhook("watchbill", ear.url, Ear.SECRET)
    head = shop.push("topic", {"a.txt": "a"})
    shop.push("main", {"b.txt": "b"})
    owner, bob = callers["owner"], callers["bob"]
    _repository_calls(owner, head)
    _app_calls(callers, installed)
    _pull_calls(owner, bob)
    _issue_calls(owner)
    _check_calls(callers["installation"], owner, head)
    _ending_calls(owner)
    app = callers["app"]
    eventually(lambda: bool(shop.client(installed.jwt()).read("app/hook/deliveries")))
    delivery = app.read("app/hook/deliveries")[0]["id"]
    app.read(f"app/hook/deliveries/{delivery}")
    app("POST", f"app/hook/deliveries/{delivery}/attempts")
    assert described.faults == []
    served = {f"{endpoint.method} {anonymous(endpoint.path)}" for endpoint in ENDPOINTS}
    # GraphQL is described by a schema of its own.
    assert served - described.heard == {"POST /graphql"}


def _repository_calls(owner: Client, head: str) -> None:
    for path in ("user", "rate_limit", REPOSITORY):
        owner.read(path)
    for rest in (
        "branches",
        "branches/topic",
        "git/ref/heads/topic",
        f"commits/{head}",
        "collaborators/bob/permission",
    ):
        owner.read(f"{REPOSITORY}/{rest}")
    owner("POST", f"{REPOSITORY}/git/refs", ref="refs/heads/spare", sha=head)
    owner("POST", f"{REPOSITORY}/branches/spare/rename", new_name="other")


def _app_calls(callers: dict[str, Client], installed: Installed) -> None:
    app, number = callers["app"], installed.installation
    for path in ("app", "app/installations", f"app/installations/{number}", f"{REPOSITORY}/installation"):
        app.read(path)
    app(
        "POST",
        f"app/installations/{number}/access_tokens",
        repositories=["shop"],
        permissions={"checks": "read"},
    )
    callers["installation"].read("installation/repositories")


def _pull_calls(owner: Client, bob: Client) -> None:
    pulls = f"{REPOSITORY}/pulls"
    owner("POST", pulls, title="One", head="topic", base="main", body="Text")
    owner("POST", f"{REPOSITORY}/issues/1/labels", labels=["new"])
    owner("POST", f"{REPOSITORY}/issues/1/assignees", assignees=["bob"])
    owner("POST", f"{pulls}/1/requested_reviewers", reviewers=["bob"])
    owner("PATCH", f"{pulls}/1", title="Two")
    review = bob("POST", f"{pulls}/1/reviews", event="REQUEST_CHANGES", body="No").json()
    owner("PUT", f"{pulls}/1/reviews/{review['id']}/dismissals", message="Yes")
    owner("PUT", f"{pulls}/1/update-branch")
    commit = owner.read(f"{pulls}/1")["head"]["sha"]
    bob("POST", f"{pulls}/1/comments", body="Here", path="a.txt", line=1, commit_id=commit)
    for rest in ("", "/1", "/1/commits", "/1/reviews", "/1/comments"):
        owner.read(f"{pulls}{rest}")


def _issue_calls(owner: Client) -> None:
    issues = f"{REPOSITORY}/issues"
    owner("POST", issues, title="Plan", body="Text")
    owner("PATCH", f"{issues}/2", state="closed")
    comment = owner("POST", f"{issues}/1/comments", body="First").json()
    owner("PATCH", f"{issues}/comments/{comment['id']}", body="Second")
    for rest in ("", "/1", "/2", "/1/comments", "/1/labels", f"/comments/{comment['id']}"):
        owner.read(f"{issues}{rest}")


def _check_calls(installation: Client, owner: Client, head: str) -> None:
    run = installation("POST", f"{REPOSITORY}/check-runs", name="tests", head_sha=head).json()
    installation("PATCH", f"{REPOSITORY}/check-runs/{run['id']}", conclusion="success")
    installation("POST", f"{REPOSITORY}/statuses/{head}", state="success", context="lint", description="fine")
    for rest in (f"check-runs/{run['id']}", f"commits/{head}/check-runs", f"commits/{head}/status"):
        owner.read(f"{REPOSITORY}/{rest}")


def _ending_calls(owner: Client) -> None:
    owner("PUT", f"{REPOSITORY}/pulls/1/merge")
    owner("GET", f"{REPOSITORY}/pulls/1/merge")
    owner.read(f"{REPOSITORY}/pulls/1")
    owner("DELETE", f"{REPOSITORY}/git/refs/heads/topic")


def test_refusals_answer_as_described(shop: Shop, described: Described, callers: dict[str, Client]) -> None:
    shop.github.scene.repository(NAME, merge_methods=["merge"])
    shop.push("topic", {"a.txt": "a"})
    owner, pulls = callers["owner"], f"{REPOSITORY}/pulls"
    owner("POST", pulls, title="One", head="topic", base="main")
    refusals: list[tuple[int, httpx.Response]] = [
        (422, owner("POST", pulls, title="One", head="topic", base="main")),
        (422, owner("POST", pulls, title="One", head="nowhere", base="main")),
        (409, owner("PUT", f"{pulls}/1/merge", sha="0" * 40)),
        (422, owner("PATCH", f"{pulls}/1", state="sideways")),
        (404, owner("GET", f"{pulls}/9")),
        (404, owner("GET", f"{REPOSITORY}/branches/nowhere")),
        (422, owner("DELETE", f"{REPOSITORY}/git/refs/heads/nowhere")),
        (405, owner("PUT", f"{pulls}/1/merge", merge_method="rebase")),
    ]
    assert [answer.status_code for _, answer in refusals] == [status for status, _ in refusals]
    assert described.faults == []
