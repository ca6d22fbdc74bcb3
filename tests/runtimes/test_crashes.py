"""What is known of a worker after its death."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runtimes.crashes import TAIL_LIMIT, WorkerLog, dead_workers, forget

ROOT = Path(__file__).parents[2]

PREAMBLE = """
import os, signal, subprocess, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from runtimes.crashes import WorkerLog

log = WorkerLog(Path(sys.argv[2]), "worker-1")
log.redirect()
"""


@pytest.fixture
def work(tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Be a worker that does this, to its end."""

    def run(script: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-c", PREAMBLE + script, str(ROOT), str(tmp_path)]
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    return run


def test_a_killed_worker_leaves_the_last_that_it_wrote(work, tmp_path):
    done = work('print("the last words", file=sys.stderr); os.kill(os.getpid(), signal.SIGKILL)')
    assert done.returncode == -signal.SIGKILL
    assert done.stderr == "the last words\n"
    (dead,) = dead_workers(tmp_path)
    assert (dead.worker_id, dead.tail) == ("worker-1", "the last words\n")


def test_an_abort_in_native_code_leaves_its_traceback(work, tmp_path):
    work("os.abort()")
    (dead,) = dead_workers(tmp_path)
    assert "Fatal Python error: Aborted" in dead.tail
    assert "<string>" in dead.tail


def test_an_exception_that_nobody_caught_leaves_its_traceback(work, tmp_path):
    done = work('raise RuntimeError("this was not foreseen")')
    (dead,) = dead_workers(tmp_path)
    assert "RuntimeError: this was not foreseen" in dead.tail
    assert "RuntimeError: this was not foreseen" in done.stderr


def test_what_a_child_of_the_worker_writes_is_kept_too(work, tmp_path):
    work('subprocess.run(["sh", "-c", "echo from git >&2"]); os._exit(1)')
    assert dead_workers(tmp_path)[0].tail == "from git\n"


def test_a_worker_that_ends_in_good_order_is_not_dead(work, tmp_path):
    work('print("all is well", file=sys.stderr); log.close()')
    assert dead_workers(tmp_path) == []


def test_a_worker_that_lives_is_not_dead(tmp_path):
    log = WorkerLog(tmp_path, "worker-1")
    try:
        assert dead_workers(tmp_path) == []
    finally:
        log.close()


def test_a_dead_worker_is_told_of_until_it_is_forgotten(work, tmp_path):
    work("os._exit(1)")
    assert len(dead_workers(tmp_path)) == len(dead_workers(tmp_path)) == 1
    forget(tmp_path, "worker-1")
    assert dead_workers(tmp_path) == []


def test_the_log_is_bounded_and_the_tail_is_its_end(work, tmp_path):
    work('for _ in range(12_000): print("x" * 1023, file=sys.stderr)\nprint("end", file=sys.stderr); os._exit(1)')
    (dead,) = dead_workers(tmp_path)
    assert dead.tail.endswith("x\nend\n")
    assert len(dead.tail) == TAIL_LIMIT
    assert sum(file.stat().st_size for file in (tmp_path / "workers" / "worker-1").iterdir()) < 9 << 20


def test_only_the_last_twenty_folders_of_workers_that_are_gone_stay(tmp_path):
    living = WorkerLog(tmp_path, "living")
    for number in range(25):
        WorkerLog(tmp_path, f"worker-{number:02}").close()
    last = WorkerLog(tmp_path, "last")
    names = sorted(path.name for path in (tmp_path / "workers").iterdir())
    assert names == ["last", "living", *(f"worker-{number:02}" for number in range(5, 25))]
    living.close()
    last.close()


def test_a_home_without_workers_has_no_dead_ones(tmp_path):
    assert dead_workers(tmp_path) == []
