"""Real runs in a folder of the test's own, and the certainty that nothing of them stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from runtimes.files import read_object
from runtimes.folder import Dead, Ended, Live, RunFolder
from runtimes.port import DEFAULT_PATH, Launch, RunResult
from runtimes.processes import MARKER, bearers, identify

T = TypeVar("T")
PATIENCE_SECONDS = 60.0


class Bench:
    """Starts runs, watches them, and clears up."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folders: list[RunFolder] = []
        self.strangers: list[subprocess.Popen[bytes]] = []

    def launch(self, script: str, **changes: Any) -> Launch:
        launch = {
            "run_id": "plan-0a1b2c3d-1-author-1",
            "argv": ("/bin/sh", "-c", script),
            "cwd": self.home,
            "env": {"PATH": DEFAULT_PATH, "AT": str(self.home)},
            "timeout": 600.0,
            "grace": 1.0,
        }
        return Launch(**{**launch, **changes})

    def run(self, script: str, *, name: str = "run", lease: float = 600.0, **changes: Any) -> RunFolder:
        folder = self.folder(name)
        folder.spawn(self.launch(script, **changes), datetime.now(UTC) + timedelta(seconds=lease))
        return folder

    def folder(self, name: str = "run") -> RunFolder:
        folder = RunFolder(self.home / "runs" / name)
        self.folders.append(folder)
        return folder

    def stranger(self, *argv: str, **env: str) -> int:
        """A process that is no run's; its pid."""
        child = subprocess.Popen(argv, env={"PATH": DEFAULT_PATH, **env}, start_new_session=True)
        self.strangers.append(child)
        return child.pid

    def until(self, look: Callable[[], T | None]) -> T:
        """The first answer that is true; the test fails when none comes."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (answer := look()):
            assert time.monotonic() < deadline, "this never became true"
            time.sleep(0.01)
        return answer

    def end_of(self, folder: RunFolder) -> RunResult:
        status = self.until(lambda: None if isinstance(now := folder.status(), Live) else now)
        assert isinstance(status, Ended)
        return status.result

    def pid_in(self, name: str) -> int:
        """The pid that a script wrote to a file of this name in the home."""
        return int(self.until(lambda: self.read(name)))

    def read(self, name: str) -> str:
        file = self.home / name
        text = file.read_text() if file.exists() else ""
        return text if text.endswith("\n") else ""

    def agent(self, folder: RunFolder) -> int:
        return int(self.state(folder)["pid"])

    def supervisor(self, folder: RunFolder) -> int:
        return int(self.state(folder)["supervisor"][0])

    def state(self, folder: RunFolder) -> dict[str, Any]:
        return self.until(lambda: read_object(str(folder.path / "state.json")))

    def kill_supervisor(self, folder: RunFolder) -> None:
        os.kill(self.supervisor(folder), signal.SIGKILL)
        self.until(lambda: isinstance(folder.status(), Dead))

    def marker(self, folder: RunFolder) -> str:
        spec = read_object(str(folder.path / "spec.json"))
        return str(spec["env"][MARKER]) if spec else ""

    def left_of(self, folder: RunFolder) -> set[tuple[int, int]]:
        marker = self.marker(folder)
        return bearers(marker) if marker else set()

    def clear(self) -> None:
        for folder in self.folders:
            if isinstance(folder.status(), Live):
                folder.stop("the test is over")
        for folder in self.folders:
            self.until(partial(is_over, folder))
            folder.reap()
            assert self.left_of(folder) == set()
        for stranger in self.strangers:
            stranger.kill()
            stranger.wait()


def is_over(folder: RunFolder) -> bool:
    return not isinstance(folder.status(), Live)


def is_alive(pid: int) -> bool:
    return identify(pid) is not None


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.clear()


@pytest.fixture
def alive() -> Callable[[int], bool]:
    """Whether a process of this pid is running: a zombie is not."""
    return is_alive
