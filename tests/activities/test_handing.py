"""What an earlier task made is handed to a later one by its hash, byte for byte."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from activities.handing import SUMS, hand_over
from domain.identity import task_id
from domain.run import EvidenceKind
from runtimes.folder import RunFolder
from runtimes.port import GIVEN, Job
from runtimes.shell import private_environment
from store.contents import folder_beside
from store.database import Store
from tests.store.test_briefing import PLAN, begun, make, see

pytestmark = pytest.mark.usefixtures("nothing_is_small")

BYTES = b"\xff\x00 2 passed\r\n"
HEAD = "b" * 40


@pytest.fixture
def delivered(sqlite_store: Store) -> Store:
    """The second of three tasks has come to a commit that was looked at; the third follows it."""
    begun(sqlite_store)
    second = task_id(PLAN, 2)
    make(sqlite_store, "task", second, "begin")
    run = f"{second}-author-1"
    about = {"plan_id": PLAN, "task_id": second, "role": "author", "number": 1, "runtime": "claude", "epoch": 1}
    make(sqlite_store, "run", run, "start", **about)
    see(sqlite_store, second, run, EvidenceKind.CHANGES, b"src/a.py\n", HEAD)
    see(sqlite_store, second, run, EvidenceKind.CHECK, BYTES, HEAD)
    make(sqlite_store, "task", second, "merged", head_sha=HEAD)
    return sqlite_store


def checked(given: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sha256sum", "--check", "--strict", SUMS], cwd=given, capture_output=True, text=True, check=False
    )


def job(folder: RunFolder) -> Job:
    return Job("run", "task", "", "", folder.path, folder.path, 60)


def test_a_run_is_given_what_its_predecessors_made_and_can_prove_it(delivered: Store, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "runs" / "run")
    for _ in range(2):
        hand_over(delivered, folder, task_id(PLAN, 3))
    given = Path(private_environment(job(folder))["WATCHBILL_GIVEN"])
    assert given == folder.path / GIVEN
    assert (given / "2" / "changes").read_bytes() == b"src/a.py\n"
    assert (given / "2" / "check-1").read_bytes() == BYTES
    assert checked(given).stdout == "2/changes: OK\n2/check-1: OK\n"
    assert folder.path.stat().st_mode & 0o077 == 0


def test_what_is_no_longer_what_it_was_is_not_given_and_found_missing(delivered: Store, tmp_path: Path) -> None:
    (kept,) = (
        file
        for file in folder_beside(delivered.url.removeprefix("sqlite:///")).rglob("*")
        if file.is_file() and file.read_bytes() == BYTES
    )
    kept.write_bytes(BYTES + b"!")
    folder = RunFolder(tmp_path / "runs" / "run")
    hand_over(delivered, folder, task_id(PLAN, 3))
    assert not (folder.path / GIVEN / "2" / "check-1").exists()
    found = checked(folder.path / GIVEN)
    assert (found.returncode, "2/check-1: FAILED open or read" in found.stdout) == (1, True)


def test_a_task_that_follows_none_is_given_nothing(delivered: Store, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "runs" / "run")
    hand_over(delivered, folder, task_id(PLAN, 2))
    assert not folder.path.exists()
    assert "WATCHBILL_GIVEN" not in private_environment(job(folder))
