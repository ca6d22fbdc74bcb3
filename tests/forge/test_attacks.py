"""A workspace that was made to run programs, or to see what is ours, does neither."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from domain.pull import Push, PushKind
from forge.git import Auth
from tests.forge.desk import BRANCH, TASK, Desk, plain_git, write
from tests.forge.traps import SECRET, hostile_config, make_trap, set_traps, sprung


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    return make_trap(tmp_path)


def test_a_hostile_repository_runs_nothing_while_it_is_collected_and_pushed(desk: Desk, trap: Path) -> None:
    set_traps(desk.workspace, trap)
    write(desk.workspace, {"README.md": "changed\n", "new": "new\n"})
    collected = desk.collect()
    pushed = desk.mirror.push(desk.remote.url, Auth.with_token(SECRET), BRANCH, collected.head_sha, "")
    assert pushed == Push(PushKind.PUSHED, collected.head_sha)
    assert collected.changed == (".gitattributes", "README.md", "new")
    assert desk.content(collected.head_sha, "README.md") == "changed"
    assert desk.mirror.discard(desk.workspace, task_id=TASK, run_id="run-1") == ""
    assert sprung(trap) == ""


def test_the_traps_would_have_sprung_for_a_git_that_reads_the_agents_configuration(desk: Desk, trap: Path) -> None:
    set_traps(desk.workspace, trap)
    # It fails, too: the filter is required, and the trap is no filter.
    with pytest.raises(subprocess.CalledProcessError):
        plain_git(desk.workspace, "status")
    assert str(trap) in sprung(trap)


def test_attributes_of_a_commit_run_nothing_while_it_is_checked_out(desk: Desk, trap: Path, tmp_path: Path) -> None:
    set_traps(desk.workspace, trap)
    head = desk.collect().head_sha
    desk.mirror.checkout(tmp_path / "check", head)
    assert (tmp_path / "check" / "README.md").read_text() == "shop\n"
    assert sprung(trap) == ""


def test_a_submodule_with_a_hostile_repository_runs_nothing(desk: Desk, trap: Path) -> None:
    """`git add` and `git status` start a second git in every submodule, with its configuration."""
    inner = desk.workspace / "vendored"
    inner.mkdir()
    plain_git(inner, "init", "--quiet")
    plain_git(inner, "commit", "--quiet", "--allow-empty", "--message", "inner")
    commit = plain_git(inner, "rev-parse", "HEAD")
    index = {"GIT_INDEX_FILE": str(desk.mirror.path / "scratch-index")}
    plain_git(desk.mirror.path, "read-tree", desk.base_sha, **index)
    plain_git(desk.mirror.path, "update-index", "--add", "--cacheinfo", f"160000,{commit},vendored", **index)
    tree = plain_git(desk.mirror.path, "write-tree", **index)
    start = plain_git(desk.mirror.path, "commit-tree", tree, "-p", desk.base_sha, "-m", "vendored")
    set_traps(inner, trap)
    assert desk.collect(start=start, base_sha=start).faults == ()
    assert sprung(trap) == ""
    plain_git(inner, "status")
    assert sprung(trap) != ""


@pytest.mark.parametrize("kind", ["file", "link", "pipe", "missing", "folder", "socketless"])
def test_whatever_stands_where_the_agents_repository_was_the_files_are_collected(
    desk: Desk, trap: Path, kind: str, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    plain_git(tmp_path, "init", "--quiet", str(elsewhere))
    set_traps(elsewhere, trap)
    dot_git = desk.workspace / ".git"
    shutil.rmtree(dot_git)
    match kind:
        case "file":
            dot_git.write_text(f"gitdir: {elsewhere}/.git\n")
        case "link":
            dot_git.symlink_to(elsewhere / ".git")
        case "pipe":
            os.mkfifo(dot_git)
        case "folder":
            write(dot_git, {"HEAD": "garbage", "config": hostile_config(trap)})
        case "socketless":
            dot_git.symlink_to("/dev/zero")
    write(desk.workspace, {"a": "1"})
    collected = desk.collect()
    assert collected.changed == ("a",)
    assert collected.faults == ()
    assert sprung(trap) == ""


def test_alternates_that_the_agent_set_lend_us_no_objects_and_lose_none(desk: Desk, tmp_path: Path) -> None:
    plain_git(tmp_path, "init", "--quiet", "--bare", "lender.git")
    write(desk.workspace, {".git/objects/info/alternates": f"{tmp_path}/lender.git/objects\n", "a": "1"})
    shutil.rmtree(desk.workspace / ".git" / "objects" / "pack")
    head = desk.collect().head_sha
    desk.mirror.push(desk.remote.url, None, BRANCH, head, "")
    assert plain_git(desk.remote.path, "fsck", "--strict", "--no-dangling") == ""


def test_a_path_through_a_link_does_not_bring_in_what_lies_outside(desk: Desk, tmp_path: Path) -> None:
    write(tmp_path / "outside", {"key": "private"})
    (desk.workspace / "door").symlink_to(tmp_path / "outside")
    collected = desk.collect()
    assert collected.changed == ("door",)
    assert "key" not in "".join(desk.listed(collected.head_sha))


def test_our_git_hears_nothing_of_the_users_configuration_and_environment(
    desk: Desk, trap: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "user"
    write(home, {".gitconfig": hostile_config(trap), ".config/git/attributes": "* filter=trap\n"})
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.fsmonitor={trap}'")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(trap))
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    monkeypatch.setenv("GIT_TRACE_CURL", str(tmp_path / "trace"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_ASKPASS", str(trap))
    write(desk.workspace, {"a": "1"})
    head = desk.collect().head_sha
    assert desk.mirror.push(desk.remote.url, Auth.with_token(SECRET), BRANCH, head, "").kind == PushKind.PUSHED
    assert sprung(trap) == ""
    assert not (tmp_path / "trace").exists()
