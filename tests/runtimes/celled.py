"""Real cells for tests: scripts and probes that run confined, and hosts where nothing can."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from domain.confinement import Confine, Confinement
from runtimes.confiner import Confiner
from runtimes.folder import RunFolder
from runtimes.port import DEFAULT_PATH, Door, Job, Launch
from runtimes.sandbox import Sandbox, find_sandbox
from runtimes.shell import private_environment

NO_SANDBOX = Sandbox(missing="bubblewrap is not installed", mend="apt-get install bubblewrap")

needs_sandbox = pytest.mark.skipif(bool(find_sandbox().missing), reason=find_sandbox().missing)


class Cells:
    """Runs in cells, in a home of their own."""

    def __init__(self, bench: Any, home: Path) -> None:
        self.bench, self.home = bench, home
        self.work = home / "workspaces" / "task" / "author"
        self.work.mkdir(parents=True)
        self.confiner = Confiner(Confine.REQUIRED, hidden=(home,))

    def job(self, name: str = "run", **changes: Any) -> Job:
        facts: dict[str, Any] = {
            "run_id": "plan-0a1b2c3d-1-author-1", "task_id": "plan-0a1b2c3d-1", "task_title": "", "task_body": "",
            "workspace": self.work, "folder": self.home / "runs" / name, "timeout": 600, "path": DEFAULT_PATH,
        }  # fmt: skip
        return Job(**{**facts, **changes})

    def launch(
        self, script: str, job: Job | None = None, how: Confinement = Confinement.CONFINED, **changes: Any
    ) -> Launch:
        job = job or self.job()
        env = private_environment(job)
        made = Launch(job.run_id, ("/bin/sh", "-c", script), job.workspace, env, 600, grace=1.0)
        return self.confiner.confine(replace(made, **changes), job, how)

    def run(self, script: str, job: Job | None = None, *, lease: float = 600.0, **changes: Any) -> RunFolder:
        job = job or self.job()
        folder: RunFolder = self.bench.folder(job.folder.name)
        folder.spawn(self.launch(script, job, **changes), datetime.now(UTC) + timedelta(seconds=lease))
        return folder

    def python(self, program: str, job: Job | None = None, **changes: Any) -> RunFolder:
        return self.run("", job, argv=(sys.executable, "-I", "-S", "-c", program), **changes)

    def said(self, run: RunFolder) -> str:
        self.bench.end_of(run)
        return run.text().strip()


class Chunks(BaseHTTPRequestHandler):
    """Answers with a line, and with another once the test says so."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"first for {self.headers['Host']}\n".encode())
        self.wfile.flush()
        event: threading.Event = self.server.go_on  # type: ignore[attr-defined]
        event.wait(60)
        self.wfile.write(b"second\n")

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


class Relay(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Chunks)
        self.go_on = threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def door(self, host: str = "127.0.0.1") -> Door:
        return Door(f"http://{host}:{self.port}/models", "", "token")


def serving() -> Iterator[Relay]:
    server = Relay()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.go_on.set()
    server.shutdown()
    server.server_close()
