"""Merging: the guards, the three methods, and a base that really moves."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from rehearsal.git import Bare
from rehearsal.server import Rehearsal
from rehearsal.state import State
from tests.rehearsal.conftest import NAME, Installed, Shop, git

MERGE = f"repos/{NAME}/pulls/1/merge"


def log(shop: Shop) -> list[str]:
    return git(shop.bare, "log", "--format=%s", "main").splitlines()


def test_a_merge_commit_lands_on_the_base(shop: Shop) -> None:
    head = shop.open("topic")["head"]["sha"]
    answer = shop.owner("PUT", MERGE, sha=head)
    assert answer.json() == {
        "sha": shop.tip("main"),
        "merged": True,
        "message": "Pull Request successfully merged",
    }
    pull = shop.pull(1)
    assert (pull["state"], pull["merged"], pull["merge_commit_sha"]) == ("closed", True, shop.tip("main"))
    assert (pull["merged_by"]["login"], pull["closed_at"]) == ("acme", pull["merged_at"])
    assert shop.owner("GET", MERGE).status_code == 204
    assert log(shop)[0] == "Merge pull request #1 from acme/topic"


def test_a_squash_leaves_one_commit(shop: Shop) -> None:
    shop.push("topic", {"a.txt": "a"})
    shop.push("topic", {"b.txt": "b"}, start="origin/topic")
    shop.open("topic")
    answer = shop.owner("PUT", MERGE, merge_method="squash", commit_title="Both")
    assert shop.pull(1)["merge_commit_sha"] == answer.json()["sha"] == shop.tip("main")
    assert log(shop) == ["Both", "Initial commit"]
    assert git(shop.bare, "ls-tree", "--name-only", "main").split() == [
        "README.md",
        "a.txt",
        "b.txt",
        "price.py",
    ]


def test_a_rebase_replays_each_commit(shop: Shop) -> None:
    shop.push("topic", {"a.txt": "a"})
    shop.push("topic", {"b.txt": "b"}, start="origin/topic")
    shop.open("topic")
    shop.push("main", {"c.txt": "c"})
    assert shop.owner("PUT", MERGE, merge_method="rebase").status_code == 200
    assert log(shop) == ["Change b.txt", "Change a.txt", "Change c.txt", "Initial commit"]
    assert git(shop.bare, "log", "-1", "--format=%an %ce", "main") == "Ada noreply@github.com"


def test_a_stale_sha_is_refused_and_nothing_moves(shop: Shop) -> None:
    stale = shop.open("topic")["head"]["sha"]
    shop.push("topic", {"late.txt": "late"}, start="origin/topic")
    before = shop.tip("main")
    refused = shop.owner("PUT", MERGE, sha=stale)
    assert refused.status_code == 409
    assert refused.json()["message"] == "Head branch was modified. Review and try the merge again."
    assert (shop.tip("main"), shop.pull(1)["state"]) == (before, "open")


def test_of_concurrent_merges_one_lands(shop: Shop) -> None:
    shop.open("topic")
    owner = shop.owner
    with ThreadPoolExecutor(3) as pool:
        answers = sorted(answer.status_code for answer in pool.map(lambda _: owner("PUT", MERGE), range(3)))
    assert answers == [200, 405, 405]
    assert len(log(shop)) == 3


def test_a_draft_does_not_merge(shop: Shop) -> None:
    shop.open("topic", draft=True)
    refused = shop.owner("PUT", MERGE)
    assert (refused.status_code, refused.json()["message"]) == (405, "Pull Request is still a draft")


def test_a_method_that_the_repository_forbids_is_refused(shop: Shop) -> None:
    shop.github.scene.repository(NAME, merge_methods=["squash"])
    shop.open("topic")
    refused = shop.owner("PUT", MERGE)
    assert refused.status_code == 405
    assert refused.json()["message"] == "Merge commits are not allowed on this repository."


def test_required_checks_and_reviews_hold_a_merge_back(shop: Shop, installed: Installed) -> None:
    shop.github.scene.protect(NAME, "main", checks=["tests"], reviews=1)
    pull = shop.open("topic")
    head = pull["head"]["sha"]
    assert pull["mergeable_state"] == "blocked"
    refused = shop.owner("PUT", MERGE)
    assert (refused.status_code, refused.json()["message"]) == (
        405,
        'Required status check "tests" is expected.',
    )
    ci = installed.client()
    ci("POST", f"repos/{NAME}/check-runs", name="tests", head_sha=head, conclusion="success")
    refused = shop.owner("PUT", MERGE)
    assert refused.json()["message"] == "At least 1 approving review is required by reviewers with write access."
    shop.person("mallory")("POST", f"repos/{NAME}/pulls/1/reviews", event="APPROVE")
    assert shop.owner("PUT", MERGE).status_code == 405
    shop.person("bob", "write")("POST", f"repos/{NAME}/pulls/1/reviews", event="APPROVE")
    assert shop.owner("PUT", MERGE).status_code == 200


def test_a_pull_request_whose_commits_are_pushed_to_the_base_is_merged(shop: Shop) -> None:
    shop.open("topic")
    shop.git("push", "--quiet", "origin", "topic:main")
    pull = shop.pull(1)
    assert (pull["merged"], pull["merge_commit_sha"]) == (True, shop.tip("main"))


def test_the_branch_can_be_brought_up_to_date(shop: Shop) -> None:
    head = shop.open("topic")["head"]["sha"]
    shop.push("main", {"c.txt": "c"})
    stale = shop.owner("PUT", f"repos/{NAME}/pulls/1/update-branch", expected_head_sha="0" * 40)
    assert stale.status_code == 422
    assert shop.owner("PUT", f"repos/{NAME}/pulls/1/update-branch", expected_head_sha=head).status_code == 202
    pull = shop.pull(1)
    assert pull["head"]["sha"] not in (head, shop.tip("main"))
    assert pull["commits"] == 2


@pytest.mark.parametrize("method", ["squash", "rebase"])
def test_a_merge_that_was_cut_off_by_a_crash_is_found_at_the_next_start(shop: Shop, method: str) -> None:
    """Between git's move of the base and our own record of it the process may die."""
    head = shop.open("topic")["head"]["sha"]
    folder = shop.github.folder
    shop.github.stop()
    state = State(folder)
    bare = Bare(shop.bare)
    base = bare.branches()["main"]
    landed = (
        bare.rebased(base, head)
        if method == "rebase"
        else bare.commit_tree(str(bare.merge_tree(base, head)), [base], "x")
    )
    assert landed
    state.run("UPDATE pull SET landing = ?", landed)
    state.close()
    bare.update("refs/heads/main", landed, base)

    with Rehearsal(folder) as again:
        shop.clients.clear()
        after = Shop(again, shop.token, shop.clone)
        pull = after.pull(1)
        assert (pull["merged"], pull["merge_commit_sha"]) == (True, landed)
    shop.github.start()
