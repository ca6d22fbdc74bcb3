"""A run's stream on disk: whole lines, unbounded in, bounded kept, and the beginning is kept for good.

A part is a file named `stream.<offset>`, where its first byte stands among all that was to be kept. The
part that begins at 0 is the head and stays; of those behind it the newest two do. A reader needs nobody's
memory: a part that does not begin where the one before it ends tells what is gone in between.
"""

from __future__ import annotations

import os

from runtimes.files import encode

HEAD = 1 << 16
"""How much of the beginning is kept for good, in bytes: an agent tells its session's id there."""

CUT = "watchbill.cut"
"""The type of the object that stands for a line which was too long."""

_START = 1 << 12
_SHORTEST_LIMIT = 1 << 16


class Lines:
    """The writing side. `limit` is in bytes, all later parts together; each has room for the longest line.

    A line longer than `line_limit` bytes (no fewer than 64 KiB) is not kept; an object of type
    `watchbill.cut` stands in its place, with its length in `bytes` and its first 4 KiB as `start`.
    """

    def __init__(self, folder: str, limit: int, line_limit: int) -> None:
        self._folder = folder
        self._line_limit = max(line_limit, _SHORTEST_LIMIT)
        self._part_limit = max(limit // 2, self._line_limit)
        self._line = bytearray()
        self._line_size = 0
        self._parts: list[str] = []
        self._file = -1
        self._room = 0
        self._offset = 0
        self.total = 0
        self.truncated = False

    def write(self, data: bytes) -> None:
        """Keep the lines that these bytes, cut anywhere, complete; 64 KiB at a time at most."""
        self.total += len(data)
        first, newline, rest = data.partition(b"\n")
        self._lengthen(first)
        if newline:
            self._end_line()
            # What lies between two line ends here is shorter than any limit: all of it is moved at once.
            end = rest.rfind(b"\n") + 1
            self._keep(rest[:end])
            self._lengthen(rest[end:])

    def close(self) -> None:
        """The stream has ended, and with it its last line."""
        if self._line_size:
            self._end_line()

    def _lengthen(self, data: bytes) -> None:
        self._line_size += len(data)
        if self._line_size <= self._line_limit:
            self._line += data
        else:
            self._line += data[:_START]
            del self._line[_START:]

    def _end_line(self) -> None:
        line = bytes(self._line) + b"\n"
        if self._line_size > self._line_limit:
            start = self._line.decode(errors="replace")
            line = encode({"type": CUT, "bytes": self._line_size, "start": start})
            self.truncated = True
        self._line.clear()
        self._line_size = 0
        self._keep(line)

    def _keep(self, lines: bytes) -> None:
        """Put whole lines into the parts, never one into two. On a full disk they are counted and dropped."""
        while lines:
            fits = lines.rfind(b"\n", 0, self._room) + 1
            if not fits:
                self._turn()
                # The first line of a part stands there however long it is.
                fits = lines.rfind(b"\n", 0, self._room) + 1 or lines.find(b"\n") + 1
            self._append(lines[:fits])
            lines = lines[fits:]

    def _turn(self) -> None:
        self._room = self._part_limit if self._offset else HEAD
        try:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1
            if len(self._parts) > 1:
                self.truncated = True
                os.unlink(self._parts.pop(0))
            path = os.path.join(self._folder, f"stream.{self._offset}")
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            if self._offset:
                self._parts.append(path)
        except OSError:
            self.truncated = True

    def _append(self, lines: bytes) -> None:
        self._offset += len(lines)
        self._room = max(0, self._room - len(lines))
        try:
            while lines:
                lines = lines[os.write(self._file, lines) :]
        except OSError:
            # The next lines begin a part of their own, whose name tells what is missing before it.
            self._room = 0
            self.truncated = True
