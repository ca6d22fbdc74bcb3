"""Repositories as they come: another default branch, refused pushes, broken workspaces."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from domain.identity import plan_id, task_id
from tests.end_to_end.installation import OWNER
from tests.end_to_end.plans import PROVEN, REPOSITORY, Box
from tests.end_to_end.rig import Rig


@pytest.fixture
def install(rig: Rig) -> Iterator:
    """Let Watchbill reach these repositories besides the shop; afterwards it reaches the shop alone."""

    def install_(*names: str) -> None:
        rig.scene("POST", "installations", slug="watchbill", repositories=[REPOSITORY, *names])

    yield install_
    install_()


def workspace(rig: Rig, slug: str) -> str:
    return str(rig.home / "workspaces" / task_id(plan_id(OWNER, slug), 1) / "author")


def test_the_default_branch_is_asked_for_and_never_guessed(rig: Rig, install):
    rig.scene("POST", "repositories", name="acme/trunk", files={"README.md": "# shop\n"}, default_branch="trunk")
    install("acme/trunk")
    rig.submit("trunk", "Write it", repository="acme/trunk", **PROVEN)
    rig.until_completed("trunk")
    assert rig.file("trunk-1.txt", "trunk", "acme/trunk") == "done\n"
    assert [pull["base"]["ref"] for pull in rig.pulls("trunk", "acme/trunk")] == ["trunk"]


def test_one_plan_whose_repository_is_out_of_reach_holds_up_no_other(rig: Rig):
    rig.scene("POST", "repositories", name="elsewhere/shop", files={"README.md": "# shop\n"})
    installation = rig.scene("POST", "installations", slug="watchbill", repositories=["elsewhere/shop"])["id"]
    path = rig.write("out-of-reach", "Write it", repository="elsewhere/shop", **PROVEN)
    rig.command("submit", path)
    rig.scene("POST", "installations/suspend", installation=installation)
    rig.command("confirm", path)
    rig.submit("other", "Write it", **PROVEN)
    rig.until_completed("other")
    rig.until_asked("out-of-reach", "cannot_go_on")
    rig.scene("POST", "installations/suspend", installation=installation, suspended=False)
    rig.command("resume", "out-of-reach#1")
    rig.until_completed("out-of-reach")
    assert rig.file("out-of-reach-1.txt", "main", "elsewhere/shop") == "done\n"


def test_a_push_that_the_forge_refuses_is_asked_about_and_the_work_is_not_done_again(rig: Rig, install):
    rig.scene("POST", "repositories", name="acme/strict", files={"README.md": "# shop\n"})
    install("acme/strict")
    hooks = rig.bare("acme/strict") / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "pre-receive").write_text("#!/bin/sh\nexit 1\n")
    (hooks / "pre-receive").chmod(0o755)
    subprocess.run(["git", f"--git-dir={hooks.parent}", "config", "core.hooksPath", str(hooks)], check=True)
    rig.submit("strict", "Write it", repository="acme/strict", **PROVEN)
    rig.until_asked("strict", "cannot_go_on")
    rig.assert_untouched("strict", "acme/strict")
    (hooks / "pre-receive").unlink()
    rig.command("resume", "strict#1")
    view = rig.until_completed("strict")
    assert (view.tasks[0].state, view.tasks[0].runs) == ("merged", 1)


def test_a_workspace_whose_git_is_broken_or_in_use_is_collected_all_the_same(rig: Rig):
    script = """\
git switch --quiet --create elsewhere
git worktree add --quiet ../linked 2> /dev/null || true
touch .git/index.lock .git/HEAD.lock
echo it > broken-git.txt
rm -rf .git/objects .git/refs"""
    rig.submit("broken-git", Box("Break it", script), **PROVEN)
    rig.until_completed("broken-git")
    assert rig.file("broken-git.txt") == "it\n"


def test_a_workspace_that_was_deleted_is_asked_about_and_made_anew(rig: Rig, tmp_path):
    script = f'echo it > deleted.txt\nif [ ! -e {tmp_path}/done ]; then touch {tmp_path}/done; rm -rf "$PWD"; fi'
    rig.submit("deleted", Box("Write it", script), **PROVEN)
    rig.until_asked("deleted", "cannot_go_on")
    rig.command("resume", "deleted#1")
    rig.until_completed("deleted")
    assert rig.file("deleted.txt") == "it\n"


def test_commits_that_are_taken_back_are_no_changes(rig: Rig):
    script = "echo x > x.txt\ngit add x.txt\ngit commit --quiet -m x\ngit revert --no-edit HEAD > /dev/null"
    rig.submit("reverted", Box("There and back", script), **PROVEN)
    assert rig.until_completed("reverted").tasks[0].state == "no_changes"
    rig.assert_untouched("reverted")


def test_a_squash_merge_is_seen_as_merged_and_its_workspace_is_cleared_away(rig: Rig):
    rig.submit(
        "squashed",
        Box("Write it", "echo 1 > squashed.txt\ngit add .\ngit commit --quiet -m 1\necho 2 >> squashed.txt"),
    )
    rig.until_state("squashed", 1, "in_review")
    rig.forge("PUT", f"repos/{REPOSITORY}/pulls/{rig.pull_number('squashed')}/merge", merge_method="squash")
    rig.until_completed("squashed")
    left = rig.home / "workspaces" / task_id(plan_id(OWNER, "squashed"), 1)
    rig.until(lambda: not [path for path in left.iterdir() if path.is_dir()], "the workspaces are cleared away")


def test_a_run_finds_nothing_of_ours_in_its_environment(rig: Rig):
    script = "tr '\\0' '\\n' < /proc/self/environ | cut -d= -f1 | sort > names.txt\ncat .git/config >> names.txt"
    rig.submit("environment", Box("Look around", script), **PROVEN)
    rig.until_completed("environment")
    found = rig.file("names.txt")
    names = {line for line in found.splitlines() if line.isupper() and line.replace("_", "").isalnum()}
    assert names <= {
        "HOME", "LANG", "PATH", "PWD", "OLDPWD", "SHLVL", "TMPDIR", "_",
        "WATCHBILL_MARKER", "WATCHBILL_NOTE", "WATCHBILL_RUN", "WATCHBILL_TASK",
    }  # fmt: skip
    assert "http" not in found.lower()
