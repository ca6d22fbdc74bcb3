"""Collecting: what a run left becomes a commit of ours, whatever the workspace looks like."""

from __future__ import annotations

import os
import shutil
import socket
from datetime import timedelta
from pathlib import Path

import pytest

import forge.collect as collecting
from domain.errors import NotFound
from tests.forge.desk import AT, BRANCH, TASK, Desk, Unprivileged, nest, plain_git, write


def test_changed_new_and_deleted_files_become_one_commit_on_the_start(desk: Desk) -> None:
    write(desk.workspace, {"README.md": "better\n", "docs/new.md": "new\n"})
    (desk.workspace / "src" / "price.py").unlink()
    collected = desk.collect(message="Better words\n\nBecause.")
    assert collected.changed == ("README.md", "docs/new.md", "src/price.py")
    assert collected.faults == ()
    assert desk.listed(collected.head_sha) == [".gitignore", "README.md", "docs/new.md"]
    assert plain_git(desk.mirror.path, "log", "-1", "--format=%P %B", collected.head_sha) == (
        f"{desk.base_sha} Better words\n\nBecause."
    )
    assert desk.mirror.preserved(TASK, "run-1") == collected.head_sha


def test_collecting_again_gives_the_same_commit(desk: Desk) -> None:
    write(desk.workspace, {"a": "1"})
    first = desk.collect()
    assert desk.collect() == first
    shutil.rmtree(desk.workspace / ".git")
    assert desk.collect() == first


def test_the_date_of_the_commit_is_the_one_that_was_given(desk: Desk) -> None:
    write(desk.workspace, {"a": "1"})
    head = desk.collect().head_sha
    dates = plain_git(desk.mirror.path, "log", "-1", "--format=%at %ct", head)
    assert dates == f"{int(AT.timestamp())} {int(AT.timestamp())}"
    later = desk.mirror.collect(
        desk.workspace, task_id=TASK, run_id="run-2", start=desk.base_sha, base_sha=desk.base_sha,
        message="Work", at=AT + timedelta(seconds=1),
    )  # fmt: skip
    assert later.head_sha != head


def test_an_untouched_workspace_is_no_commit_and_is_preserved_all_the_same(desk: Desk) -> None:
    collected = desk.collect()
    assert collected.head_sha == desk.base_sha
    assert collected.changed == ()
    assert desk.mirror.preserved(TASK, "run-1") == desk.base_sha


def test_touched_but_equal_files_are_no_change(desk: Desk) -> None:
    os.utime(desk.workspace / "README.md")
    (desk.workspace / "README.md").write_text("shop\n")
    assert desk.collect().head_sha == desk.base_sha


def test_a_change_that_was_taken_back_changes_nothing(desk: Desk) -> None:
    write(desk.workspace, {"README.md": "worse\n"})
    first = desk.collect()
    write(desk.workspace, {"README.md": "shop\n"})
    second = desk.collect("run-2", start=first.head_sha)
    assert second.head_sha != first.head_sha
    assert second.changed == ()


def test_work_that_the_base_has_meanwhile_changes_nothing(desk: Desk) -> None:
    write(desk.workspace, {"README.md": "better\n"})
    first = desk.collect()
    same = desk.remote.commit("main", {"README.md": "better\n"})
    desk.mirror.fetch(desk.remote.url, None, "main")
    assert desk.collect("run-2", start=first.head_sha, base_sha=same).changed == ()


def test_what_others_did_on_the_base_is_not_the_tasks_change(desk: Desk) -> None:
    newer = desk.remote.commit("main", {"other.txt": "of another task"})
    desk.mirror.fetch(desk.remote.url, None, "main")
    write(desk.workspace, {"a": "1"})
    assert desk.collect(base_sha=newer).changed == ("a",)


def test_a_base_without_common_history_is_compared_as_it_is(desk: Desk) -> None:
    tree = plain_git(desk.mirror.path, "rev-parse", f"{desk.base_sha}^{{tree}}")
    stranger = plain_git(desk.mirror.path, "commit-tree", tree, "-m", "rewritten")
    write(desk.workspace, {"a": "1"})
    assert desk.collect(base_sha=stranger).changed == ("a",)


