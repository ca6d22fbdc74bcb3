"""Real git against it: clone, fetch and push, with every kind of authentication."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import httpx

from rehearsal.server import Rehearsal
from tests.rehearsal.conftest import NAME, Installed, Shop, basic, git


def test_a_public_repository_is_cloned_by_anybody(shop: Shop, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", f"{shop.github.url}{NAME}.git", "anyone")
    git(tmp_path, "clone", "--quiet", f"{shop.github.url}{NAME}", "without-suffix")
    assert (tmp_path / "anyone" / "price.py").read_text() == "PRICE = 1\n"


def test_a_push_without_a_token_is_asked_for_one(shop: Shop) -> None:
    refs = f"{shop.github.url}{NAME}.git/info/refs?service=git-receive-pack"
    answer = httpx.get(refs, trust_env=False)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Basic realm="GitHub"')
    refused = git(shop.clone, "push", "origin", "HEAD:refs/heads/topic", check=False)
    assert "could not read Username" in refused


def test_a_private_repository_is_hidden_from_git_too(rehearsal: Rehearsal, shop: Shop, tmp_path: Path) -> None:
    rehearsal.scene.repository("acme/secret", private=True)
    url = f"{rehearsal.url}acme/secret.git"
    stranger = rehearsal.scene.personal_token("mallory")
    assert "not found" in git(tmp_path, "clone", url, "a", header=basic(stranger), check=False)
    assert "could not read Username" in git(tmp_path, "clone", url, "b", header=basic("ghp_wrong"), check=False)
    git(tmp_path, "clone", "--quiet", url, "c", header=basic(shop.token))


def test_reading_is_not_writing(shop: Shop, installed: Installed) -> None:
    reader = basic(installed.mint(permissions={"contents": "read"})["token"])
    refused = git(shop.clone, "push", "origin", "HEAD:refs/heads/topic", header=reader, check=False)
    assert "403" in refused
    stranger = basic(shop.github.scene.personal_token("mallory"))
    assert "403" in git(shop.clone, "push", "origin", "HEAD:refs/heads/x", header=stranger, check=False)


def test_an_installation_token_pushes_as_basic_and_as_bearer(shop: Shop, installed: Installed) -> None:
    token = installed.mint(permissions={"contents": "write"})["token"]
    git(shop.clone, "push", "--quiet", "origin", "HEAD:refs/heads/one", header=basic(token))
    git(shop.clone, "push", "--quiet", "origin", "HEAD:refs/heads/two", header=f"bearer {token}")
    names = [branch["name"] for branch in shop.owner.read(f"repos/{NAME}/branches")]
    assert names == ["main", "one", "two"]


def test_a_large_push_arrives_in_chunks(shop: Shop) -> None:
    """Above `http.postBuffer` git sends a chunked body, after a first empty request."""
    (shop.clone / "large.bin").write_bytes(os.urandom(3_000_000))
    shop.git("checkout", "--quiet", "-b", "large")
    shop.git("add", ".")
    shop.git("commit", "--quiet", "--message", "large")
    shop.git("-c", "http.postBuffer=65536", "push", "--quiet", "origin", "large")
    assert shop.tip("large") == shop.git("rev-parse", "HEAD")


def test_a_gzipped_body_is_understood(shop: Shop) -> None:
    body = b"0014command=ls-refs\n0001" + b"0009peel\n" + b"0000"
    answer = httpx.post(
        f"{shop.github.url}{NAME}.git/git-upload-pack",
        content=gzip.compress(body),
        headers={
            "Content-Type": "application/x-git-upload-pack-request",
            "Content-Encoding": "gzip",
            "Git-Protocol": "version=2",
        },
        trust_env=False,
    )
    assert f"{shop.tip('main')} refs/heads/main".encode() in answer.content


def test_a_lease_holds_against_somebody_elses_push(shop: Shop) -> None:
    shop.git("push", "--quiet", "--force-with-lease=refs/heads/topic:", "origin", "HEAD:refs/heads/topic")
    again = ("push", "--porcelain", "--force-with-lease=refs/heads/topic:", "origin", "HEAD:refs/heads/topic")
    assert "=\tHEAD:refs/heads/topic\t[up to date]" in shop.git(*again)
    shop.git("commit", "--quiet", "--allow-empty", "--message", "mine")
    assert "stale info" in shop.git(*again, check=False)


def test_nobody_pushes_to_a_pull_requests_ref(shop: Shop) -> None:
    shop.open("topic")
    refused = shop.git("push", "origin", "HEAD:refs/pull/1/head", check=False)
    assert "deny updating a hidden ref" in refused or "rejected" in refused


def test_the_default_branch_is_not_deleted(shop: Shop) -> None:
    shop.git("push", "origin", ":main", check=False)
    assert shop.tip("main")


def test_a_commit_is_fetched_by_its_id(shop: Shop) -> None:
    head = shop.open("topic")["head"]["sha"]
    shop.owner("DELETE", f"repos/{NAME}/git/refs/heads/topic")
    shop.git("fetch", "--quiet", "origin", head)
    assert shop.git("rev-parse", "FETCH_HEAD") == head


def test_the_old_dumb_protocol_is_refused(shop: Shop) -> None:
    answer = httpx.get(f"{shop.github.url}{NAME}.git/info/refs", trust_env=False)
    assert answer.status_code == 403


def test_a_repository_comes_from_a_local_one_with_its_default_branch(rehearsal: Rehearsal, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "--quiet", "--initial-branch=trunk")
    git(source, "commit", "--quiet", "--allow-empty", "--message", "first")
    git(source, "branch", "other")
    git(source, "tag", "v1")
    rehearsal.scene.repository("acme/copy", source=source)
    git(tmp_path, "clone", "--quiet", f"{rehearsal.url}acme/copy.git", "copy")
    assert git(tmp_path / "copy", "branch", "--show-current") == "trunk"
    assert "refs/heads/other" in git(tmp_path / "copy", "ls-remote", "origin")
    assert "refs/tags/v1" in git(tmp_path / "copy", "ls-remote", "origin")


def test_a_repository_may_come_from_a_shallow_clone(rehearsal: Rehearsal, shop: Shop, tmp_path: Path) -> None:
    shop.push("main", {"more.txt": "more"})
    git(tmp_path, "clone", "--quiet", "--depth=1", shop.bare.as_uri(), "shallow")
    rehearsal.scene.repository("acme/copy", source=tmp_path / "shallow")
    git(tmp_path, "clone", "--quiet", f"{rehearsal.url}acme/copy.git", "copy")
    assert (tmp_path / "copy" / "more.txt").read_text() == "more"
