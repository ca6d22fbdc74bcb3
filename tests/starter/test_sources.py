"""What a rehearsal works on is a copy, and what it was copied from stays as it was."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from domain.errors import NotFound, Unavailable
from starter.sources import copy_of, require_source, uncommitted


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    return subprocess.run(
        ["git", "-C", folder, *identity, *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "my shop"
    (folder / "src").mkdir(parents=True)
    (folder / "src/größe.py").write_text("SIZE = 1\n")
    return folder


@pytest.fixture
def repository(shop: Path) -> Path:
    git(shop, "init", "--quiet", "--initial-branch", "trunk")
    git(shop, "add", "--all")
    git(shop, "commit", "--quiet", "--message", "first")
    return shop


def test_a_plain_directory_becomes_one_commit_on_main(shop, tmp_path):
    (shop / "src/__pycache__").mkdir()
    (shop / "src/__pycache__/a.pyc").write_text("")
    copy = copy_of(shop, tmp_path / "copy.git")
    assert git(copy, "-c", "core.quotepath=off", "ls-tree", "-r", "--name-only", "main") == "src/größe.py"
    assert git(copy, "rev-list", "--count", "main") == "1"
    assert not (shop / ".git").exists()


def test_a_directory_inside_another_repository_is_still_a_plain_one(repository, tmp_path):
    copy = copy_of(repository / "src", tmp_path / "copy.git")
    assert git(copy, "-c", "core.quotepath=off", "ls-tree", "-r", "--name-only", "main") == "größe.py"


def test_a_repository_keeps_its_branches_and_its_own_default(repository, tmp_path):
    git(repository, "branch", "other")
    copy = copy_of(repository, tmp_path / "copy.git")
    assert git(copy, "symbolic-ref", "HEAD") == "refs/heads/trunk"
    assert git(copy, "rev-parse", "other") == git(repository, "rev-parse", "HEAD")


def test_a_work_tree_and_a_checkout_by_commit_can_be_copied(repository, tmp_path):
    tree = tmp_path / "tree"
    git(repository, "worktree", "add", "--quiet", "--detach", str(tree))
    git(tree, "commit", "--quiet", "--allow-empty", "--message", "on no branch")
    copy = copy_of(tree, tmp_path / "copy.git")
    assert git(copy, "rev-parse", "main") == git(tree, "rev-parse", "HEAD")
    assert git(copy, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_a_bare_repository_can_be_copied(repository, tmp_path):
    bare = copy_of(repository, tmp_path / "bare.git")
    assert git(copy_of(bare, tmp_path / "copy.git"), "symbolic-ref", "HEAD") == "refs/heads/trunk"


def test_changes_that_no_commit_has_are_noticed(repository):
    assert not uncommitted(repository)
    (repository / "new.py").write_text("")
    assert uncommitted(repository)


def test_what_cannot_be_copied_is_one_clear_sentence(shop, tmp_path):
    (tmp_path / "empty").mkdir()
    git(shop, "init", "--quiet")
    faults = {tmp_path / "nowhere": "is no directory", tmp_path / "empty": "nothing in", shop: "has no commit yet"}
    for number, (source, fault) in enumerate(faults.items()):
        with pytest.raises(NotFound, match=fault):
            require_source(source)
        with pytest.raises(NotFound, match=fault):
            copy_of(source, tmp_path / f"copy-{number}.git")


def test_one_file_of_those_that_cannot_be_copied_is_told(shop, tmp_path):
    for name in ("one", "two"):
        os.mkfifo(shop / name)
    with pytest.raises(Unavailable, match=r"shop/(one|two) cannot be copied: ") as refused:
        copy_of(shop, tmp_path / "copy.git")
    assert "\n" not in str(refused.value)


def test_what_can_be_copied_is_known_beforehand(shop, repository):
    require_source(shop)
    require_source(repository)


def test_no_script_of_the_repository_runs_while_it_is_copied(repository, tmp_path):
    trap = f"#!/bin/sh\ntouch '{tmp_path}/trapped'\n"
    for name in ("post-checkout", "pre-commit", "fsmonitor"):
        hook = repository / ".git/hooks" / name
        hook.write_text(trap)
        hook.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(repository / ".git/hooks/fsmonitor"))
    copy_of(repository, tmp_path / "copy.git")
    assert not uncommitted(repository)
    assert not (tmp_path / "trapped").exists()
