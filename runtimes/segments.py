"""A run's output on disk: unbounded in, bounded kept, and the tail survives any death.

The newest bytes are in `output.0`; when it is full it becomes `output.1`, in place of the one before.
So between half of the limit and all of it is kept, and a reader needs nobody's memory.
"""

from __future__ import annotations

import os

from runtimes.files import read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO

_ATTEMPTS = 8


class Segments:
    """The writing side. `limit` is in bytes, both segments together."""

    def __init__(self, folder: str, limit: int) -> None:
        self._newer, self._older = _paths(folder)
        self._half = max(1, limit // 2)
        self._file = -1
        self._size = 0
        self.total = 0
        self._gone = 0
        self._kept_older = 0

    @property
    def truncated(self) -> bool:
        """Whether some of the `total` bytes are no longer (or never came) on the disk."""
        return self._gone > 0

    def write(self, data: bytes) -> None:
        """Keep these bytes, as the newest. On a full disk they are counted and dropped."""
        self.total += len(data)
        try:
            while data:
                if self._file < 0 or self._size >= self._half:
                    self._turn()
                written = os.write(self._file, data[: self._half - self._size])
                self._size += written
                data = data[written:]
        except OSError:
            self._gone += len(data)

    def _turn(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            os.replace(self._newer, self._older)
            self._gone += self._kept_older
            self._kept_older, self._size = self._size, 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._file = os.open(self._newer, flags, 0o600)


def read_tail(folder: str, limit: int) -> bytes:
    """The last bytes of a run's output, at most `limit`, oldest first, also while it is written."""
    newer, older = _paths(folder)
    data = b""
    for _ in range(_ATTEMPTS):
        try:
            with open(newer, "rb", buffering=0) as file:
                data = (read_bytes(older) or b"") + file.read()
                # While it is open nothing else gets its inode: another there means a turn in between.
                if os.stat(newer).st_ino == os.fstat(file.fileno()).st_ino:
                    break
        except FileNotFoundError:
            # There is no output yet, or it is just being turned and `output.1` is the newest.
            data = read_bytes(older) or b""
            break
    return data[-limit:] if limit > 0 else b""


class Follower:
    """Reads a run's output on from where it stopped."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._newer, self._older = _paths(folder)
        # Kept open: nothing else gets its inode, by which it is found again when it has become the older one.
        self._file: FileIO | None = None

    def read(self, limit: int) -> tuple[bytes, bool]:
        """The bytes that are new, and whether they go on from the last ones.

        They do not at first, and where more than `limit` bytes came since, of which the last are answered.
        """
        goes_on = self._file is not None
        data = self._read_on(limit) if self._file else None
        return (data, goes_on) if data is not None else (self._begin(limit), False)

    def _read_on(self, limit: int) -> bytes | None:
        """What came since, None where that is too much or partly gone."""
        assert self._file is not None
        try:
            newest = open(self._newer, "rb", buffering=0)  # noqa: SIM115 - it may be kept
        except FileNotFoundError:
            # Just being turned; what is new in it will be there at the next look.
            return b""
        if _inode(newest) == _inode(self._file):
            newest.close()
            data = self._file.read(limit + 1)
        else:
            if _inode_at(self._older) != _inode(self._file):
                newest.close()
                return None
            data = self._file.read(limit + 1) + newest.read(limit + 1)
            self._file.close()
            self._file = newest
        return data if len(data) <= limit else None

    def _begin(self, limit: int) -> bytes:
        if self._file is not None:
            self._file.close()
            self._file = None
        try:
            self._file = open(self._newer, "rb", buffering=0)  # noqa: SIM115 - it is kept
        except FileNotFoundError:
            return b""
        older = read_bytes(self._older) or b""
        return (older + self._file.read())[-limit:]


def _inode(file: FileIO) -> int:
    return os.fstat(file.fileno()).st_ino


def _inode_at(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return 0


def _paths(folder: str) -> tuple[str, str]:
    return os.path.join(folder, "output.0"), os.path.join(folder, "output.1")