def test_uncommitted_and_committed_work_of_the_agent_count_alike(desk: Desk) -> None:
    write(desk.workspace, {"a": "1"})
    plain_git(desk.workspace, "add", "a")
    plain_git(desk.workspace, "commit", "--quiet", "--message", "mine")
    plain_git(desk.workspace, "checkout", "--quiet", "-b", "elsewhere")
    write(desk.workspace, {"b": "2"})
    collected = desk.collect()
    assert collected.changed == ("a", "b")
    assert plain_git(desk.mirror.path, "rev-parse", f"{collected.head_sha}^") == desk.base_sha


def test_ignored_files_stay_out_unless_the_base_has_them(desk: Desk) -> None:
    write(desk.remote.clone, {"kept.log": "tracked although ignored\n"})
    plain_git(desk.remote.clone, "add", "--force", "kept.log")
    start = desk.remote.commit("main", {"a": "1"})
    desk.mirror.fetch(desk.remote.url, None, "main")
    write(
        desk.workspace,
        {"kept.log": "changed\n", "a": "1", "noise.log": "x", "build/out": "x", "sub/x.log": "x"},
    )
    collected = desk.collect(start=start, base_sha=start)
    assert collected.changed == ("kept.log",)
    assert desk.content(collected.head_sha, "kept.log") == "changed"


def test_an_agents_own_exclude_file_hides_nothing(desk: Desk) -> None:
    write(desk.workspace, {".git/info/exclude": "*\n", "a": "1"})
    assert desk.collect().changed == ("a",)


@pytest.mark.parametrize(
    "name",
    [
        "Ünïcödé/naïve café.txt",
        "with space/a b",
        "new\nline",
        'quo"te',
        "tab\there",
        "-n",
        "100644 x 0\ty",
        "日本/語",
    ],
)
def test_any_name_of_a_file_is_taken_as_it_is(desk: Desk, name: str) -> None:
    write(desk.workspace, {name: "x"})
    collected = desk.collect()
    assert collected.changed == (name,)
    assert collected.faults == ()


def test_a_name_that_is_no_utf8_is_shown_with_escapes(desk: Desk) -> None:
    Path(os.fsdecode(os.fsencode(desk.workspace) + b"/caf\xe9")).write_text("x")
    assert desk.collect().changed == ("caf\\xe9",)


def test_links_and_the_executable_bit_are_kept(desk: Desk) -> None:
    (desk.workspace / "link").symlink_to("/etc/passwd")
    (desk.workspace / "run.sh").write_text("#!/bin/sh\n")
    (desk.workspace / "run.sh").chmod(0o755)
    head = desk.collect().head_sha
    modes = plain_git(desk.mirror.path, "ls-tree", "--format=%(objectmode)", head, "link", "run.sh")
    assert modes.split() == ["120000", "100755"]
    assert desk.content(head, "link") == "/etc/passwd"


def test_files_and_folders_may_change_places(desk: Desk, tmp_path: Path) -> None:
    shutil.rmtree(desk.workspace / "src")
    write(desk.workspace, {"src": "now a file\n"})
    (desk.workspace / "README.md").unlink()
    write(desk.workspace, {"README.md/inside": "now a folder\n"})
    collected = desk.collect()
    assert desk.listed(collected.head_sha) == [".gitignore", "README.md/inside", "src"]


