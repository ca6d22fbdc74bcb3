"""Our bare repositories: made once, shared by many, and never stopped by what a killed process left."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from domain.errors import NotFound, WatchbillError
from domain.pull import Push, PushKind
from forge.lock import abandoned, held
from forge.mirror import Mirror
from tests.forge.desk import BRANCH, TASK, Desk, Remote, names, plain_git


def test_a_fetch_answers_the_base_and_says_which_branches_are_not_there(mirror: Mirror, remote: Remote) -> None:
    assert mirror.fetch(remote.url, None, "main", BRANCH) == {"main": remote.head("main"), BRANCH: None}


def test_a_fetch_brings_the_tasks_branch_with_what_a_person_pushed_to_it(mirror: Mirror, remote: Remote) -> None:
    pushed = remote.commit(BRANCH, {"help.txt": "from a person"})
    assert mirror.fetch(remote.url, None, "main", BRANCH)[BRANCH] == pushed
    assert plain_git(mirror.path, "show", f"refs/remotes/origin/{BRANCH}:help.txt") == "from a person"


def test_a_branch_that_the_remote_deleted_is_not_there_any_more(mirror: Mirror, remote: Remote) -> None:
    remote.commit(BRANCH, {"help.txt": "from a person"})
    mirror.fetch(remote.url, None, "main", BRANCH)
    plain_git(remote.clone, "push", "--quiet", "origin", "--delete", BRANCH)
    assert mirror.fetch(remote.url, None, "main", BRANCH)[BRANCH] is None


def test_a_fetch_brings_no_branch_that_is_only_named_alike(mirror: Mirror, remote: Remote) -> None:
    for name in (f"{BRANCH}1", f"{BRANCH}-more", BRANCH[:-1], f"other-{BRANCH}"):
        remote.commit(name, {"a": name})
    assert mirror.fetch(remote.url, None, "main", BRANCH)[BRANCH] is None
    assert plain_git(mirror.path, "for-each-ref", "--format=%(refname)", "refs/remotes") == "refs/remotes/origin/main"


@pytest.mark.parametrize("branch", ["a", "ab", "fix-it", "a/b"])
def test_a_branch_with_a_short_name_is_fetched(mirror: Mirror, remote: Remote, branch: str) -> None:
    pushed = remote.commit(branch, {"a": "1"})
    assert mirror.fetch(remote.url, None, "main", branch) == {"main": remote.head("main"), branch: pushed}


def test_a_later_fetch_sees_new_commits_and_a_rewritten_branch(mirror: Mirror, remote: Remote) -> None:
    mirror.fetch(remote.url, None, "main")
    newer = remote.commit("main", {"a": "1"})
    assert mirror.fetch(remote.url, None, "main") == {"main": newer}
    plain_git(remote.clone, "commit", "--quiet", "--amend", "--message", "rewritten")
    plain_git(remote.clone, "push", "--quiet", "--force", "origin", "main")
    assert mirror.fetch(remote.url, None, "main") == {"main": remote.head("main")}


def test_a_branch_that_took_the_place_of_its_folder_is_fetched(mirror: Mirror, remote: Remote) -> None:
    remote.commit("release", {"a": "1"})
    mirror.fetch(remote.url, None, "main", "release")
    plain_git(remote.clone, "push", "--quiet", "origin", "--delete", "release")
    plain_git(remote.clone, "checkout", "--quiet", "main")
    plain_git(remote.clone, "branch", "--quiet", "--delete", "--force", "release")
    plain_git(remote.clone, "fetch", "--quiet", "--prune")
    newer = remote.commit("release/1.0", {"a": "2"})
    assert mirror.fetch(remote.url, None, "main", "release/1.0")["release/1.0"] == newer


def test_a_base_that_is_not_there_is_named_with_its_repository(mirror: Mirror, remote: Remote) -> None:
    with pytest.raises(NotFound, match="acme/shop has no branch 'trunk'"):
        mirror.fetch(remote.url, None, "trunk", BRANCH)


def test_an_empty_repository_has_no_base(mirror: Mirror, tmp_path: Path) -> None:
    plain_git(tmp_path, "init", "--quiet", "--bare", "empty.git")
    with pytest.raises(NotFound, match="has no branch 'main'"):
        mirror.fetch((tmp_path / "empty.git").as_uri(), None, "main")


def test_a_repository_that_is_not_there_is_not_found(mirror: Mirror, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        mirror.fetch((tmp_path / "nothing.git").as_uri(), None, "main")


def test_a_name_that_is_no_repository_is_refused(tmp_path: Path) -> None:
    for name in ("shop", "../shop", "acme/../../etc", "acme/shop/x", "acme shop/x"):
        with pytest.raises(NotFound):
            Mirror(tmp_path, name)


def test_an_address_with_a_password_is_refused_before_git_sees_it(mirror: Mirror) -> None:
    with pytest.raises(WatchbillError, match="carries credentials") as caught:
        mirror.fetch("https://x-access-token:hunter2@example.org/a/b.git", None, "main")
    assert "hunter2" not in str(caught.value)


def test_repositories_whose_names_differ_in_more_than_case_have_their_own_mirrors(tmp_path: Path) -> None:
    names = ("acme/shop", "acme__/shop", "acme/__shop", "acme/shop.git")
    assert len({Mirror(tmp_path, name).path for name in names}) == len(names)
    assert Mirror(tmp_path, "Acme/Shop").path == Mirror(tmp_path, "acme/shop").path


def test_many_first_fetches_at_once_make_one_mirror(tmp_path: Path, remote: Remote) -> None:
    def fetch(_: int) -> dict[str, str | None]:
        return Mirror(tmp_path / "home", "acme/shop").fetch(remote.url, None, "main")

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(fetch, range(6)))
    assert answers == [{"main": remote.head("main")}] * 6
    assert [path.name for path in (tmp_path / "home" / "repositories").iterdir()] == [
        Mirror(tmp_path / "home", "acme/shop").path.name
    ]


def test_fetches_of_a_moving_branch_at_once_all_succeed(mirror: Mirror, remote: Remote) -> None:
    mirror.fetch(remote.url, None, "main")
    for number in range(3):
        newer = remote.commit("main", {"a": str(number)})
        with ThreadPoolExecutor(5) as pool:
            answers = list(pool.map(lambda _: mirror.fetch(remote.url, None, "main"), range(5)))
        assert answers == [{"main": newer}] * 5


@pytest.mark.parametrize("damage", ["HEAD", "config", "empty HEAD"])
def test_a_half_made_mirror_is_healed_and_keeps_what_it_holds(desk: Desk, damage: str) -> None:
    (desk.workspace / "work").write_text("done")
    head = desk.collect().head_sha
    if damage == "empty HEAD":
        (desk.mirror.path / "HEAD").write_text("")
    else:
        (desk.mirror.path / damage).unlink()
    assert desk.mirror.fetch(desk.remote.url, None, "main") == {"main": desk.base_sha}
    assert desk.mirror.preserved(TASK, "run-1") == head


@pytest.mark.parametrize(
    "lock", ["packed-refs.lock", "shallow.lock", "HEAD.lock", "config.lock", "refs/remotes/origin/main.lock"]
)
def test_lock_files_of_killed_processes_do_not_stop_the_next_attempt(mirror: Mirror, remote: Remote, lock: str) -> None:
    mirror.fetch(remote.url, None, "main", "release")
    remote.commit("release", {"a": "1"})
    newer = remote.commit("main", {"a": "1"})
    (mirror.path / lock).touch()
    assert mirror.fetch(remote.url, None, "main") == {"main": newer}


def test_the_lock_of_a_preserved_ref_does_not_stop_collecting(desk: Desk) -> None:
    (desk.workspace / "work").write_text("done")
    folder = desk.mirror.path / "refs" / "watchbill" / TASK
    folder.mkdir(parents=True)
    (folder / "run-1.lock").touch()
    assert desk.mirror.preserved(TASK, "run-1") is None
    assert desk.collect().head_sha == desk.mirror.preserved(TASK, "run-1")


def test_many_preserved_refs_are_packed_and_all_are_still_there(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forge.mirror.MANY_LOOSE", 3)
    kept = {}
    for number in range(4):
        (desk.workspace / "work").write_text(f"{number}")
        kept[number] = desk.collect(task=f"plan-0123abcd-{number}").head_sha
    assert [path.name for path in (desk.mirror.path / "refs/watchbill").iterdir()] == ["plan-0123abcd-3"]
    for number, sha in kept.items():
        assert desk.mirror.preserved(f"plan-0123abcd-{number}", "run-1") == sha


def packs_of(mirror: Mirror) -> list[Path]:
    return list(mirror.path.glob("objects/pack/*.pack"))


def test_many_fetches_are_put_into_few_packs_and_nothing_is_lost(
    mirror: Mirror, remote: Remote, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forge.mirror.MANY_PACKS", 4)
    for number in range(6):
        remote.commit("main", {"a": f"{number}"})
        last = mirror.fetch(remote.url, None, "main")["main"]
        assert last is not None
    (desk.workspace / "work").write_text("done")
    before = set(packs_of(mirror))
    assert len(before) >= 6
    with held(mirror.path / "in-use", exclusive=False):
        desk.collect(task="plan-0123abcd-1")
        assert before <= set(packs_of(mirror)), "packs were moved while another is at work"
    work = desk.collect(task="plan-0123abcd-2")
    assert len(packs_of(mirror)) < 4
    assert not list(mirror.path.glob("objects/??/*"))
    assert mirror.has(last)
    assert mirror.has(work.head_sha)
    assert mirror.contains(last, remote.head("main"))


@pytest.mark.parametrize("name", ["tmp_pack_x1", "tmp_idx_x1", ".tmp-1-pack-ab.pack", "pack-ab.keep"])
def test_what_a_killed_git_left_among_the_packs_goes_when_they_are_put_together(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("forge.mirror.MANY_PACKS", 1)
    left = desk.mirror.path / "objects/pack" / name
    left.touch()
    (desk.workspace / "work").write_text("done")
    with held(desk.mirror.path / "in-use", exclusive=False):
        desk.collect()
    assert left.exists(), "it may be somebody's who is at work"
    desk.collect()
    assert not left.exists()


def test_what_a_killed_packing_of_refs_left_stops_neither_it_nor_a_fetch(
    desk: Desk, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forge.mirror.MANY_LOOSE", 1)
    remote.commit("x", {"a": "1"})
    desk.mirror.fetch(remote.url, None, "main", "x")
    desk.collect()
    assert not list(desk.mirror.path.glob("refs/watchbill/*"))
    left = desk.mirror.path / "packed-refs.new"
    left.touch()
    plain_git(remote.path, "update-ref", "-d", "refs/heads/x")
    remote_sha = remote.head("main")
    plain_git(remote.path, "update-ref", "refs/heads/x/y", str(remote_sha))
    assert desk.mirror.fetch(remote.url, None, "main", "x/y")["x/y"] == remote_sha
    left.touch()
    desk.collect("run-2")
    assert not left.exists()
    assert desk.mirror.preserved(TASK, "run-1")


def test_a_lock_lives_as_long_as_the_git_of_a_killed_worker(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with held(lock) as descriptor:
        child = subprocess.Popen(["sleep", "60"], pass_fds=(descriptor,))
    assert not abandoned(lock)
    child.kill()
    child.wait()
    assert abandoned(lock)


def test_what_was_deleted_a_moment_ago_is_not_made_anew_to_ask_for_its_lock(tmp_path: Path) -> None:
    assert not abandoned(tmp_path / "gone")
    assert not (tmp_path / "gone").exists()


def test_a_push_makes_the_branch_and_a_repeat_finds_it(desk: Desk) -> None:
    (desk.workspace / "work").write_text("done")
    head = desk.collect().head_sha
    url = desk.remote.url
    assert desk.mirror.push(url, None, BRANCH, head, "") == Push(PushKind.PUSHED, head)
    # The answer to the first push was lost: nobody recorded that it happened.
    assert desk.mirror.push(url, None, BRANCH, head, "") == Push(PushKind.PUSHED, head)
    assert desk.mirror.push(url, None, BRANCH, head, head) == Push(PushKind.PUSHED, head)
    assert desk.remote.head(BRANCH) == head


def test_a_second_round_moves_the_branch_on_from_what_we_pushed(desk: Desk) -> None:
    (desk.workspace / "work").write_text("one")
    first = desk.collect().head_sha
    desk.mirror.push(desk.remote.url, None, BRANCH, first, "")
    (desk.workspace / "work").write_text("two")
    second = desk.collect("run-2", start=first).head_sha
    assert desk.mirror.push(desk.remote.url, None, BRANCH, second, first) == Push(PushKind.PUSHED, second)
    assert desk.remote.show(second, "work") == "two"


@pytest.mark.parametrize("pushed_before", [True, False])
def test_a_persons_commit_on_the_branch_is_never_overwritten(desk: Desk, pushed_before: bool) -> None:
    (desk.workspace / "work").write_text("one")
    head = desk.collect().head_sha
    expected = ""
    if pushed_before:
        desk.mirror.push(desk.remote.url, None, BRANCH, head, "")
        (desk.workspace / "work").write_text("two")
        head, expected = desk.collect("run-2", start=head).head_sha, head
    theirs = desk.remote.commit(BRANCH, {"person.txt": "mine"})
    for _ in range(2):
        assert desk.mirror.push(desk.remote.url, None, BRANCH, head, expected) == Push(PushKind.MOVED, theirs)
    assert desk.remote.head(BRANCH) == theirs
    assert desk.content(theirs, "person.txt") == "mine"
    assert desk.mirror.preserved(TASK, "run-1")


def test_a_branch_that_a_person_deleted_is_not_made_again(desk: Desk) -> None:
    (desk.workspace / "work").write_text("one")
    first = desk.collect().head_sha
    desk.mirror.push(desk.remote.url, None, BRANCH, first, "")
    plain_git(desk.remote.path, "update-ref", "-d", f"refs/heads/{BRANCH}")
    (desk.workspace / "work").write_text("two")
    second = desk.collect("run-2", start=first).head_sha
    assert desk.mirror.push(desk.remote.url, None, BRANCH, second, first) == Push(PushKind.MOVED, "")
    assert desk.remote.head(BRANCH) is None


def test_a_push_that_the_forges_rules_refuse_says_so_and_is_no_move(desk: Desk) -> None:
    hook = desk.remote.path / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    (desk.workspace / "work").write_text("one")
    head = desk.collect().head_sha
    with pytest.raises(WatchbillError, match="pre-receive hook declined") as caught:
        desk.mirror.push(desk.remote.url, None, BRANCH, head, "")
    assert not caught.value.retryable
    assert desk.remote.head(BRANCH) is None


def test_two_branches_pushed_at_once_both_arrive(desk: Desk) -> None:
    (desk.workspace / "work").write_text("one")
    head = desk.collect().head_sha
    branches = [f"watchbill/plan-0123abcd-{number}" for number in range(2, 8)]
    with ThreadPoolExecutor(6) as pool:
        pushes = list(pool.map(lambda branch: desk.mirror.push(desk.remote.url, None, branch, head, ""), branches))
    assert pushes == [Push(PushKind.PUSHED, head)] * 6
    assert {desk.remote.head(branch) for branch in branches} == {head}


def test_the_same_branch_pushed_twice_at_once_is_pushed_once(desk: Desk) -> None:
    (desk.workspace / "work").write_text("one")
    head = desk.collect().head_sha
    with ThreadPoolExecutor(4) as pool:
        pushes = list(pool.map(lambda _: desk.mirror.push(desk.remote.url, None, BRANCH, head, ""), range(4)))
    assert pushes == [Push(PushKind.PUSHED, head)] * 4


def test_a_branch_is_deleted_only_while_it_is_where_it_was(desk: Desk) -> None:
    first = desk.remote.commit(BRANCH, {"a": "1"})
    second = desk.remote.commit(BRANCH, {"a": "2"})
    assert not desk.mirror.delete_branch(desk.remote.url, None, BRANCH, first)
    assert desk.remote.head(BRANCH) == second
    assert desk.mirror.delete_branch(desk.remote.url, None, BRANCH, second)
    assert desk.mirror.delete_branch(desk.remote.url, None, BRANCH, second)
    assert desk.remote.head(BRANCH) is None


def test_a_mirror_knows_which_commits_it_has_and_what_they_contain(desk: Desk) -> None:
    (desk.workspace / "work").write_text("one")
    head = desk.collect().head_sha
    assert desk.mirror.has(head)
    assert not desk.mirror.has("f" * 40)
    assert not desk.mirror.has("")
    assert desk.mirror.contains(head, desk.base_sha)
    assert desk.mirror.contains(head, head)
    assert not desk.mirror.contains(desk.base_sha, head)
    with pytest.raises(NotFound):
        desk.mirror.contains(head, "f" * 40)


_FETCH_AND_CUT = """
import sys
from pathlib import Path
from forge.mirror import Mirror
home, url, branch, workspace = sys.argv[1:]
mirror = Mirror(Path(home), "acme/shop")
print("started", flush=True)
head = mirror.fetch(url, None, "main")["main"]
mirror.cut(Path(workspace), start=head, branch=branch, base="main", base_sha=head)
print("done", flush=True)
"""


@pytest.mark.parametrize("after_ms", [0, 20, 45, 70, 100])
def test_a_fetch_or_cut_that_was_killed_succeeds_when_it_is_repeated(
    tmp_path: Path, remote: Remote, after_ms: int
) -> None:
    remote.commit("main", {f"src/file{number}.txt": f"{number}\n" * 200 for number in range(300)})
    workspace = tmp_path / "home" / "workspaces" / TASK
    command = [
        sys.executable,
        "-c",
        _FETCH_AND_CUT,
        str(tmp_path / "home"),
        remote.url,
        BRANCH,
        str(workspace),
    ]
    room = Path(__file__).parents[2]
    worker = subprocess.Popen(command, cwd=room, stdout=subprocess.PIPE)
    assert worker.stdout
    assert worker.stdout.readline() == b"started\n"
    time.sleep(after_ms / 1000)
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    # Nothing half made is ever at the workspace's own place.
    if workspace.exists():
        assert plain_git(workspace, "status", "--porcelain") == ""

    again = subprocess.run(command, cwd=room, capture_output=True, check=True)

    assert again.stdout.endswith(b"done\n")
    assert plain_git(workspace, "status", "--porcelain") == ""
    assert plain_git(workspace, "rev-parse", "HEAD") == remote.head("main")
    assert names(workspace.parent) == [TASK]
