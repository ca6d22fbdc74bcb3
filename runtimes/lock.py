"""Locks that say who is in charge of a folder, and that vanish with whoever held them.

Linux's open file description locks: held through a descriptor and every inherited copy of it, so a
lock can be handed to a child process with no moment in between when it is free; and, unlike with
flock, one can ask whether it is held without taking it, so asking never makes a taker give up.
Source: fcntl(2), "Open file description locks".
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

_FLOCK = struct.Struct("hhqqi4x")


def take_lock(path: Path) -> int | None:
    """A close-on-exec descriptor that holds the lock, or None when somebody else does."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _request())
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def lock_held(path: Path) -> bool:
    """Whether anybody holds the lock; a file that is not there is held by nobody."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _request())
    finally:
        os.close(descriptor)
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)


def _request() -> bytes:
    return _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
