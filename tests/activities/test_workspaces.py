"""Workspaces on real git: what a run left is kept, whatever dies in between."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from activities.supervision import workspace_of
from activities.workspaces import Workspaces
from domain.errors import NotFound, Superseded
from domain.identity import branch_of
from domain.publication import PushOrder
from domain.pull import PushKind, Repository
from domain.run import Collected, Role, RunFacts
from domain.task import TaskState
from forge.mirror import Mirror
from store.evidence import content, evidence_of
from tests.activities.conftest import Graph
from tests.forge.desk import Remote, plain_git, write
from tests.workflows.world import Script, ScriptedForge


class LocalForge(ScriptedForge):
    """A forge whose git is a directory, and asks for no credentials."""

    url = ""

    async def repository(self, name: str) -> Repository:
        return Repository(name, "main", self.url)

    async def push_auth(self, name: str) -> None:  # type: ignore[override]  # a directory wants none
        return None


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    remote = Remote(tmp_path / "forge" / "shop.git", tmp_path / "person")
    for folder in (remote.path, remote.clone):
        folder.mkdir(parents=True)
    plain_git(remote.path, "init", "--quiet", "--bare", "--initial-branch=main")
    plain_git(remote.clone, "init", "--quiet", "--initial-branch=main")
    plain_git(remote.clone, "remote", "add", "origin", str(remote.path))
    write(remote.clone, {"README.md": "shop\n"})
    plain_git(remote.clone, "add", "--all")
    plain_git(remote.clone, "commit", "--quiet", "--message", "first")
    plain_git(remote.clone, "push", "--quiet", "origin", "main")
    return remote


@pytest.fixture
def workspaces(graph: Graph, home: Path, remote: Remote) -> Workspaces:
    graph.confirm(paths='["src/**"]')
    forge = LocalForge(Script())
    forge.url = remote.url
    return Workspaces(graph.store, forge, home, 1, "worker-1")


async def worked(
    graph: Graph, workspaces: Workspaces, files: dict[str, str], run: RunFacts | None = None, *, end: str = "finish"
) -> tuple[RunFacts, Collected]:
    """A run that left these files, and has ended."""
    run = run or graph.begin()
    await graph.call(workspaces.prepare_workspace, run.id)
    write(workspace_of(workspaces.home, run), files)
    graph.move(end, "run", run.id)
    return run, await graph.call(workspaces.collect_work, run.id)


def publishing(graph: Graph, work: Collected) -> PushOrder:
    graph.move("worked", head_sha=work.head_sha, host="host-a")
    graph.move("cleared")
    return PushOrder(graph.task, graph.facts().epoch, work.head_sha)


async def test_a_workspace_is_the_base_on_the_tasks_branch(
    graph: Graph, workspaces: Workspaces, remote: Remote
) -> None:
    run = graph.begin()
    await graph.call(workspaces.prepare_workspace, run.id)
    tree = workspace_of(workspaces.home, run)
    assert plain_git(tree, "rev-parse", "HEAD") == remote.head("main")
    assert plain_git(tree, "branch", "--show-current") == branch_of(graph.task)


async def test_preparing_again_leaves_the_work_that_is_there(graph: Graph, workspaces: Workspaces) -> None:
    run = graph.begin()
    await graph.call(workspaces.prepare_workspace, run.id)
    write(workspace_of(workspaces.home, run), {"src/new.py": "half done\n"})
    await graph.call(workspaces.prepare_workspace, run.id)
    assert (workspace_of(workspaces.home, run) / "src/new.py").exists()


async def test_a_workspace_that_was_not_named_as_prepared_is_cut_anew(graph: Graph, workspaces: Workspaces) -> None:
    run = graph.begin()
    await graph.call(workspaces.prepare_workspace, run.id)
    tree = workspace_of(workspaces.home, run)
    (workspaces.home / "runs" / run.id / "prepared.json").unlink()
    (tree / "README.md").unlink()
    await graph.call(workspaces.prepare_workspace, run.id)
    assert (tree / "README.md").exists()


async def test_a_run_begins_on_what_somebody_has_pushed_to_the_branch(
    graph: Graph, workspaces: Workspaces, remote: Remote
) -> None:
    theirs = remote.commit(branch_of(graph.task), {"src/theirs.py": "x\n"})
    run, work = await worked(graph, workspaces, {"src/ours.py": "y\n"})
    assert graph.run(run.id).start_sha == theirs
    assert plain_git(workspace_of(workspaces.home, run), "rev-parse", "HEAD") == theirs
    assert work.changed == 2


async def test_collecting_again_makes_the_same_commit(graph: Graph, workspaces: Workspaces) -> None:
    run, first = await worked(graph, workspaces, {"src/new.py": "done\n"})
    again = await graph.call(workspaces.collect_work, run.id)
    assert again == first
    assert graph.run(run.id).head_sha == first.head_sha


async def test_an_untouched_workspace_counts_no_change(graph: Graph, workspaces: Workspaces) -> None:
    _, work = await worked(graph, workspaces, {})
    assert (work.changed, work.head_sha) == (0, work.start_sha)


async def test_what_lies_outside_the_plans_paths_is_named(graph: Graph, workspaces: Workspaces) -> None:
    files = {f"deploy/{n:02}.yml": "x\n" for n in range(25)}
    _, work = await worked(graph, workspaces, files | {"src/fine.py": "y\n"})
    assert work.stray_count == 25
    assert work.strays == tuple(sorted(files)[:20])


async def test_the_next_run_begins_from_what_the_last_one_left(graph: Graph, workspaces: Workspaces) -> None:
    _, first = await worked(graph, workspaces, {"src/new.py": "half\n"})
    graph.move("worked", head_sha=first.head_sha, tree_sha=first.tree_sha, host="host-a")
    graph.move("checks_failed", round=2)
    second = graph.begin()
    await graph.call(workspaces.prepare_workspace, second.id)
    tree = workspace_of(workspaces.home, second)
    assert (tree / "src/new.py").read_text() == "half\n"
    assert plain_git(tree, "rev-parse", "HEAD") == first.head_sha


async def test_work_that_was_not_preserved_is_moved_aside_and_never_deleted(
    graph: Graph, workspaces: Workspaces
) -> None:
    first = graph.begin()
    await graph.call(workspaces.prepare_workspace, first.id)
    tree = workspace_of(workspaces.home, first)
    write(tree, {"src/precious.py": "x\n"})
    graph.move("lose", "run", first.id)
    second = graph.begin()
    await graph.call(workspaces.prepare_workspace, second.id)
    assert not (tree / "src/precious.py").exists()
    assert (tree.with_name(f"left-by-{first.id}") / "src/precious.py").exists()


async def test_a_check_sees_exactly_the_commit(graph: Graph, workspaces: Workspaces) -> None:
    author, work = await worked(graph, workspaces, {"src/new.py": "done\n", "scratch.log": "x\n"})
    graph.move("worked", head_sha=work.head_sha, host="host-a")
    write(workspace_of(workspaces.home, author), {"src/new.py": "changed since\n"})
    check = graph.begin(Role.CHECK, 1, "true")
    await graph.call(workspaces.prepare_workspace, check.id)
    tree = workspace_of(workspaces.home, check)
    assert (tree / "src/new.py").read_text() == "done\n"


async def test_a_commit_is_pushed_once_and_a_repeat_finds_it_there(
    graph: Graph, workspaces: Workspaces, remote: Remote
) -> None:
    _, work = await worked(graph, workspaces, {"src/new.py": "done\n"})
    order = publishing(graph, work)
    for _ in range(2):
        push = await graph.call(workspaces.push_branch, order)
        assert (push.kind, push.sha) == (PushKind.PUSHED, work.head_sha)
    assert remote.head(branch_of(graph.task)) == work.head_sha


async def test_a_branch_that_somebody_moved_is_not_overwritten(
    graph: Graph, workspaces: Workspaces, remote: Remote
) -> None:
    _, work = await worked(graph, workspaces, {"src/new.py": "done\n"})
    theirs = remote.commit(branch_of(graph.task), {"src/theirs.py": "x\n"})
    push = await graph.call(workspaces.push_branch, publishing(graph, work))
    assert (push.kind, push.sha) == (PushKind.MOVED, theirs)
    assert remote.head(branch_of(graph.task)) == theirs


async def test_what_was_pushed_just_before_a_crash_is_ours_and_is_pushed_over(
    graph: Graph, workspaces: Workspaces, remote: Remote
) -> None:
    first, unfinished = await worked(graph, workspaces, {"src/a": "half of it"}, end="refuse")
    draft = PushOrder(graph.task, first.epoch, unfinished.head_sha, TaskState.WORKING)
    assert (await graph.call(workspaces.push_branch, draft)).kind is PushKind.PUSHED
    assert not graph.facts().pushed_sha

    _, work = await worked(graph, workspaces, {"src/a": "all of it"})
    push = await graph.call(workspaces.push_branch, publishing(graph, work))
    assert (push.kind, push.sha) == (PushKind.PUSHED, work.head_sha)
    assert remote.head(branch_of(graph.task)) == work.head_sha


async def test_a_persons_commit_stays_theirs_although_a_run_began_at_it_and_left_it_as_it_was(
    graph: Graph, workspaces: Workspaces, remote: Remote
) -> None:
    theirs = remote.commit(branch_of(graph.task), {"src/theirs.py": "x\n"})
    _, nothing = await worked(graph, workspaces, {}, end="crash")
    assert nothing.head_sha == theirs
    _, work = await worked(graph, workspaces, {"src/new.py": "done\n"})
    push = await graph.call(workspaces.push_branch, publishing(graph, work))
    assert (push.kind, push.sha) == (PushKind.MOVED, theirs)


async def test_an_order_of_an_earlier_epoch_pushes_nothing(
    graph: Graph, workspaces: Workspaces, remote: Remote
) -> None:
    _, work = await worked(graph, workspaces, {"src/new.py": "done\n"})
    order = publishing(graph, work)
    with pytest.raises(Superseded):
        await graph.call(workspaces.push_branch, PushOrder(order.task_id, order.epoch - 1, order.sha))
    graph.pause()
    with pytest.raises(Superseded):
        await graph.call(workspaces.push_branch, order)
    assert remote.head(branch_of(graph.task)) is None


async def test_what_is_cleared_away_is_preserved_first(graph: Graph, workspaces: Workspaces) -> None:
    run, work = await worked(graph, workspaces, {"src/new.py": "done\n"})
    for _ in range(2):
        await graph.call(workspaces.clear_away, graph.task)
    assert not workspace_of(workspaces.home, run).exists()
    assert Mirror(workspaces.home, "acme/shop").preserved(graph.task, run.id) == work.head_sha


async def test_what_is_not_preserved_is_not_cleared_away(graph: Graph, workspaces: Workspaces) -> None:
    run = graph.begin()
    await graph.call(workspaces.prepare_workspace, run.id)
    await graph.call(workspaces.clear_away, graph.task)
    assert workspace_of(workspaces.home, run).exists()


async def test_what_only_a_tasks_runs_needed_goes_with_it_and_what_they_wrote_stays(
    graph: Graph, workspaces: Workspaces
) -> None:
    run, _ = await worked(graph, workspaces, {"src/new.py": "done\n"})
    folder = workspaces.home / "runs" / run.id
    memory = workspaces.home / "memory" / graph.task
    others = {"runs/another-1-author-1/home/cache": "x", "memory/another-1/author-claude/session": "x"}
    write(workspaces.home, others)
    write(folder, {"home/.cache/a": "x", "tmp/b": "x", "output.0": "what it said", "told/hook-events.jsonl": ""})
    write(memory, {"author-claude/projects/session.jsonl": "x"})
    for _ in range(2):
        await graph.call(workspaces.clear_away, graph.task)
    assert {path.name for path in folder.iterdir()} >= {"output.0", "prepared.json", "told"}
    assert not any((folder / name).exists() for name in ("home", "tmp"))
    assert not memory.exists()
    assert all((workspaces.home / name).exists() for name in others)


async def test_a_run_that_lives_keeps_what_it_has(graph: Graph, workspaces: Workspaces) -> None:
    run = graph.begin()
    folder = workspaces.home / "runs" / run.id
    write(folder, {"home/.cache/a": "x", "tmp/b": "x"})
    write(workspaces.home / "memory" / graph.task, {"author-claude/session": "x"})
    await graph.call(workspaces.clear_away, graph.task)
    assert all((folder / name).exists() for name in ("home", "tmp"))
    assert (workspaces.home / "memory" / graph.task / "author-claude/session").exists()


async def test_a_workspace_that_was_never_made_cannot_be_collected(graph: Graph, workspaces: Workspaces) -> None:
    run = graph.begin()
    with pytest.raises(NotFound, match="was never made"):
        await graph.call(workspaces.collect_work, run.id)


async def test_two_tasks_of_one_repository_do_not_disturb_each_other(
    graph: Graph, workspaces: Workspaces, remote: Remote
) -> None:
    run = graph.begin()
    mirror = Mirror(workspaces.home, "acme/shop")
    others = [asyncio.to_thread(mirror.fetch, remote.url, None, "main") for _ in range(3)]
    await asyncio.gather(graph.call(workspaces.prepare_workspace, run.id), *others)
    assert workspace_of(workspaces.home, run).exists()


async def test_what_a_commit_changes_is_evidence_that_says_what_made_it(graph: Graph, workspaces: Workspaces) -> None:
    run, work = await worked(graph, workspaces, {"src/a.py": "x\n", "src/b c.py": "y\n"})
    await graph.call(workspaces.collect_work, run.id)
    with graph.store.read() as connection:
        (seen,) = evidence_of(connection, task_id=graph.task)
        assert content(connection, seen.digest) == b"src/a.py\nsrc/b c.py\n"
    assert (seen.kind, seen.run_id, seen.epoch, seen.commit_sha) == ("changes", run.id, run.epoch, work.head_sha)
    assert (seen.seen_by, seen.truncated) == ("worker-1", False)


async def test_a_list_of_changes_without_end_is_cut_between_paths(
    graph: Graph, workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.evidence.MAX_CONTENT", 15)
    await worked(graph, workspaces, {"src/a.py": "x\n", "src/b.py": "y\n"})
    with graph.store.read() as connection:
        (seen,) = evidence_of(connection, task_id=graph.task)
        assert (content(connection, seen.digest), seen.truncated) == (b"src/a.py\n", True)


async def test_a_run_that_changed_nothing_leaves_no_evidence_of_changes(graph: Graph, workspaces: Workspaces) -> None:
    await worked(graph, workspaces, {})
    with graph.store.read() as connection:
        assert evidence_of(connection, task_id=graph.task) == ()
