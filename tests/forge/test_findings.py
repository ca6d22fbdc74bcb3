"""What a run left that may not be published is a fault, and is preserved all the same."""

from __future__ import annotations

from pathlib import Path

from domain.findings import MAX_FILE_BYTES
from forge.collect import Work
from tests.forge.desk import AT, TASK, Desk, write

TOKEN = "gh" + "p_" + "a1B2" * 9


def collect(desk: Desk, *refuse: str) -> Work:
    return desk.mirror.collect(
        desk.workspace, task_id=TASK, run_id="run-1", start=desk.base_sha, base_sha=desk.base_sha,
        message="Work", at=AT, refuse=refuse,
    )  # fmt: skip


def test_a_refused_path_is_a_fault_however_it_was_changed(desk: Desk) -> None:
    write(desk.workspace, {".github/workflows/ci.yml": "on: push\n", "docs/a.md": "a\n"})
    (desk.workspace / "src" / "price.py").unlink()
    work = collect(desk, ".github/**", "src/*.py")
    assert work.faults == ("the policy refuses changes to .github/workflows/ci.yml, src/price.py",)
    assert desk.mirror.preserved(TASK, "run-1") == work.head_sha != desk.base_sha
    assert collect(desk).faults == ()


def test_a_link_out_of_the_tree_is_a_fault_and_is_not_followed(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(TOKEN)
    (desk.workspace / "out").symlink_to(tmp_path / "secret")
    (desk.workspace / "in").symlink_to("src/price.py")
    assert collect(desk).faults == ("out is a symbolic link that leads out of the repository",)


def test_a_file_that_changes_its_kind_is_a_fault(desk: Desk) -> None:
    (desk.workspace / "README.md").chmod(0o755)
    (desk.workspace / "src" / "price.py").unlink()
    (desk.workspace / "src" / "price.py").symlink_to("../README.md")
    assert collect(desk).faults == ("README.md has become executable", "src/price.py has become a symbolic link")


def test_a_secret_is_a_fault_that_names_its_line_and_not_itself(desk: Desk) -> None:
    write(desk.workspace, {"config.py": f"A = 1\nTOKEN = '{TOKEN}'\n"})
    (fault,) = collect(desk).faults
    assert fault == "config.py has what looks like a GitHub token in line 2"


def test_a_secret_that_the_base_has_already_is_none_of_this_change(desk: Desk) -> None:
    desk.base_sha = desk.remote.commit("main", {"config.py": f"TOKEN = '{TOKEN}'\n"})
    desk.mirror.fetch(desk.remote.url, None, "main")
    write(desk.workspace, {"config.py": f"TOKEN = '{TOKEN}'\nDEBUG = True\n"})
    assert collect(desk).faults == ()


def test_a_file_too_large_to_be_reviewed_is_a_fault(desk: Desk) -> None:
    (desk.workspace / "data.bin").write_bytes(TOKEN.encode() + bytes(MAX_FILE_BYTES))
    assert collect(desk).faults == ("data.bin has 10 MiB; more than 10 are no file to review",)
