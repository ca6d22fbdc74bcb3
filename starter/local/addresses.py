"""Where a local installation listens, written down so that other commands find it.

`<home>/up.json` counts only while somebody holds the lock beside it: after a kill -9 the file is
still there, but the lock is free, and the file is stale.
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


class AlreadyUp(WatchbillError):
    """Another process runs the installation in this home."""


def read(home: Path) -> Addresses | None:
    """The addresses of what is up in this home; None when nothing is, or not yet."""
    try:
        written = json.loads((home / "up.json").read_bytes())
        descriptor = os.open(home / "up.lock", os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        if _lock(descriptor, fcntl.LOCK_SH):
            return None
    finally:
        os.close(descriptor)
    names = {field.name for field in fields(Addresses)}
    if not isinstance(written, dict) or not names <= written.keys():
        return None
    return Addresses(**{name: written[name] for name in names})


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
        # `read` holds the lock for a moment to see whether it is free, so one refusal proves nothing.
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


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _already_up(home: Path) -> str:
    addresses = read(home)
    if addresses is None:
        return f"Another watchbill up is just starting or ending in {home}; try again in a moment."
    return (
        f"Watchbill is already up in {home}: Temporal at {addresses.temporal}, its UI at {addresses.ui}. "
        f"End it with: kill {addresses.pid}"
    )
