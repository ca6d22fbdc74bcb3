"""The output of one process, kept within a bound."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

KEPT = 4 * 1024 * 1024
_CHUNK = 64 * 1024


class Log:
    """The newest output in `path`, what came before in `<path>.1`; together at most `kept` bytes.

    `heard` is called with each piece of output as it comes.
    """

    def __init__(self, path: Path, heard: Callable[[bytes], None], kept: int = KEPT) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._older = path.with_name(path.name + ".1")
        self._half = kept // 2
        self._file = path.open("ab")
        self._heard = heard
        self._reading: int | None = None

    def open_pipe(self) -> int:
        """The write end of a new pipe into this log, for the caller to close; the pipe before it is finished.

        A pipe of our own, since asyncio's would keep a dead process waiting for whoever inherited its output.
        """
        self.finish_pipe()
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        asyncio.get_running_loop().add_reader(self._reading, self._read)
        return writing

    def finish_pipe(self) -> None:
        """Take what is still in the pipe, and close it."""
        while self._reading is not None and self._read():
            pass
        self._close_pipe()

    def _read(self) -> bool:
        assert self._reading is not None
        try:
            output = os.read(self._reading, _CHUNK)
        except BlockingIOError:
            return False
        if output:
            self.write(output)
            self._heard(output)
        else:
            self._close_pipe()
        return bool(output)

    def _close_pipe(self) -> None:
        if self._reading is not None:
            asyncio.get_running_loop().remove_reader(self._reading)
            os.close(self._reading)
            self._reading = None

    def write(self, output: bytes) -> None:
        for start in range(0, len(output), self._half):
            piece = output[start : start + self._half]
            if self._file.tell() + len(piece) > self._half:
                self._file.close()
                self.path.replace(self._older)
                self._file = self.path.open("ab")
            self._file.write(piece)
        self._file.flush()

    def last_line(self) -> str:
        """The last line that says anything, at most 500 characters; empty when nothing was said."""
        with self.path.open("rb") as file:
            file.seek(max(0, self.path.stat().st_size - 4096))
            lines = file.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip()[-500:] if lines else ""

    def close(self) -> None:
        self.finish_pipe()
        self._file.close()
