"""Comments, reviews, checks, statuses and plain issues."""

from __future__ import annotations

import pytest

from tests.rehearsal.conftest import NAME, Installed, Shop

PULL = f"repos/{NAME}/pulls/1"


@pytest.fixture(autouse=True)
def head(shop: Shop) -> str:
    sha: str = shop.open("topic")["head"]["sha"]
    return sha


def test_a_comment_is_edited_in_place(shop: Shop) -> None:
    made = shop.owner("POST", f"repos/{NAME}/issues/1/comments", body="First").json()
    shop.owner("PATCH", f"repos/{NAME}/issues/comments/{made['id']}", body="Second")
    [comment] = shop.owner.read(f"repos/{NAME}/issues/1/comments")
    assert (comment["id"], comment["body"], comment["user"]["login"]) == (made["id"], "Second", "acme")
    assert comment["author_association"] == "OWNER"


def test_a_stranger_edits_nobody_elses_comment(shop: Shop) -> None:
    made = shop.owner("POST", f"repos/{NAME}/issues/1/comments", body="First").json()
    stranger = shop.person("mallory")
    assert stranger("PATCH", f"repos/{NAME}/issues/comments/{made['id']}", body="Mine").status_code == 403


def test_reviews_are_kept_with_the_commit_they_saw(shop: Shop, head: str) -> None:
    bob = shop.person("bob", "write")
    bob(
        "POST",
        f"{PULL}/reviews",
        event="REQUEST_CHANGES",
        body="No",
        comments=[{"path": "topic.txt", "line": 1, "body": "here"}],
    )
    moved = shop.push("topic", {"more.txt": "more"}, start="origin/topic")
    bob("POST", f"{PULL}/reviews", event="APPROVE")
    reviews = shop.owner.read(f"{PULL}/reviews")
    assert [(review["state"], review["commit_id"]) for review in reviews] == [
        ("CHANGES_REQUESTED", head),
        ("APPROVED", moved),
    ]
    [comment] = shop.owner.read(f"{PULL}/comments")
    assert (comment["path"], comment["line"], comment["body"]) == ("topic.txt", 1, "here")
    assert comment["pull_request_review_id"] == reviews[0]["id"]
    dismissed = shop.owner("PUT", f"{PULL}/reviews/{reviews[0]['id']}/dismissals", message="fixed")
    assert dismissed.json()["state"] == "DISMISSED"


def test_nobody_approves_their_own_pull_request(shop: Shop) -> None:
    refused = shop.owner("POST", f"{PULL}/reviews", event="APPROVE")
    assert refused.status_code == 422
    assert refused.json()["errors"] == ["Can not approve your own pull request"]


def test_the_latest_check_run_of_each_name_counts(shop: Shop, installed: Installed, head: str) -> None:
    ci = installed.client()
    runs = f"repos/{NAME}/check-runs"
    first = ci("POST", runs, name="tests", head_sha=head).json()
    assert (first["status"], first["conclusion"]) == ("queued", None)
    failed = ci("PATCH", f"{runs}/{first['id']}", conclusion="failure", output={"title": "2 failed", "summary": "x"})
    assert (failed.json()["status"], failed.json()["output"]["title"]) == ("completed", "2 failed")
    ci("POST", runs, name="tests", head_sha=head, conclusion="success")
    listed = shop.owner.read(f"repos/{NAME}/commits/topic/check-runs")
    assert listed["total_count"] == 1
    assert [run["conclusion"] for run in listed["check_runs"]] == ["success"]


def test_a_check_run_on_an_unknown_commit_is_refused(installed: Installed) -> None:
    answer = installed.client()("POST", f"repos/{NAME}/check-runs", name="tests", head_sha="0" * 40)
    assert answer.status_code == 422


def test_statuses_combine_and_none_is_pending(shop: Shop, head: str) -> None:
    combined = f"repos/{NAME}/commits/{head}/status"
    assert shop.owner.read(combined)["state"] == "pending"
    shop.owner("POST", f"repos/{NAME}/statuses/{head}", state="failure", context="lint")
    assert shop.owner.read(combined)["state"] == "failure"
    shop.owner("POST", f"repos/{NAME}/statuses/{head}", state="success", context="lint")
    found = shop.owner.read(combined)
    assert (found["state"], found["total_count"]) == ("success", 1)


def test_an_unknown_path_or_method_is_not_found(shop: Shop) -> None:
    for method, path in (("GET", f"repos/{NAME}/nothing"), ("PUT", f"repos/{NAME}/pulls"), ("GET", "nothing/at/all")):
        assert shop.owner(method, path).json()["message"] == "Not Found"


def test_an_issue_shares_its_numbers_with_pull_requests(shop: Shop) -> None:
    made = shop.owner("POST", f"repos/{NAME}/issues", title="Plan", body="- [ ] one", labels=["plan"]).json()
    assert (made["number"], "pull_request" in made) == (2, False)
    edited = shop.owner("PATCH", f"repos/{NAME}/issues/2", body="- [x] one", state="closed").json()
    assert (edited["body"], edited["state"]) == ("- [x] one", "closed")
    assert [issue["number"] for issue in shop.owner.read(f"repos/{NAME}/issues")] == [1]
    assert "pull_request" in shop.owner.read(f"repos/{NAME}/issues/1")