def test_a_folder_that_became_a_link_is_taken_as_the_link(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write(outside, {"price.py": "SECRET = 1\n"})
    shutil.rmtree(desk.workspace / "src")
    (desk.workspace / "src").symlink_to(outside)
    collected = desk.collect()
    assert desk.listed(collected.head_sha) == [".gitignore", "README.md", "src"]


def test_pipes_and_sockets_stay_out(desk: Desk) -> None:
    os.mkfifo(desk.workspace / "pipe")
    (desk.workspace / "README.md").unlink()
    os.mkfifo(desk.workspace / "README.md")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(desk.workspace)
        listener.bind("socket")
        os.chdir(here)
        collected = desk.collect()
    assert collected.changed == ("README.md",)
    assert desk.listed(collected.head_sha) == [".gitignore", "src/price.py"]


@pytest.mark.parametrize("name", [".gitignore", "src/.gitignore", "new/.gitattributes"])
def test_a_pipe_that_git_would_read_its_rules_from_does_not_hang_us(desk: Desk, name: str) -> None:
    path = desk.workspace / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    write(desk.workspace, {"a": "1", "new/b": "2"})
    assert {"a", "new/b"} <= set(desk.collect().changed)


@pytest.mark.parametrize("name", ["README.md", "new/huge"])
def test_a_file_that_is_too_large_is_a_fault_and_is_not_read(desk: Desk, name: str) -> None:
    write(desk.workspace, {"a": "1", "new/b": "2"})
    # More than git could read in its time, and nothing on the disk.
    os.truncate(_touched(desk.workspace / name), 1 << 42)
    collected = desk.collect()
    assert set(collected.changed) == {"a", "new/b"}
    assert collected.faults == (f"{name} has 4194304 MiB and was not collected; 100 MiB are the most",)
    assert desk.content(collected.head_sha, "README.md") == desk.content(desk.base_sha, "README.md")


def test_a_file_that_is_too_large_beyond_a_link_is_not_read_either(desk: Desk, tmp_path: Path) -> None:
    (desk.workspace / "src" / "price.py").unlink()
    (desk.workspace / "src").rmdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.truncate(_touched(elsewhere / "price.py"), 1 << 42)
    (desk.workspace / "src").symlink_to(elsewhere)
    assert "src/price.py has 4194304 MiB and was not collected; 100 MiB are the most" in desk.collect().faults


def test_files_that_are_too_large_together_are_taken_in_as_far_as_there_is_room(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collecting, "MAX_ALL_BYTES", 1 << 20)
    write(desk.workspace, {"a": "x" * (1 << 19), "b": "y" * (1 << 20), "c": "z" * (1 << 19)})
    collected = desk.collect()
    assert collected.changed == ("a", "c")
    assert collected.faults == ("b was not collected: there are more than 1 MiB before it",)


@pytest.mark.parametrize("name", [".gitignore", "src/.gitattributes"])
def test_rules_that_are_too_large_are_a_fault_and_git_does_not_read_them(desk: Desk, name: str) -> None:
    write(desk.workspace, {"a": "1"})
    os.truncate(_touched(desk.workspace / name), 1 << 42)
    for _ in range(2):
        collected = desk.collect()
        assert collected.changed == ()
        assert collected.faults == (f"{name} has 4194304 MiB, which are no rules for git; nothing was collected",)


def test_folders_deeper_than_git_can_look_are_a_fault_and_the_rest_is_collected(desk: Desk) -> None:
    write(desk.workspace, {"a": "1"})
    nest(desk.workspace, 1100, "folder")
    collected = desk.collect()
    assert collected.changed == ("a",)
    assert any(fault.endswith("cannot be read") for fault in collected.faults)
    assert desk.mirror.discard(desk.workspace, task_id=TASK, run_id="run-1") == ""


def _touched(path: Path) -> Path:
    path.touch()
    return path


def test_a_repository_that_the_agent_made_inside_is_a_fault_and_the_rest_is_collected(desk: Desk) -> None:
    write(desk.workspace, {"a": "1", "inner/file": "x", "empty-inner/file": "x"})
    plain_git(desk.workspace / "inner", "init", "--quiet")
    plain_git(desk.workspace / "inner", "add", "--all")
    plain_git(desk.workspace / "inner", "commit", "--quiet", "--message", "x")
    plain_git(desk.workspace / "empty-inner", "init", "--quiet")
    collected = desk.collect()
    assert collected.changed == ("a",)
    assert len(collected.faults) == 2
    assert any("inner/ holds a git repository of its own" in fault for fault in collected.faults)


def test_a_repository_in_an_ignored_folder_is_no_fault(desk: Desk) -> None:
    write(desk.workspace, {"build/dependency/file": "x"})
    plain_git(desk.workspace / "build" / "dependency", "init", "--quiet")
    assert desk.collect().faults == ()


def test_a_submodule_of_the_base_stays_as_it_is(desk: Desk) -> None:
    start = _with_submodule(desk)
    (desk.workspace / "vendored").mkdir()
    write(desk.workspace, {"a": "1"})
    collected = desk.collect(start=start, base_sha=start)
    assert collected.changed == ("a",)
    assert collected.faults == ()
    assert plain_git(desk.mirror.path, "ls-tree", collected.head_sha, "vendored").startswith("160000")


def test_a_submodule_that_only_the_branch_has_is_a_fault(desk: Desk) -> None:
    start = _with_submodule(desk)
    (desk.workspace / "vendored").mkdir()
    collected = desk.collect(start=start)
    assert "vendored is a git repository of its own" in collected.faults


def _with_submodule(desk: Desk) -> str:
    """A commit in the mirror whose tree has a submodule at `vendored`."""
    index = {"GIT_INDEX_FILE": str(desk.mirror.path / "scratch-index")}
    plain_git(desk.mirror.path, "read-tree", desk.base_sha, **index)
    plain_git(desk.mirror.path, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendored", **index)
    tree = plain_git(desk.mirror.path, "write-tree", **index)
    return plain_git(desk.mirror.path, "commit-tree", tree, "-p", desk.base_sha, "-m", "vendored")


def test_what_cannot_be_read_is_a_fault_and_is_not_taken_for_deleted(unprivileged: Unprivileged) -> None:
    printed = unprivileged.run(
        f"""
        def git(*args):
            identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
            subprocess.run(["git", *identity, *args], check=True)
        git("init", "--quiet", "--initial-branch=main")
        for name in ("open", "shut/inside"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("x")
        (folder / ".gitignore").write_text("data/")
        git("add", "open", "shut", ".gitignore")
        git("commit", "--quiet", "-m", "first")
        mirror = Mirror(folder / "home", "acme/shop")
        base = mirror.fetch(folder.as_uri(), None, "main")["main"]
        place = folder / "work"
        mirror.cut(place, start=base, branch="{BRANCH}", base="main", base_sha=base)
        (place / "new").write_text("new")
        for name in ("a", "b", "c", "secret", "z"):
            (place / name).write_text("x")
        (place / "secret").chmod(0)
        for name in ("shut", "hidden", "data"):
            (place / name).mkdir(exist_ok=True)
            (place / name).chmod(0)
        about = dict(task_id="{TASK}", run_id="run-1", message="m", at=datetime.now(UTC))
        collected = mirror.collect(place, start=base, base_sha=base, **about)
        print(collected.changed)
        print(*sorted(fault.split(": ")[0] for fault in collected.faults), sep="\\n")
        """
    )
    assert printed.splitlines() == [
        "('a', 'b', 'c', 'new', 'z')",
        "secret could not be collected",
        "shut/inside cannot be read",
        "the directory hidden cannot be read",
        "the directory shut cannot be read",
    ]


def test_a_workspace_that_is_gone_is_not_taken_for_one_where_all_was_deleted(desk: Desk) -> None:
    shutil.rmtree(desk.workspace)
    with pytest.raises(NotFound, match="is gone"):
        desk.collect()
    assert desk.mirror.preserved(TASK, "run-1") is None


def test_a_large_number_of_files_is_collected(desk: Desk) -> None:
    write(desk.workspace, {f"many/{'long' * 60}{number}": str(number) for number in range(300)})
    assert len(desk.collect().changed) == 300


@pytest.mark.parametrize("files", [3, 100])
@pytest.mark.parametrize("target", ["other", "nowhere"])
def test_a_directory_whose_place_a_link_takes_is_gone_with_all_its_files(desk: Desk, files: int, target: str) -> None:
    old = [f"lib/{number:03}" for number in range(files)]
    write(desk.workspace, dict.fromkeys(old, "old"))
    start = desk.collect().head_sha
    shutil.rmtree(desk.workspace / "lib")
    write(desk.workspace, {"other/new": "new"})
    (desk.workspace / "lib").symlink_to(target)
    work = desk.collect("run-2", start=start)
    assert work.faults == ()
    assert {"lib", "other/new"} <= set(desk.listed(work.head_sha))
    assert not set(old) & set(desk.listed(work.head_sha))


def test_a_directory_that_is_ignored_now_and_a_link_is_gone_with_all_its_files(desk: Desk) -> None:
    write(desk.workspace, {"lib/a": "old", "lib/b": "old"})
    start = desk.collect().head_sha
    shutil.rmtree(desk.workspace / "lib")
    write(desk.workspace, {"other/new": "new", ".gitignore": "lib\n"})
    (desk.workspace / "lib").symlink_to("other")
    work = desk.collect("run-2", start=start)
    assert work.faults == ()
    assert not {"lib/a", "lib/b"} & set(desk.listed(work.head_sha))
