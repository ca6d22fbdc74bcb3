"""An installation under test: `watchbill up` with a stand-in GitHub, its processes, and commands to it."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from starter.__main__ import run
from starter.local import addresses
from starter.local.addresses import Addresses
from starter.local.service import leashed
from tests.end_to_end.plans import REPOSITORY, Box, document

WATCHBILL = str(Path(sys.executable).with_name("watchbill"))
OWNER = "local"

PATIENCE = 200.0
"""Seconds after which a condition that does not come about is a failure; no test waits for them to pass."""

SETTINGS = {
    "WATCHBILL_INTERVAL": "1",
    "WATCHBILL_GITHUB_PAUSE": "0",
    "WATCHBILL_SLOTS": "8",
    # Agents of these tests tell where they are, and wait, by way of files that lie outside of their workspaces.
    "WATCHBILL_CONFINE": "off",
}


@dataclass(frozen=True)
class Done:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Installation:
    """One installation in `folder`, whose forge has a copy of one small repository. `settings` add to ours."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder, self.home = folder, folder / "home"
        self.settings = {**SETTINGS, **settings}
        self._up: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Bring everything up. Where something else was faster to a port, it is tried again."""
        source = self.folder / "source"
        if not source.exists():
            source.mkdir(parents=True)
            (source / "README.md").write_text("# shop\n")
        for attempts_left in (2, 1, 0):
            with (self.folder / "up.log").open("ab") as log:
                self._up = subprocess.Popen(
                    leashed([WATCHBILL, "up", f"--stand-in={REPOSITORY}={source}"]),
                    cwd=self.folder, env=self.environment, stdout=log, stderr=log, text=True,
                )  # fmt: skip
            self.until(lambda: addresses.read(self.home) or self._up.poll() is not None, "everything is up")
            if self._up.poll() is None:
                return
            assert attempts_left, (self.folder / "up.log").read_text()

    def stop(self) -> None:
        if self._up is not None:
            self._up.terminate()
            self._up.wait(60)
            self._up = None

    @property
    def addresses(self) -> Addresses:
        found = addresses.read(self.home)
        assert found is not None, "nothing is up"
        return found

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
        told = {"HOME": str(self.folder), "WATCHBILL_HOME": str(self.home), "WATCHBILL_OWNER": OWNER}
        return {**inherited, **told, **self.settings}

    def pid(self, part: str) -> int:
        """The process id of a part (`temporal`, `stand-in`, `worker`, `webhooks` or `relay`), once it lives."""
        return self.until(lambda: self._living(part), f"{part} lives")

    def kill(self, part: str) -> None:
        """kill -9 of a part, and wait for the one that follows it."""
        pid = self.pid(part)
        os.kill(pid, signal.SIGKILL)
        self.until(lambda: self._living(part) not in (None, pid), f"{part} is started again")

    def _living(self, part: str) -> int | None:
        assert self._up is not None
        sign = {"temporal": "start-dev", "stand-in": "rehearsal"}.get(part, part)
        for child in psutil.Process(self._up.pid).children():
            try:
                if child.status() != psutil.STATUS_ZOMBIE and sign in child.cmdline():
                    return child.pid
            except psutil.NoSuchProcess:
                continue
        return None

    def until(self, condition: Callable[[], Any], what: str, patience: float = PATIENCE, slug: str = "") -> Any:
        """Wait until the condition holds, and answer what it answered; a failure tells the plan's story."""
        deadline = time.monotonic() + patience
        while not (found := condition()):
            assert time.monotonic() < deadline, f"still not: {what}\n{self.story(slug)}"
            time.sleep(0.05)
        return found

    def story(self, slug: str) -> str:
        """What is known of a plan, for whoever has to find out why something did not come about."""
        return slug

    def command(self, *arguments: object, expect: int | None = 0) -> Done:
        """Run one command, in this process but as its users do, where `expect` says how it exits."""
        out, err = io.StringIO(), io.StringIO()
        with told(self.environment), redirect_stdout(out), redirect_stderr(err):
            code = int(run([str(argument) for argument in arguments]))
        assert expect is None or code == expect, (arguments, code, out.getvalue(), err.getvalue())
        return Done(code, out.getvalue(), err.getvalue())

    def begin(self, *arguments: object, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start one command as a process of its own, and do not wait for it."""
        return subprocess.Popen(
            leashed([WATCHBILL, *map(str, arguments)]),
            cwd=self.folder,
            env=environment or self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def write(self, slug: str, *boxes: Box | str, **front: str) -> Path:
        """Write a plan's document; see `document`."""
        path = self.folder / f"{slug}.md"
        path.write_text(document(slug, *boxes, **front))
        return path

    def submit(self, slug: str, *boxes: Box | str, **front: str) -> Path:
        """Write, publish and confirm a plan."""
        path = self.write(slug, *boxes, **front)
        self.command("submit", path, "--confirm")
        return path


@contextmanager
def told(environment: Mapping[str, str]) -> Iterator[None]:
    """This process's environment is that one, and nothing else, while it lasts."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
