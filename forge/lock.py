"""A lock that our git processes hold with us.

The lock is an flock on an open file, and every git process that works under it inherits that file. So
when a worker is killed while its git works on, the lock stays taken until that git has ended too, and
whoever gets it exclusively knows that nothing of ours is at work any more.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


@contextmanager
def held(path: Path, *, exclusive: bool = True) -> Iterator[int]:
    """Wait for the lock on a file or directory, and hold it; yields the descriptor to hand on to git."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield descriptor
    finally:
        # Closed, never unlocked: unlocking would take the lock from a child that still works.
        os.close(descriptor)


@contextmanager
def if_free(path: Path) -> Iterator[int | None]:
    """Hold the lock on what is there, alone, unless anybody holds it; yields the descriptor, or None."""
    with ExitStack() as stack:
        lock = None
        # Nothing is made here: who held it may have deleted it a moment ago.
        with suppress(FileNotFoundError, BlockingIOError):
            descriptor = os.open(path, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock = descriptor
        yield lock


def abandoned(path: Path) -> bool:
    """Whether something is there on which nobody holds the lock."""
    with if_free(path) as lock:
        return lock is not None


def _open(path: Path) -> int:
    if path.is_dir():
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
