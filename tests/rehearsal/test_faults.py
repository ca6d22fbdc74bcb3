"""Faults: what a client meets, and what has or has not happened all the same."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from rehearsal.scene import Request
from tests.rehearsal.conftest import NAME, Shop, eventually

PULLS = f"repos/{NAME}/pulls"


def create(shop: Shop) -> httpx.Response:
    return shop.owner("POST", PULLS, title="Once", head="topic", base="main")


def pulls(shop: Shop) -> int:
    return len(shop.owner.read(PULLS))


@pytest.fixture(autouse=True)
def topic(shop: Shop) -> None:
    shop.push("topic", {"a.txt": "a"})


def test_an_answer_lost_after_the_commit_leaves_a_pull_request(shop: Shop) -> None:
    shop.github.scene.fault("lost-after", "POST", "/repos/*/pulls")
    with pytest.raises(httpx.RemoteProtocolError):
        create(shop)
    assert pulls(shop) == 1
    assert create(shop).status_code == 422


def test_a_connection_lost_before_leaves_nothing(shop: Shop) -> None:
    shop.github.scene.fault("lost-before", "POST", "/repos/*/pulls")
    with pytest.raises(httpx.RemoteProtocolError):
        create(shop)
    assert pulls(shop) == 0
    assert create(shop).status_code == 201


def test_a_server_error_before_and_after(shop: Shop) -> None:
    shop.github.scene.fault("error-before", "POST", "/repos/*/pulls", status=502)
    shop.github.scene.fault("error-after", "POST", "/repos/*/pulls")
    assert (create(shop).status_code, pulls(shop)) == (502, 0)
    assert (create(shop).status_code, pulls(shop)) == (500, 1)


@pytest.mark.parametrize(
    ("options", "status", "retry_after"),
    [
        ({}, 403, None),
        ({"retry_after": 7}, 403, "7"),
        ({"status": 429}, 429, None),
        (
            {"status": 429, "retry_after": "Wed, 21 Oct 2026 07:28:00 GMT"},
            429,
            "Wed, 21 Oct 2026 07:28:00 GMT",
        ),
    ],
)
def test_a_secondary_limit_with_and_without_headers(
    shop: Shop, options: dict[str, Any], status: int, retry_after: str | None
) -> None:
    shop.github.scene.fault("secondary-limit", "POST", "*/pulls", **options)
    answer = create(shop)
    assert (answer.status_code, answer.headers.get("retry-after")) == (status, retry_after)
    assert answer.json()["message"].startswith("You have exceeded a secondary rate limit.")
    assert pulls(shop) == 0


def test_a_primary_limit_says_when_it_resets(shop: Shop) -> None:
    shop.github.scene.fault("primary-limit", "GET", "*/pulls", reset_in=30)
    answer = shop.owner("GET", PULLS)
    assert (answer.status_code, answer.headers["x-ratelimit-remaining"]) == (403, "0")
    assert int(answer.headers["x-ratelimit-reset"]) > 0


def test_a_fault_strikes_as_often_as_it_was_told_and_where(shop: Shop) -> None:
    shop.github.scene.fault("error-before", "GET", f"/{PULLS}", times=2)
    owner = shop.owner
    assert owner("GET", f"repos/{NAME}").status_code == 200
    assert [owner("GET", PULLS).status_code for _ in range(3)] == [500, 500, 200]
    [fault] = shop.github.scene.faults()
    assert (fault.left, fault.struck) == (0, 2)


def test_a_slow_answer_is_still_an_answer(shop: Shop) -> None:
    shop.github.scene.fault("slow", "GET", "*/pulls", seconds=0.4)
    with pytest.raises(httpx.ReadTimeout):
        shop.owner.http.get(PULLS, timeout=0.1)
    assert shop.owner("GET", PULLS).status_code == 200


def test_mergeable_is_unknown_while_it_is_worked_out(shop: Shop) -> None:
    create(shop)
    shop.github.scene.fault("mergeable-unknown", times=1)
    pull = shop.pull(1)
    assert (pull["mergeable"], pull["mergeable_state"]) == (None, "unknown")
    assert shop.pull(1)["mergeable"] is True


def test_a_list_may_lag_behind(shop: Shop) -> None:
    create(shop)
    shop.github.scene.fault("stale-list")
    assert shop.owner.read(f"{PULLS}?head=acme:topic") == []
    assert pulls(shop) == 1


def test_a_push_whose_answer_is_lost_has_arrived(shop: Shop) -> None:
    create(shop)
    shop.github.scene.fault("lost-after", "POST", "*/git-receive-pack")
    shop.git("checkout", "--quiet", "topic")
    shop.git("commit", "--quiet", "--allow-empty", "--message", "more")
    shop.git("push", "--quiet", "origin", "topic", check=False)
    assert shop.pull(1)["head"]["sha"] == shop.git("rev-parse", "HEAD")
    assert shop.git("push", "--porcelain", "origin", "topic").splitlines()[1].startswith("=")


def test_an_unknown_fault_is_refused_by_name(shop: Shop) -> None:
    with pytest.raises(ValueError, match="there is no fault 'meteor'"):
        shop.github.scene.fault("meteor")


def test_cleared_faults_are_gone(shop: Shop) -> None:
    shop.github.scene.fault("error-before", times=9)
    shop.github.scene.clear_faults()
    assert pulls(shop) == 0


def test_requests_are_written_down_with_what_struck(shop: Shop) -> None:
    shop.github.scene.fault("lost-after", "POST", "*/pulls")
    with pytest.raises(httpx.RemoteProtocolError):
        create(shop)
    struck = Request("POST", f"/{PULLS}", 0, "lost-after")
    eventually(lambda: shop.github.scene.requests()[-1] == struck)


def test_an_unchanged_answer_is_a_304_that_costs_nothing(shop: Shop) -> None:
    shop.github.scene.limits(enforced=True)
    owner = shop.owner
    first = owner("GET", PULLS)
    etag = {"If-None-Match": first.headers["etag"]}
    same = owner("GET", PULLS, headers=etag)
    assert (same.status_code, same.content) == (304, b"")
    assert same.headers["x-ratelimit-used"] == owner("GET", PULLS, headers=etag).headers["x-ratelimit-used"]
    create(shop)
    assert owner("GET", PULLS, headers=etag).status_code == 200


def test_limits_are_enforced_only_when_the_scene_says_so(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rehearsal.limits.WRITES_PER_MINUTE", 2)
    create(shop)
    comments = f"repos/{NAME}/issues/1/comments"
    assert [shop.owner("POST", comments, body="x").status_code for _ in range(4)] == [201] * 4
    shop.github.scene.limits(enforced=True)
    refused = shop.owner("POST", comments, body="x")
    assert (refused.status_code, refused.headers["retry-after"]) == (403, "60")
    assert shop.owner("GET", comments).status_code == 200
    assert shop.owner.read("rate_limit")["rate"]["limit"] == 5000
