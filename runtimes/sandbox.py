"""Bubblewrap on this host: whether it works, found out by using it, and how it is called.

Source: bwrap(1). What keeps it from working is the host's to allow: user namespaces, which some kernels and
AppArmor policies deny to users, and a fresh /proc, which containers deny.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from runtimes.files import read_bytes

SHUT = (
    # Everything of its own: users, processes, network, IPC, host name, cgroups.
    "--unshare-all",
    *("--cap-drop", "ALL"),
    # All of it ends with its first process, which is ours, and that with the supervisor.
    *("--die-with-parent", "--as-pid-1"),
    *("--proc", "/proc", "--dev", "/dev"),
)
"""How every cell begins."""

CLOSED = (*SHUT, "--unshare-user", "--disable-userns")
"""The same, and in it nobody makes namespaces of its own: whoever does has all privileges there, and with them
the kernel's calls for mounts and networks to try. Of bubblewrap 0.8 and later."""

_KNOWN_SECONDS = 60
_TRIAL_SECONDS = 20
_USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"
_INSTALLERS = {
    "apt-get": "apt-get install bubblewrap",
    "dnf": "dnf install bubblewrap",
    "pacman": "pacman -S bubblewrap",
    "zypper": "zypper install bubblewrap",
    "apk": "apk add bubblewrap",
}
_DENIALS = {
    "kernel/apparmor_restrict_unprivileged_userns": (b"1", "sysctl kernel.apparmor_restrict_unprivileged_userns=0"),
    "kernel/unprivileged_userns_clone": (b"0", "sysctl kernel.unprivileged_userns_clone=1"),
    "user/max_user_namespaces": (b"0", "sysctl user.max_user_namespaces=15000"),
}
"""Settings of the kernel by which users may make no namespaces: the value that denies it, and what allows it."""

_IN_CONTAINER = "see docs/reference/confinement.md on containers"


@dataclass(frozen=True)
class Sandbox:
    """`program` is bubblewrap's path. `missing` says why no run can be confined here, empty where one can.

    `mend` is the command that an administrator mends it with, or where to read on. `shut` is how its cells begin.
    """

    program: str = ""
    version: str = ""
    missing: str = ""
    mend: str = ""
    shut: tuple[str, ...] = SHUT


_found: dict[str, tuple[float, Sandbox | None]] = {}


def find_sandbox() -> Sandbox:
    """What there is of it on this host, by a trial that takes some hundredths of a second.

    What worked is not tried again for a minute; what did not may have been mended since.
    """
    program = shutil.which("bwrap") or shutil.which("bwrap", path=_USUAL_PATH)
    if program is None:
        return Sandbox(missing="bubblewrap is not installed", mend=_installing())
    known, sandbox = _found.get(program, (0.0, None))
    if sandbox is None or time.monotonic() > known + _KNOWN_SECONDS:
        sandbox = _try(program)
        _found[program] = (time.monotonic(), sandbox) if not sandbox.missing else (0.0, None)
    return sandbox


def _try(program: str) -> Sandbox:
    said = ""
    for shut in (CLOSED, SHUT):
        # What every cell begins with: whether it can be started, whatever else is said.
        first = (sys.executable, "-I", "-S", "-c", "")
        works, said = _say(program, *shut, "--ro-bind", "/", "/", "--remount-ro", "/", "--", *first)
        if works:
            version = re.search(r"\d[\d.]*", _say(program, "--version")[1])
            return Sandbox(program, version[0] if version else "", shut=shut)
    return Sandbox(program, missing=f"bubblewrap does not work here: {said}", mend=_allowing())


def _say(*command: str) -> tuple[bool, str]:
    """Whether a command succeeded, and what it had to say, in a line; a failure has always something to say."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRIAL_SECONDS, check=False, env={}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    said = " ".join((done.stdout + done.stderr).decode(errors="replace").split())
    return done.returncode == 0, said or f"it exited with {done.returncode}"


def _installing() -> str:
    return next((command for tool, command in _INSTALLERS.items() if shutil.which(tool)), "install bubblewrap")


def _allowing() -> str:
    for setting, (denies, allow) in _DENIALS.items():
        if (read_bytes(f"/proc/sys/{setting}") or b"").strip() == denies:
            return allow
    return _IN_CONTAINER if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists() else ""
