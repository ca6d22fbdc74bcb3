"""Which processes are a run's, and how they are ended: all of them, and never anybody else's.

A process belongs to a run because it descends from the run's supervisor or because it bears the
run's marker; a name says nothing. It is named by pid and start time, and signalled through a pidfd
after its start time was seen again, so a pid that the kernel gave to somebody else is left alone.

The marker is `<run id>.<14 hex digits>` and is borne twice. `WATCHBILL_MARKER` in the environment is
for people, and survives a new session; but programs clear their environment or write over it
(PostgreSQL and others do, to set their titles), and that of ssh-agent and the like cannot be read.
So the marker's digits are also the soft limit on real-time CPU, which nothing uses, which any process
may set, which fork and exec hand on, and which anyone may read: some two thousand years of it.
Sources: proc(5), getrlimit(2), pidfd_open(2).
"""

from __future__ import annotations

import os
import resource
import time

from runtimes.files import read_bytes
from runtimes.linux import SIGKILL, SIGTERM, send_signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Process = tuple[int, int]
    """A pid and its start time in clock ticks since the machine started."""

MARKER = "WATCHBILL_MARKER"
KILL_SECONDS = 5.0
"""How long SIGKILL is repeated before what is left is reported instead."""

_STEP_SECONDS = 0.02
_BRAND = 1 << 56
_PAGE = 1 << 14


def boot_id() -> str:
    """The kernel's random name for this start of the machine; start times mean nothing in another."""
    return (read_bytes("/proc/sys/kernel/random/boot_id") or b"").decode().strip()


def identify(pid: int) -> Process | None:
    """The process that has this pid now, or None when that has ended."""
    row = _stat(pid)
    return (pid, row.started) if row and not row.zombie else None


def brand(marker: str) -> None:
    """Put the marker's limit on this process and all that it will start."""
    hard = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
    if hard == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_RTTIME, (_limit_of(marker), hard))


def bearers(marker: str) -> set[Process]:
    """Every process that bears the marker, but this one."""
    return _bearers(marker, _table(), since=0)


def members(marker: str, *, but: int = 0) -> set[Process]:
    """Every process below this one, a zombie too, and every bearer that is no older than this one.

    Without the process `but` and its children: those that keep a cell, and are not in it.

    A subreaper that collects its dead children first can rely on an empty answer: while it has
    descendants it has a child, which nobody else can remove.
    """
    rows = _table()
    below = {os.getpid()}
    while more := {pid for pid, row in rows.items() if row.parent in below} - below:
        below |= more
    own = _stat(os.getpid())
    if but:
        rows = {pid: row for pid, row in rows.items() if but not in (pid, row.parent)}
    return {(pid, rows[pid].started) for pid in below if pid in rows} | _bearers(
        marker, rows, since=own.started if own else 0
    )


def end_all(
    find: Callable[[], set[Process]], *, grace: float, wait: Callable[[float], object] = time.sleep
) -> tuple[set[Process], set[Process]]:
    """End whatever `find` answers, again and again, until it answers nothing.

    SIGTERM first, to each process once; after `grace` seconds SIGKILL. `wait` passes the time (a
    supervisor goes on reading output meanwhile). Answers what was signalled, and what would not end
    within `KILL_SECONDS` more: processes that hang in the kernel.
    """
    signalled: set[Process] = set()
    began = time.monotonic()
    while left := find():
        passed = time.monotonic() - began
        if passed > grace + KILL_SECONDS:
            break
        if passed >= grace:
            signalled |= {process for process in left if _send(process, SIGKILL)}
        else:
            signalled |= {process for process in left - signalled if _send(process, SIGTERM)}
        wait(_STEP_SECONDS)
    return signalled, left


def with_survivors(reason: str, left: set[Process]) -> str:
    """The reason for an end, and the pids that it did not reach, if any."""
    pids = ", ".join(str(pid) for pid, _ in sorted(left))
    return f"{reason}; processes that would not end: {pids}".removeprefix("; ") if left else reason


def _send(process: Process, number: int) -> bool:
    """Signal the process if it still is that one; whether it was."""
    try:
        pidfd = os.pidfd_open(process[0])
    except ProcessLookupError:
        return False
    try:
        if identify(process[0]) != process:
            return False
        send_signal(pidfd, number)
    except (ProcessLookupError, PermissionError):
        # Gone since, or another user's by way of a setuid program: that one stays, and is reported.
        return False
    finally:
        os.close(pidfd)
    return True


def _bearers(marker: str, rows: dict[int, _Row], *, since: int) -> set[Process]:
    variable = f"\0{MARKER}={marker}\0".encode()
    limit = b" %d " % _limit_of(marker)
    return {
        (pid, row.started)
        for pid, row in rows.items()
        if row.started >= since
        and row.has_memory
        and (variable in b"\0" + _read(f"/proc/{pid}/environ") or limit in _read(f"/proc/{pid}/limits"))
    }


class _Row:
    """A line of the process table. A kernel thread, or one that is just ending, has no memory."""

    __slots__ = ("has_memory", "parent", "started", "zombie")

    def __init__(self, data: bytes) -> None:
        # The name in brackets may hold anything, so count from its end.
        fields = data[data.rindex(b")") + 2 :].split()
        self.parent, self.started = int(fields[1]), int(fields[19])
        self.has_memory = fields[20] != b"0"
        # A first thread may end before the others: then the process lives on behind a zombie.
        self.zombie = fields[0] in b"ZX" and int(fields[17]) <= 1


def _table() -> dict[int, _Row]:
    """Every process but this one, by pid."""
    pids = {int(name) for name in os.listdir("/proc") if name.isdigit()} - {os.getpid()}
    return {pid: row for pid in pids if (row := _stat(pid))}


def _stat(pid: int) -> _Row | None:
    data = _read(f"/proc/{pid}/stat")
    return _Row(data) if data else None


def _read(path: str) -> bytes:
    """A file of /proc, empty when it is gone or not for us: `read_bytes` in a third of the time."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        data = chunk = os.read(descriptor, _PAGE)
        while len(chunk) == _PAGE:
            chunk = os.read(descriptor, _PAGE)
            data += chunk
        return data
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _limit_of(marker: str) -> int:
    return _BRAND | int(marker.rpartition(".")[2], 16)
