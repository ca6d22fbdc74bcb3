"""CPU time and memory of processes, as the kernel counts them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of_command(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> float:
    """The seconds of CPU, user and system, of one run of a command with all that it waited for.

    RuntimeError when it fails.
    """
    with (folder / "said").open("w+b") as said:
        child = subprocess.Popen(command, stdout=said, stderr=said, env=dict(environment), cwd=folder)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            raise RuntimeError(f"{' '.join(command)} exited {child.returncode}: {said.read().decode()}")
    return used.ru_utime + used.ru_stime


def cpu_of(pids: Iterable[int]) -> float:
    """The seconds of CPU that these processes have used so far, with those children that have ended."""
    return sum(sum(map(int, _stat(pid)[11:15])) for pid in pids) / _TICKS


def memory_of(pid: int) -> float:
    """The most memory in MB that a process has held so far (its resident set's peak)."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def _stat(pid: int) -> list[str]:
    """The fields of proc(5)'s stat behind the name, which is in brackets and may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
