"""What a worker leaves when it dies: a folder of its own with the last it wrote to standard error.

A worker that ends in good order says so. One whose lock is free and that did not is dead; whoever
starts next finds it, records it as evidence, and forgets it.
"""

from __future__ import annotations

import faulthandler
import io
import os
import shutil
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from runtimes.files import read_bytes, read_object, write_object
from runtimes.host import boot_id, host_id
from runtimes.lock import lock_held, take_lock
from runtimes.processes import identify
from runtimes.text import plain

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

TAIL_LIMIT = 1 << 16
"""How much of a dead worker's standard error is evidence, in bytes."""

_LOG_LIMIT = 4 << 20
_KEPT = 20
_STDERR = 2


@dataclass(frozen=True)
class DeadWorker:
    """A worker that ended without saying so; `tail` is the last of its standard error, as plain text."""

    worker_id: str
    pid: int
    host: str
    started_at: datetime
    tail: str


class WorkerLog:
    """This worker's folder, `<home>/workers/<worker id>`: alive until `close` or the process's end."""

    def __init__(self, home: Path, worker_id: str) -> None:
        workers = home / "workers"
        self.path = workers / worker_id
        draft = workers / f".{worker_id}"
        draft.mkdir(mode=0o700, parents=True)
        # Held before the folder is seen under its name: nobody may take a worker that starts for dead.
        self._lock = take_lock(draft / "lock")
        process = {
            "pid": os.getpid(),
            "process": identify(os.getpid()),
            "boot_id": boot_id(),
            "host": host_id(home),
            "at": time.time(),
        }
        write_object(str(draft / "process.json"), process)
        draft.rename(self.path)
        _prune(workers)

    def redirect(self) -> None:
        """Send standard error to `stderr.log` here, bounded to two files of some 4 MiB each.

        What Python writes also still goes where it went; what native code and child processes write,
        and the traceback of a fatal signal, go to the log alone. Call it before logging is set up:
        whoever keeps the old `sys.stderr` bypasses the copy.
        """
        sys.stderr = io.TextIOWrapper(
            _Both(self.path / "stderr.log"), encoding="utf-8", errors="backslashreplace", write_through=True
        )
        faulthandler.enable(_STDERR)

    def close(self) -> None:
        """Say that this worker ends in good order."""
        (self.path / "settled").touch()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class _Both(io.RawIOBase):
    """Writes to a log that has become descriptor 2, and to what descriptor 2 was before."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._turning = Lock()
        self._before = os.dup(_STDERR)
        self._open()

    def _open(self) -> None:
        opened = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, _STDERR)
        os.close(opened)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return _STDERR

    def write(self, data: ReadableBuffer, /) -> int:
        with self._turning:
            if os.fstat(_STDERR).st_size > _LOG_LIMIT:
                self._log.replace(self._log.with_suffix(".old"))
                self._open()
        written = os.write(_STDERR, data)
        # A terminal that was closed must not take the worker with it.
        with suppress(OSError):
            os.write(self._before, memoryview(data)[:written])
        return written


def dead_workers(home: Path) -> list[DeadWorker]:
    """The workers of this home that died and have not been forgotten, oldest first."""
    found = []
    for path in _by_age(home / "workers"):
        process = read_object(str(path / "process.json"))
        if process is None or (path / "settled").exists() or lock_held(path / "lock"):
            continue
        written = b"".join(read_bytes(str(path / name)) or b"" for name in ("stderr.old", "stderr.log"))
        tail = plain(written[-TAIL_LIMIT:]).encode()[-TAIL_LIMIT:].decode(errors="ignore")
        started_at = datetime.fromtimestamp(process["at"], UTC)
        found.append(DeadWorker(path.name, process["pid"], process["host"], started_at, tail))
    return found


def forget(home: Path, worker_id: str) -> None:
    """Say that a dead worker's end has been recorded; its folder stays for a while."""
    (home / "workers" / worker_id / "settled").touch()


def _prune(workers: Path) -> None:
    """Delete all but the newest folders of workers that are no more."""
    gone = [path for path in _by_age(workers) if not lock_held(path / "lock")]
    for path in gone[:-_KEPT]:
        shutil.rmtree(path, ignore_errors=True)


def _by_age(workers: Path) -> list[Path]:
    folders = [path for path in workers.glob("[!.]*") if path.is_dir()]
    return sorted(folders, key=lambda path: (path / "lock").stat().st_mtime)
