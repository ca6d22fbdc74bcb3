"""Work that meets other people's work: conflicts, commits by hand, branches that moved."""

from __future__ import annotations

from pathlib import Path

from domain.identity import branch_of, plan_id, task_id
from tests.end_to_end.installation import OWNER
from tests.end_to_end.plans import PROVEN, REPOSITORY, Box, waits_for
from tests.end_to_end.rig import Rig


def branch(slug: str, ordinal: int = 1) -> str:
    return branch_of(task_id(plan_id(OWNER, slug), ordinal))


def commit_by_hand(rig: Rig, folder: Path, onto: str, **files: str) -> str:
    """Push a person's commit with these files onto a branch; the commit."""
    clone = folder / "clone"
    rig.git("clone", "--quiet", "--branch", onto, "{url}", str(clone))
    for name, text in files.items():
        (clone / f"{name}.txt").write_text(text)
    rig.git("add", "--all", cwd=clone)
    rig.git("commit", "--quiet", "--message", "by hand", cwd=clone)
    rig.git("push", "--quiet", "{url}", f"HEAD:{onto}", cwd=clone)
    return rig.git("rev-parse", "HEAD", cwd=clone).strip()


def test_of_two_tasks_that_conflict_the_second_is_done_again_on_the_new_base(rig: Rig, tmp_path):
    """Both are cut from the same base, and the second ends only when the first is merged."""
    begun, merged = tmp_path / "begun", tmp_path / "merged"
    first = f"{waits_for(begun)}\necho first >> conflict.txt"
    second = f"touch {begun}\ntest -e conflict.txt || {waits_for(merged)}\necho second >> conflict.txt"
    rig.submit("conflict", Box("First", first), Box("Second", second), concurrency="2", **PROVEN)
    rig.until_state("conflict", 1, "merged")
    merged.touch()
    view = rig.until_completed("conflict")
    assert [(task.state, task.proof) for task in view.tasks] == [("merged", "proven")] * 2
    assert [task.runs for task in view.tasks] == [1, 2]
    assert rig.file("conflict.txt") == "first\nsecond\n"
    assert len(rig.pulls("conflict")) == 2


def test_a_persons_commit_in_review_is_kept_and_the_checks_are_run_on_it(rig: Rig, tmp_path):
    rig.submit("touched", "Write it", checks='["test -e touched-1.txt"]')
    before = rig.until_state("touched", 1, "in_review")
    theirs = commit_by_hand(rig, tmp_path, branch("touched"), more="by hand\n")
    rig.until(lambda: rig.task("touched").head_sha == theirs, "their commit is the head")
    rig.until_state("touched", 1, "in_review")
    checked = [seen.commit_sha for seen, _ in rig.evidence("touched", "check")]
    assert checked == [before.head_sha, theirs]
    rig.command("approve", "touched#1", "--sha", theirs)
    view = rig.until_completed("touched")
    assert (view.tasks[0].state, view.tasks[0].proof, view.tasks[0].runs) == ("merged", "proven", 1)
    assert rig.file("more.txt") == "by hand\n"


def test_a_persons_commit_that_breaks_the_checks_goes_to_the_next_run_and_is_not_overwritten(rig: Rig, tmp_path):
    script = "echo it > mend.txt\nrm -f broken.txt"
    rig.submit("mend", Box("Write it", script), checks='["test ! -e broken.txt"]')
    rig.until_state("mend", 1, "in_review")
    theirs = commit_by_hand(rig, tmp_path, branch("mend"), broken="x", kept="by hand\n")
    rig.until(lambda: rig.task("mend").runs == 2, "another run begins")
    task = rig.until_state("mend", 1, "in_review")
    rig.git("fetch", "--quiet", "{url}", branch("mend"), cwd=tmp_path / "clone")
    assert rig.git("merge-base", "--all", "FETCH_HEAD", theirs, cwd=tmp_path / "clone").strip() == theirs
    rig.command("approve", "mend#1", "--sha", task.head_sha)
    rig.until_completed("mend")
    assert (rig.file("kept.txt"), rig.file("broken.txt")) == ("by hand\n", None)


def test_a_branch_that_a_person_made_first_is_built_upon(rig: Rig, tmp_path):
    rig.write("theirs-first", Box("Write it", "test -e first.txt\necho it > second.txt"), **PROVEN)
    rig.git("clone", "--quiet", "{url}", str(tmp_path / "clone"))
    (tmp_path / "clone" / "first.txt").write_text("by hand\n")
    rig.git("add", "--all", cwd=tmp_path / "clone")
    rig.git("commit", "--quiet", "--message", "by hand", cwd=tmp_path / "clone")
    rig.git("push", "--quiet", "{url}", f"HEAD:{branch('theirs-first')}", cwd=tmp_path / "clone")
    rig.command("submit", rig.folder / "theirs-first.md", "--confirm")
    rig.until_completed("theirs-first")
    assert (rig.file("first.txt"), rig.file("second.txt")) == ("by hand\n", "it\n")
    assert len(rig.pulls("theirs-first")) == 1


def test_a_branch_of_the_same_name_in_a_fork_is_not_the_tasks(rig: Rig, tmp_path):
    name = rig.scene("POST", "forks", name=REPOSITORY, owner="mallory")["name"]
    rig.scene("POST", "collaborators", name=name, login="ada", permission="write")
    clone = tmp_path / "clone"
    rig.git("clone", "--quiet", "{url}", str(clone), repository=name)
    (clone / "trap.txt").write_text("theirs\n")
    rig.git("add", "--all", cwd=clone)
    rig.git("commit", "--quiet", "--message", "a look-alike", cwd=clone)
    rig.git("push", "--quiet", "{url}", f"HEAD:{branch('look-alike')}", cwd=clone, repository=name)
    theirs = rig.forge(
        "POST", f"repos/{REPOSITORY}/pulls", title="trap", head=f"mallory:{branch('look-alike')}", base="main"
    )
    rig.submit("look-alike", "Write it", **PROVEN)
    rig.until_completed("look-alike")
    assert rig.pull_number("look-alike") != theirs["number"]
    assert rig.file("trap.txt") is None
    assert rig.forge("GET", f"repos/{REPOSITORY}/pulls/{theirs['number']}")["state"] == "open"


def test_work_that_the_base_has_already_opens_no_pull_request(rig: Rig):
    rig.submit("there", Box("Write it", "echo it > there.txt"), **PROVEN)
    rig.until_completed("there")
    rig.submit("there-again", Box("Write it", "echo it > there.txt"), Box("And take it back", "echo x > y; rm y"))
    view = rig.until_completed("there-again")
    assert [task.state for task in view.tasks] == ["no_changes", "no_changes"]
    assert all(task.reason for task in view.tasks)
    rig.assert_untouched("there-again")


def test_titles_and_paths_may_hold_any_characters(rig: Rig):
    script = "mkdir -p 'pakke/ø å'\necho æ > 'pakke/ø å/fil \"1\".txt'"
    rig.submit("any-name", Box("Schreib „Grüße“ — 你好 #12, closes #1 @ada", script), **PROVEN)
    rig.until_completed("any-name")
    assert rig.file('pakke/ø å/fil "1".txt') == "æ\n"
    [pull] = rig.pulls("any-name")
    assert "你好" in pull["title"]
    assert "@ada" not in pull["title"]
    assert "closes #1" not in pull["title"]
