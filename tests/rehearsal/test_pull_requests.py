"""Pull requests: what GitHub refuses and in which words, and what becomes of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.rehearsal.conftest import NAME, Ear, Installed, Shop, basic, eventually, git

PULLS = f"repos/{NAME}/pulls"


def problems(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 422, answer.text
    body = answer.json()
    assert body["message"] == "Validation Failed"
    return body["errors"]


def messages(answer: httpx.Response) -> list[str]:
    return [problem["message"] for problem in problems(answer)]


def test_a_pull_request_tells_what_git_knows_of_it(shop: Shop) -> None:
    sha = shop.push("topic", {"price.py": "PRICE = 2\nTAX = 1\n"})
    pull = shop.open("topic", body="Why")
    assert pull["number"] == 1
    assert (pull["head"]["sha"], pull["head"]["label"]) == (sha, "acme:topic")
    assert pull["base"]["sha"] == shop.tip("main")
    assert (pull["commits"], pull["additions"], pull["deletions"], pull["changed_files"]) == (1, 2, 1, 1)
    assert (pull["mergeable"], pull["mergeable_state"], pull["merged"]) == (True, "clean", False)
    assert pull["html_url"] == f"{shop.github.url}{NAME}/pull/1"
    assert shop.git("ls-remote", "origin", "refs/pull/1/head").startswith(sha)


def test_a_second_pull_request_for_the_same_head_and_base_is_refused(shop: Shop) -> None:
    shop.open("topic")
    again = shop.owner("POST", PULLS, title="Again", head="topic", base="main")
    assert problems(again) == [
        {
            "resource": "PullRequest",
            "code": "custom",
            "message": "A pull request already exists for acme:topic.",
        }
    ]


def test_the_same_head_may_go_into_another_base(shop: Shop) -> None:
    shop.push("release", {"release.txt": "1"})
    shop.open("topic")
    assert shop.open("topic", base="release")["number"] == 2


def test_of_concurrent_creates_one_makes_the_pull_request(shop: Shop) -> None:
    shop.push("topic", {"a.txt": "a"})
    owner = shop.owner

    def create(_: int) -> httpx.Response:
        return owner("POST", PULLS, title="Once", head="topic", base="main")

    with ThreadPoolExecutor(5) as pool:
        answers = sorted(answer.status_code for answer in pool.map(create, range(5)))
    assert answers == [201, 422, 422, 422, 422]
    assert len(shop.owner.read(PULLS)) == 1


def test_a_branch_without_new_commits_opens_nothing(shop: Shop) -> None:
    shop.git("push", "--quiet", "origin", "origin/main:refs/heads/same")
    answer = shop.owner("POST", PULLS, title="Empty", head="same", base="main")
    assert messages(answer) == ["No commits between main and same"]


@pytest.mark.parametrize(
    ("head", "base", "fields"),
    [
        ("nowhere", "main", ["head"]),
        ("main", "nowhere", ["base"]),
        ("x", "y", ["head", "base"]),
        ("bob:main", "main", ["head"]),
    ],
)
def test_an_unknown_head_or_base_is_named(shop: Shop, head: str, base: str, fields: list[str]) -> None:
    answer = shop.owner("POST", PULLS, title="Lost", head=head, base=base)
    assert problems(answer) == [{"resource": "PullRequest", "field": name, "code": "invalid"} for name in fields]


def test_a_branch_with_another_history_is_refused(shop: Shop) -> None:
    shop.git("checkout", "--quiet", "--orphan", "alien")
    shop.git("commit", "--quiet", "--message", "from nowhere")
    shop.git("push", "--quiet", "origin", "alien")
    answer = shop.owner("POST", PULLS, title="Alien", head="alien", base="main")
    assert messages(answer) == ["The alien branch has no history in common with main"]


def test_a_body_may_have_65536_characters_and_no_more(shop: Shop) -> None:
    shop.push("topic", {"a.txt": "a"})
    too_long = shop.owner("POST", PULLS, title="Long", head="topic", base="main", body="x" * 65_537)
    assert messages(too_long) == ["body is too long (maximum is 65536 characters)"]
    assert shop.open("topic", body="x" * 65_536)["number"] == 1


def test_what_is_missing_is_named(shop: Shop) -> None:
    answer = shop.owner("POST", PULLS, head="topic", base="main")
    assert answer.status_code == 422
    assert answer.json()["message"] == 'Invalid request.\n\n"title" wasn\'t supplied.'
    assert shop.owner.http.post(PULLS, content=b"{").json()["message"] == "Problems parsing JSON"


def test_the_head_filter_wants_an_owner_and_ignores_a_bare_branch(shop: Shop) -> None:
    shop.open("one")
    shop.open("two")
    owner = shop.owner
    assert [pull["head"]["ref"] for pull in owner.read(f"{PULLS}?head=acme:one")] == ["one"]
    assert owner.read(f"{PULLS}?head=bob:one") == []
    assert [pull["head"]["ref"] for pull in owner.read(f"{PULLS}?head=one")] == ["two", "one"]


def test_lists_are_filtered_by_state_and_base_and_come_in_pages(shop: Shop) -> None:
    shop.push("release", {"release.txt": "1"})
    shop.open("one")
    shop.open("two", base="release")
    shop.owner("PATCH", f"{PULLS}/1", state="closed")
    owner = shop.owner
    assert [pull["number"] for pull in owner.read(f"{PULLS}?state=closed")] == [1]
    assert [pull["number"] for pull in owner.read(f"{PULLS}?state=all&base=release")] == [2]
    first = owner("GET", f"{PULLS}?state=all&per_page=1")
    assert [pull["number"] for pull in first.json()] == [2]
    following = httpx.URL(first.links["next"]["url"])
    assert [pull["number"] for pull in owner.http.get(following).json()] == [1]
    assert "next" not in owner.http.get(following).links


def test_a_fork_with_the_same_branch_name_is_another_head(shop: Shop, tmp_path: Any) -> None:
    fork = shop.github.scene.fork(NAME, "mallory")
    token = shop.github.scene.personal_token("mallory")
    away = tmp_path / "fork"
    git(tmp_path, "clone", "--quiet", f"{shop.github.url}{fork}.git", str(away), header=basic(token))
    (away / "evil.txt").write_text("evil")
    git(away, "checkout", "--quiet", "-b", "topic")
    git(away, "add", ".")
    git(away, "commit", "--quiet", "--message", "evil")
    git(away, "push", "--quiet", "origin", "topic", header=basic(token))
    shop.open("topic")
    theirs = shop.client(token)("POST", PULLS, title="Mine too", head="mallory:topic", base="main").json()

    assert theirs["head"]["repo"]["full_name"] == "mallory/shop"
    assert theirs["head"]["repo"]["fork"] is True
    assert [pull["number"] for pull in shop.owner.read(f"{PULLS}?head=acme:topic")] == [1]
    assert [pull["number"] for pull in shop.owner.read(f"{PULLS}?head=mallory:topic")] == [2]
    landed = shop.owner("PUT", f"{PULLS}/2/merge", sha=theirs["head"]["sha"])
    assert landed.status_code == 200
    shop.git("fetch", "--quiet", "origin")
    assert shop.git("show", "origin/main:evil.txt") == "evil"


def test_a_push_moves_the_head_of_its_open_pull_request(shop: Shop) -> None:
    shop.open("topic")
    sha = shop.push("topic", {"more.txt": "more"}, start="origin/topic")
    assert shop.pull(1)["head"]["sha"] == sha
    assert shop.pull(1)["commits"] == 2


def test_a_conflict_makes_it_unmergeable_and_a_merge_is_refused(shop: Shop) -> None:
    shop.push("topic", {"price.py": "PRICE = 2\n"})
    shop.open("topic")
    shop.push("main", {"price.py": "PRICE = 3\n"})
    pull = shop.pull(1)
    assert (pull["mergeable"], pull["mergeable_state"]) == (False, "dirty")
    refused = shop.owner("PUT", f"{PULLS}/1/merge")
    assert (refused.status_code, refused.json()["message"]) == (405, "Pull Request is not mergeable")


def test_a_closed_pull_request_opens_again(shop: Shop) -> None:
    shop.open("topic")
    closed = shop.owner("PATCH", f"{PULLS}/1", state="closed").json()
    assert closed["state"] == "closed"
    assert closed["closed_at"]
    sha = shop.push("topic", {"more.txt": "more"}, start="origin/topic")
    assert shop.pull(1)["head"]["sha"] != sha
    opened = shop.owner("PATCH", f"{PULLS}/1", state="open").json()
    assert (opened["state"], opened["closed_at"], opened["head"]["sha"]) == ("open", None, sha)


def test_a_merged_pull_request_never_opens_again(shop: Shop) -> None:
    shop.open("topic")
    shop.owner("PUT", f"{PULLS}/1/merge")
    answer = shop.owner("PATCH", f"{PULLS}/1", state="open")
    assert messages(answer) == ["state cannot be changed. The pull request has been merged."]


def test_deleting_the_branch_closes_and_it_opens_again_only_with_the_branch(shop: Shop) -> None:
    sha = shop.open("topic")["head"]["sha"]
    assert shop.owner("DELETE", f"repos/{NAME}/git/refs/heads/topic").status_code == 204
    assert shop.pull(1)["state"] == "closed"
    answer = shop.owner("PATCH", f"{PULLS}/1", state="open")
    assert messages(answer) == ["state cannot be changed. The topic branch has been deleted."]
    shop.git("push", "--quiet", "origin", f"{sha}:refs/heads/topic")
    assert shop.owner("PATCH", f"{PULLS}/1", state="open").json()["state"] == "open"


def test_a_branch_that_was_force_pushed_while_closed_never_opens_again(shop: Shop) -> None:
    shop.open("topic")
    shop.owner("PATCH", f"{PULLS}/1", state="closed")
    shop.push("topic", {"other.txt": "other"}, force=True)
    answer = shop.owner("PATCH", f"{PULLS}/1", state="open")
    assert messages(answer) == ["state cannot be changed. The topic branch was force-pushed or recreated."]
    assert shop.open("topic")["number"] == 2


def test_a_closed_pull_request_does_not_open_beside_its_successor(shop: Shop) -> None:
    shop.open("topic")
    shop.owner("PATCH", f"{PULLS}/1", state="closed")
    shop.open("topic")
    answer = shop.owner("PATCH", f"{PULLS}/1", state="open")
    assert messages(answer) == ["A pull request already exists for acme:topic."]


def test_a_branch_that_is_reset_onto_its_base_closes_its_pull_request(shop: Shop) -> None:
    shop.open("topic")
    shop.git("push", "--quiet", "--force", "origin", "origin/main:refs/heads/topic")
    pull = shop.pull(1)
    assert (pull["state"], pull["merged"]) == ("closed", False)


def test_a_base_that_is_renamed_takes_its_pull_requests_along(shop: Shop) -> None:
    shop.open("topic")
    renamed = shop.owner("POST", f"repos/{NAME}/branches/main/rename", new_name="trunk")
    assert (renamed.status_code, renamed.json()["name"]) == (201, "trunk")
    pull = shop.pull(1)
    assert (pull["state"], pull["base"]["ref"]) == ("open", "trunk")
    assert shop.owner.read(f"repos/{NAME}")["default_branch"] == "trunk"


def test_a_base_that_is_deleted_closes_its_pull_requests(shop: Shop) -> None:
    shop.push("release", {"release.txt": "1"})
    shop.open("topic", base="release")
    shop.git("push", "--quiet", "origin", ":release")
    assert shop.pull(1)["state"] == "closed"


def test_titles_bodies_and_bases_can_be_edited(shop: Shop) -> None:
    shop.push("release", {"release.txt": "1"})
    shop.open("topic")
    edited = shop.owner("PATCH", f"{PULLS}/1", title="Better", body="Because", base="release").json()
    assert (edited["title"], edited["body"], edited["base"]["ref"]) == ("Better", "Because", "release")
    assert shop.owner("PATCH", f"{PULLS}/1", title=" ").status_code == 422


def test_labels_assignees_and_reviewers_come_later(shop: Shop) -> None:
    shop.open("topic")
    shop.github.scene.collaborator(NAME, "bob")
    owner = shop.owner
    assert [label["name"] for label in owner("POST", f"repos/{NAME}/issues/1/labels", labels=["new"]).json()] == ["new"]
    owner("POST", f"repos/{NAME}/issues/1/assignees", assignees=["bob", "nobody"])
    owner("POST", f"{PULLS}/1/requested_reviewers", reviewers=["bob"])
    assert owner("POST", f"{PULLS}/1/requested_reviewers", reviewers=["nobody"]).status_code == 422
    pull = shop.pull(1)
    assert [label["name"] for label in pull["labels"]] == ["new"]
    assert [person["login"] for person in pull["assignees"]] == ["bob"]
    assert [person["login"] for person in pull["requested_reviewers"]] == ["bob"]


def test_the_diff_comes_by_media_type(shop: Shop) -> None:
    shop.push("topic", {"price.py": "PRICE = 2\n"})
    shop.open("topic")
    diff = shop.owner("GET", f"{PULLS}/1", headers={"Accept": "application/vnd.github.diff"}).text
    assert "-PRICE = 1\n+PRICE = 2" in diff


READY = """mutation($pull: ID!) {
  markPullRequestReadyForReview(input: {pullRequestId: $pull}) { pullRequest { number isDraft } }
}"""


def graphql(client: Any, query: str, **variables: Any) -> Any:
    answer = client("POST", "graphql", query=query, variables=variables)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_draft_is_made_ready_by_graphql_and_whoever_listens_is_told_once(
    shop: Shop, installed: Installed, ear: Ear
) -> None:
    shop.github.scene.app_webhook("watchbill", ear.url, Ear.SECRET)
    pull = shop.open("topic", draft=True)
    client = shop.client(installed.mint()["token"])
    for _ in range(2):
        found = graphql(client, READY, pull=pull["node_id"])
        assert found == {"data": {"markPullRequestReadyForReview": {"pullRequest": {"number": 1, "isDraft": False}}}}
    assert shop.owner.read(f"{PULLS}/1")["draft"] is False
    eventually(lambda: "pull_request.ready_for_review" in ear.names())
    assert ear.names().count("pull_request.ready_for_review") == 1


def test_graphql_says_what_is_wrong_with_status_200(shop: Shop) -> None:
    shop.github.scene.collaborator(NAME, "bob", "read")
    node = shop.open("topic", draft=True)["node_id"]
    bob = shop.client(shop.github.scene.personal_token("bob"))
    assert graphql(bob, READY, pull=node)["errors"][0]["type"] == "FORBIDDEN"
    missing = graphql(shop.owner, READY, pull="PR_999")
    assert missing["errors"][0]["type"] == "NOT_FOUND"
    assert missing["data"] == {"markPullRequestReadyForReview": None}
    shop.owner("PATCH", f"{PULLS}/1", state="closed")
    assert graphql(shop.owner, READY, pull=node)["errors"][0]["type"] == "UNPROCESSABLE"
    assert "Cannot query field" in graphql(shop.owner, "{ nothing }")["errors"][0]["message"]
    assert "must be specified" in shop.owner("POST", "graphql").json()["errors"][0]["message"]
    assert shop.client("")("POST", "graphql", query=READY).status_code == 401
