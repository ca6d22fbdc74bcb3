"""Workspaces: whole or not there, an agent's own, and deleted only when their work is preserved."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from domain.errors import NotFound, WatchbillError
from forge.lock import held
from forge.mirror import Mirror
from tests.forge.desk import BRANCH, TASK, Desk, Remote, Unprivileged, names, nest, plain_git


def test_a_workspace_is_on_the_tasks_branch_and_can_be_compared_with_the_base(desk: Desk) -> None:
    assert plain_git(desk.workspace, "symbolic-ref", "HEAD") == f"refs/heads/{BRANCH}"
    assert plain_git(desk.workspace, "status", "--porcelain") == ""
    (desk.workspace / "README.md").write_text("better\n")
    assert "+better" in plain_git(desk.workspace, "diff", "main")
    assert plain_git(desk.workspace, "fsck", "--strict") == ""


def test_a_workspace_starts_from_the_remote_branch_where_that_exists(desk: Desk, tmp_path: Path) -> None:
    theirs = desk.remote.commit(BRANCH, {"person.txt": "mine"})
    heads = desk.mirror.fetch(desk.remote.url, None, "main", BRANCH)
    again = tmp_path / "again"
    desk.mirror.cut(again, start=theirs, branch=BRANCH, base="main", base_sha=str(heads["main"]))
    assert (again / "person.txt").read_text() == "mine"
    assert plain_git(again, "diff", "--name-only", "main") == "person.txt"


def test_an_agent_can_commit_without_any_configuration_of_its_own(desk: Desk) -> None:
    (desk.workspace / "a").write_text("1")
    surroundings = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null"}
    for command in (["add", "a"], ["commit", "-qm", "from the agent"]):
        subprocess.run(["git", *command], cwd=desk.workspace, env=surroundings, check=True)


def test_a_workspace_shares_nothing_with_our_repository_and_knows_no_remote(desk: Desk) -> None:
    objects = desk.workspace / ".git" / "objects"
    assert not (objects / "info" / "alternates").exists()
    assert {path.stat().st_nlink for path in objects.rglob("*") if path.is_file()} == {1}
    assert plain_git(desk.workspace, "remote") == ""
    assert str(desk.mirror.path) not in (desk.workspace / ".git" / "config").read_text()


def test_a_workspace_does_not_hold_the_work_of_other_tasks(desk: Desk, tmp_path: Path) -> None:
    (desk.workspace / "work").write_text("of this task")
    head = desk.collect().head_sha
    other = tmp_path / "other"
    desk.mirror.cut(
        other, start=desk.base_sha, branch="watchbill/other-0123abcd-1", base="main", base_sha=desk.base_sha
    )
    with pytest.raises(subprocess.CalledProcessError):
        plain_git(other, "cat-file", "-e", head)


def test_tags_come_along_so_that_tools_can_tell_the_version(mirror: Mirror, remote: Remote, tmp_path: Path) -> None:
    plain_git(remote.clone, "tag", "--annotate", "v1.2", "--message", "release")
    plain_git(remote.clone, "push", "--quiet", "origin", "v1.2")
    newer = remote.commit("main", {"a": "1"})
    mirror.fetch(remote.url, None, "main")
    mirror.checkout(tmp_path / "check", newer)
    assert plain_git(tmp_path / "check", "describe", "HEAD").startswith("v1.2-1-")


def test_a_checkout_is_clean_and_at_the_commit(desk: Desk, tmp_path: Path) -> None:
    (desk.workspace / "work").write_text("done")
    head = desk.collect().head_sha
    desk.mirror.checkout(tmp_path / "check", head)
    assert (tmp_path / "check" / "work").read_text() == "done"
    assert plain_git(tmp_path / "check", "rev-parse", "HEAD") == head
    assert plain_git(tmp_path / "check", "status", "--porcelain") == ""


def test_a_commit_that_is_not_there_cannot_be_checked_out_and_leaves_nothing(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        desk.mirror.checkout(tmp_path / "checks" / "one", "f" * 40)
    assert names(tmp_path / "checks") == []


def test_a_workspace_that_is_in_use_is_not_replaced(desk: Desk) -> None:
    (desk.workspace / "README.md").write_text("the agent is writing this")
    desk.mirror.cut(desk.workspace, start=desk.base_sha, branch=BRANCH, base="main", base_sha=desk.base_sha)
    assert (desk.workspace / "README.md").read_text() == "the agent is writing this"


def test_a_deleted_workspace_is_cut_again(desk: Desk) -> None:
    shutil.rmtree(desk.workspace)
    desk.mirror.cut(desk.workspace, start=desk.base_sha, branch=BRANCH, base="main", base_sha=desk.base_sha)
    assert plain_git(desk.workspace, "status", "--porcelain") == ""


def test_many_cuts_of_one_workspace_at_once_make_one(desk: Desk) -> None:
    place = desk.workspace.with_name("another")

    def cut(_: int) -> None:
        desk.mirror.cut(place, start=desk.base_sha, branch=BRANCH, base="main", base_sha=desk.base_sha)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(cut, range(5)))
    assert plain_git(place, "status", "--porcelain") == ""
    assert names(place.parent) == ["another", TASK]


def test_what_a_killed_cut_left_is_cleared_and_what_a_living_one_builds_is_not(desk: Desk) -> None:
    place = desk.workspace.with_name("another")
    dead, living = place.with_name(f".another.{'d' * 32}"), place.with_name(f".another.{'a' * 32}")
    dead.mkdir()
    (dead / "half").write_text("a clone")
    living.mkdir()
    with held(living):
        desk.mirror.cut(place, start=desk.base_sha, branch=BRANCH, base="main", base_sha=desk.base_sha)
        assert not dead.exists()
        assert living.exists()


def test_work_that_is_not_preserved_is_not_discarded(desk: Desk) -> None:
    (desk.workspace / "work").write_text("only here")
    with pytest.raises(WatchbillError, match="not preserved"):
        desk.mirror.discard(desk.workspace, task_id=TASK, run_id="run-1")
    assert (desk.workspace / "work").read_text() == "only here"


def test_preserved_work_outlives_its_workspace(desk: Desk) -> None:
    (desk.workspace / "work").write_text("done")
    head = desk.collect().head_sha
    assert desk.mirror.discard(desk.workspace, task_id=TASK, run_id="run-1") == ""
    assert names(desk.workspace.parent) == []
    desk.mirror.cut(desk.workspace, start=head, branch=BRANCH, base="main", base_sha=desk.base_sha)
    assert (desk.workspace / "work").read_text() == "done"


def test_discarding_what_is_gone_is_nothing(desk: Desk, tmp_path: Path) -> None:
    desk.collect()
    for _ in range(2):
        assert desk.mirror.discard(desk.workspace, task_id=TASK, run_id="run-1") == ""
    assert desk.mirror.discard_checkout(tmp_path / "never" / "made") == ""


def test_what_a_killed_deletion_left_is_deleted_by_its_repeat(desk: Desk) -> None:
    desk.collect()
    aside = desk.workspace.with_name(f".{desk.workspace.name}.{'d' * 32}")
    aside.mkdir()
    desk.workspace.rename(aside / "old")
    (desk.workspace.parent / ".a-file.being-written").touch()
    assert desk.mirror.discard(desk.workspace, task_id=TASK, run_id="run-1") == ""
    assert names(desk.workspace.parent) == [".a-file.being-written"]


def test_whoever_holds_a_lock_on_a_workspace_does_not_hold_up_its_deletion(desk: Desk) -> None:
    desk.collect()
    with held(desk.workspace):
        assert desk.mirror.discard(desk.workspace, task_id=TASK, run_id="run-1") == ""
    assert names(desk.workspace.parent) == []


def test_a_workspace_of_closed_folders_is_deleted_all_the_same(unprivileged: Unprivileged) -> None:
    unprivileged.run(
        """
        place = folder / "workspace"
        (place / "closed" / "deeper").mkdir(parents=True)
        (place / "closed" / "deeper" / "file").write_text("x")
        (place / "link").symlink_to(folder)
        (place / "closed" / "deeper").chmod(0)
        (place / "closed").chmod(0o555)
        place.chmod(0o555)
        assert remove(place) == ""
        """
    )
    assert names(unprivileged.folder) == []


def test_folders_deeper_than_a_path_can_name_are_deleted_and_links_are_not_followed(desk: Desk, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    (precious / "kept").mkdir(parents=True)
    for folder in (desk.workspace, desk.workspace / "src"):
        (folder / "link").symlink_to(precious)
        nest(folder, 1100, "folder")
    desk.collect()
    assert desk.mirror.discard(desk.workspace, task_id=TASK, run_id="run-1") == ""
    assert names(desk.workspace.parent) == []
    assert names(precious) == ["kept"]


def test_deep_folders_that_a_dead_process_left_do_not_keep_a_workspace_from_being_cut(desk: Desk) -> None:
    leftover = desk.workspace.with_name(f".{desk.workspace.name}.{'d' * 32}")
    leftover.mkdir()
    nest(leftover, 1100, "folder")
    desk.collect()
    assert desk.mirror.discard(desk.workspace, task_id=TASK, run_id="run-1") == ""
    assert names(desk.workspace.parent) == []


def test_what_cannot_be_deleted_is_said_and_left(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.collect()

    def refuse(path: str, **_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "unlink", refuse)
    said = desk.mirror.discard(desk.workspace, task_id=TASK, run_id="run-1")
    assert "could not be deleted (Operation not permitted)" in said
    assert not desk.workspace.exists()
