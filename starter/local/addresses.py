"""Where a local installation listens, written down so that other commands find it.

`<home>/up.json` counts only while somebody holds the lock beside it: after a kill -9 the file is
still there, but the lock is free, and the file is stale. The lock's file stays for good, and so tells a home
whose installation is down from one that never had any.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from domain.errors import WatchbillError


@dataclass(frozen=True)
class Addresses:
    """What is up, and where: `temporal` is `host:port`, the others are URLs.

    `github` is the stand-in's API, None when the real one is meant; `pid` is the process that
    supervises all of it.
    """

    temporal: str
    ui: str
    webhooks: str
    github: str | None
    pid: int
    relay: str = ""


class AlreadyUp(WatchbillError):
    """Another process runs the installation in this home."""


def read(home: Path) -> Addresses | None:
    """The addresses of what is up in this home; None when nothing is, or not yet."""
    try:
        written = json.loads((home / "up.json").read_bytes())
    except (OSError, ValueError):
        return None
    if not _held(home):
        return None
    names = {field.name for field in fields(Addresses)}
    if not isinstance(written, dict) or not names <= written.keys():
        return None
    return Addresses(**{name: written[name] for name in names})


def why_down(home: Path) -> str:
    """Why nothing answers in a home that has had an installation; empty where one is up, or never was."""
    match _held(home):
        case None:
            return ""
        case False:
            return (
                f"Nothing is up in this home ({home}); start it with: watchbill up; or say where another Temporal "
                "is in WATCHBILL_TEMPORAL_ADDRESS"
            )
    return "" if read(home) else _just_moving(home)


def refuse_second(home: Path) -> None:
    """Raises AlreadyUp when the installation in this home is up, or just starting or ending."""
    if _held(home):
        raise AlreadyUp(_already_up(home))


class Claim:
    """The right to run the installation in a home; held by at most one process, and ends with it."""

    def __init__(self, home: Path) -> None:
        """Raises AlreadyUp when another process holds it. Makes the home, for its owner alone."""
        home.mkdir(parents=True, exist_ok=True)
        home.chmod(0o700)
        self._file = home / "up.json"
        self._descriptor = os.open(home / "up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not self._taken():
            os.close(self._descriptor)
            raise AlreadyUp(_already_up(home))
        self._file.unlink(missing_ok=True)

    def _taken(self) -> bool:
        # Whoever asks holds the lock for a moment to see whether it is free, so one refusal proves nothing.
        for _ in range(10):
            if _lock(self._descriptor, fcntl.LOCK_EX):
                return True
            time.sleep(0.02)
        return False

    def write(self, addresses: Addresses) -> None:
        """Publish the addresses: whole or not at all."""
        partial = self._file.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(addresses), file)
            file.write("\n")
        partial.replace(self._file)

    def withdraw(self) -> None:
        """Take the addresses back; the claim itself is still held."""
        self._file.unlink(missing_ok=True)

    def release(self) -> None:
        self.withdraw()
        with suppress(OSError):
            os.close(self._descriptor)


def _held(home: Path) -> bool | None:
    """Whether somebody runs the installation in this home; None when nobody ever did."""
    try:
        descriptor = os.open(home / "up.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return not _lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _already_up(home: Path) -> str:
    addresses = read(home)
    if addresses is None:
        return _just_moving(home)
    github = f", with a stand-in GitHub at {addresses.github}" if addresses.github else ""
    return (
        f"Watchbill is already up in {home}: Temporal at {addresses.temporal}, its UI at {addresses.ui}{github}. "
        f"End it with: kill {addresses.pid}"
    )


def _just_moving(home: Path) -> str:
    return f"A watchbill up is just starting or ending in {home}; try again in a moment"
