"""What GitHub sends, as much of it as a hint needs, and what nobody should send.

The shapes are those of https://docs.github.com/en/webhooks/webhook-events-and-payloads, cut down.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.activities.conftest import OWNER, Graph
from tests.webhooks.conftest import BRANCH, Doorway, headers, pull_request

REPOSITORY = {"id": 1, "full_name": "acme/shop", "name": "shop", "owner": {"login": "acme"}, "default_branch": "main"}
SENDER = {"login": "ada", "type": "User"}
PULL: dict[str, Any] = {
    "number": 7,
    "state": "open",
    "merged": False,
    "head": {"ref": BRANCH, "sha": "a" * 40, "repo": REPOSITORY, "user": {"login": "acme"}},
    "base": {"ref": "main", "sha": "b" * 40, "repo": REPOSITORY},
    "merged_by": None,
    "body": None,
}
SUITE = {"id": 3, "head_branch": BRANCH, "head_sha": "a" * 40, "status": "completed", "conclusion": "success"}


def about(**payload: Any) -> dict[str, Any]:
    return {"repository": REPOSITORY, "sender": SENDER, **payload}


ABOUT_THE_PULL_REQUEST = {
    "pull_request": [
        about(action="opened", number=7, pull_request=PULL),
        about(action="closed", number=7, pull_request=PULL | {"merged": True, "merged_by": SENDER, "state": "closed"}),
        about(action="reopened", number=7, pull_request=PULL),
        about(action="synchronize", number=7, pull_request=PULL, before="a" * 40, after="c" * 40),
        about(action="edited", number=7, pull_request=PULL, changes={"title": {"from": "x"}}),
        about(action="labeled", number=7, pull_request=PULL, label={"name": "bug"}),
    ],
    "pull_request_review": [about(action="submitted", review={"state": "approved", "body": None}, pull_request=PULL)],
    "pull_request_review_comment": [about(action="created", comment={"body": "Why?"}, pull_request=PULL)],
    "pull_request_review_thread": [about(action="resolved", thread={"comments": []}, pull_request=PULL)],
}
ABOUT_THE_BRANCH = {
    "check_run": [
        about(action="completed", check_run={"name": "ci", "conclusion": "failure", "check_suite": SUITE}),
        about(
            action="created", check_run={"name": "ci", "conclusion": None, "check_suite": SUITE, "pull_requests": []}
        ),
    ],
    "check_suite": [about(action="completed", check_suite=SUITE)],
    "push": [about(ref=f"refs/heads/{BRANCH}", before="a" * 40, after="c" * 40, commits=[], head_commit=None)],
}
ABOUT_NOTHING_OF_OURS: dict[str, list[dict[str, Any]]] = {
    "ping": [{"zen": "Keep it logically awesome.", "hook_id": 1, "hook": {"type": "App"}}],
    "push": [
        about(ref="refs/heads/main", before="a" * 40, after="c" * 40, commits=[]),
        about(ref=f"refs/tags/{BRANCH}", before="0" * 40, after="c" * 40, commits=[]),
        about(ref=f"refs/heads/refs/heads/{BRANCH}", commits=[]),
    ],
    "create": [about(ref=BRANCH, ref_type="branch", master_branch="main")],
    "installation": [{"action": "created", "installation": {"id": 5, "account": SENDER}, "sender": SENDER}],
    "issue_comment": [
        about(action="created", issue={"number": 7, "pull_request": {"url": "x"}}, comment={"body": "hi"})
    ],
    "check_suite": [about(action="completed", check_suite=SUITE | {"head_branch": None})],
    "check_run": [about(action="completed", check_run={"name": "ci", "check_suite": None})],
    "status": [about(sha="a" * 40, state="success", branches=[{"name": BRANCH}])],
    "pull_request": [
        about(action="opened", number=8, pull_request=PULL | {"head": {"ref": "ada/fix", "repo": REPOSITORY}})
    ],
}


def cases(by_event: dict[str, list[dict[str, Any]]]) -> list[Any]:
    return [
        pytest.param(event, payload, id=f"{event}-{payload.get('action', n)}")
        for event, payloads in by_event.items()
        for n, payload in enumerate(payloads)
    ]


async def send(doorway: Doorway, event: str, payload: Any) -> Any:
    body = json.dumps(payload).encode()
    answer = await doorway.post(body, headers(body, event=event))
    assert answer.status_code == 202
    (row,) = doorway.rows()
    return row


@pytest.mark.parametrize(("event", "payload"), cases(ABOUT_THE_PULL_REQUEST))
async def test_what_concerns_the_pull_request_is_a_hint_at_its_task(
    doorway: Doorway, graph: Graph, event: str, payload: dict[str, Any]
) -> None:
    row = await send(doorway, event, payload)
    assert (row.task_id, row.pull_number, row.repository) == (graph.task, 7, "acme/shop")
    assert doorway.woken == [OWNER]


@pytest.mark.parametrize(("event", "payload"), cases(ABOUT_THE_BRANCH))
async def test_what_concerns_the_branch_is_a_hint_at_its_task(
    doorway: Doorway, graph: Graph, event: str, payload: dict[str, Any]
) -> None:
    row = await send(doorway, event, payload)
    assert (row.task_id, row.pull_number) == (graph.task, None)
    # What a push means for a pull request comes as a delivery of its own.
    assert doorway.woken == ([] if event == "push" else [OWNER])


@pytest.mark.parametrize(("event", "payload"), cases(ABOUT_NOTHING_OF_OURS))
async def test_what_concerns_nothing_of_ours_is_kept_and_wakes_nobody(
    doorway: Doorway, event: str, payload: dict[str, Any]
) -> None:
    row = await send(doorway, event, payload)
    assert row.task_id is None
    assert doorway.woken == []


@pytest.mark.parametrize(
    "branch",
    [f"{BRANCH}/x", f"x/{BRANCH}", f"{BRANCH}0", BRANCH.upper(), f"{BRANCH} ", BRANCH.removeprefix("watchbill/")],
)
async def test_a_look_alike_branch_owns_nothing(doorway: Doorway, graph: Graph, branch: str) -> None:
    body = pull_request(branch=branch)
    await doorway.post(body, headers(body))
    (row,) = doorway.rows()
    assert row.task_id != graph.task
    assert doorway.woken == []


@pytest.mark.parametrize("home", [{"full_name": "mallory/shop"}, None], ids=["a fork", "a fork that was deleted"])
async def test_the_same_branch_in_a_fork_is_not_ours(doorway: Doorway, home: dict[str, str] | None) -> None:
    body = pull_request(repo=home)
    await doorway.post(body, headers(body))
    (row,) = doorway.rows()
    assert row.task_id is None
    assert doorway.woken == []


async def test_the_same_branch_in_another_repository_is_not_ours(doorway: Doorway) -> None:
    body = pull_request(repository="mallory/shop")
    await doorway.post(body, headers(body))
    assert len(doorway.rows()) == 1
    assert doorway.woken == []


async def test_a_repositorys_name_counts_without_regard_to_case(doorway: Doorway) -> None:
    body = pull_request(repository="Acme/Shop")
    await doorway.post(body, headers(body))
    assert doorway.woken == [OWNER]


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"action": None, "repository": None, "pull_request": None, "ref": None},
        {"pull_request": {}, "repository": {}},
        {"pull_request": {"head": {}}, "repository": {"full_name": "acme/shop"}},
        {"pull_request": {"number": None, "head": {"ref": None, "repo": {}}}},
        {"check_run": {}, "check_suite": {}},
        {"something": ["that", "is", "new"]},
    ],
)
async def test_what_is_missing_is_not_missed(doorway: Doorway, payload: dict[str, Any]) -> None:
    row = await send(doorway, "pull_request", payload)
    assert row.task_id is None


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"null", b"42", b'"text"', b"{", b"payload=%7B%7D", b"\xff\xfe", b'{"a": NaN', b"{}{}", b"[" * 10_000],
)
async def test_what_is_no_json_object_is_refused_in_words(doorway: Doorway, body: bytes) -> None:
    answer = await doorway.post(body, headers(body))
    assert answer.status_code == 400
    assert "application/json" in answer.json()["message"]
    assert doorway.rows() == []


async def test_a_payload_is_kept_as_it_came(doorway: Doorway) -> None:
    body = '{"action": "opened", "title": "Prüfung ✓ \\u0000"}'.encode()
    await doorway.post(body, headers(body))
    (row,) = doorway.rows()
    assert json.loads(row.payload)["action"] == "opened"
    assert "Prüfung ✓" in row.payload
