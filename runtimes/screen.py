"""What can be seen of a run, while it is under way and afterwards: text as a person reads it, bounded.

A program on a terminal is seen as it drew there; an agent with a stream by what it says and does; anything
else by the last of its output.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from runtimes.files import read_object
from runtimes.scenes import Noted, text_of
from runtimes.segments import Follower

if TYPE_CHECKING:
    from runtimes.folder import RunFolder
    from runtimes.port import Runtime
    from runtimes.terminal import Terminal

LIMIT = 16 << 10
"""Bytes of a screen in UTF-8."""

BESIDE = 1 << 12
"""Bytes of what a CLI writes beside its stream that are shown where the stream has nothing to tell, or no end."""

_DRAWN = 32 << 10
"""Bytes that are drawn at a look at most, more than three full screens: emulating a terminal is slow."""

_RESULT = "result.json"
_TOLD = 256 << 10
_SCENES = 200
_MORE = "…\n"


class Screen:
    """One run's screen. A look costs next to nothing as long as the run has written nothing.

    `redact` takes out of a text what may not be shown, before it is cut.
    """

    def __init__(self, runtime: Runtime, folder: RunFolder, redact: Callable[[str], str]) -> None:
        self._runtime, self._folder, self._redact = runtime, folder, redact
        self._seen: frozenset[tuple[str, int, int]] = frozenset()
        self._follower = Follower(str(folder.path))
        self._terminal: Terminal | None = None

    def look(self) -> str | None:
        """What there is to be seen, at most `LIMIT` bytes; None where nothing was written since the last look."""
        written = self._written()
        if written == self._seen:
            return None
        self._seen = written
        return cut(self._redact(self._text()))

    def _written(self) -> frozenset[tuple[str, int, int]]:
        """How far the files of output are, and whether there is an end."""
        found = set()
        try:
            with os.scandir(self._folder.path) as entries:
                for entry in entries:
                    if entry.name.startswith(("output.", "stream.", _RESULT)):
                        stat = entry.stat(follow_symlinks=False)
                        found.add((entry.name, stat.st_size, stat.st_mtime_ns))
        except FileNotFoundError:
            # There is no folder yet, or a part was removed meanwhile, and the next look sees what took its place.
            pass
        return frozenset(found)

    def _text(self) -> str:
        spec = read_object(str(self._folder.path / "spec.json")) or {}
        if spec.get("pty"):
            return self._drawn()
        if spec.get("stream"):
            return self._told()
        return self._folder.text(2 * LIMIT)

    def _drawn(self) -> str:
        # The emulator is loaded by whoever has a run on a terminal only.
        from runtimes.terminal import Terminal

        data, goes_on = self._follower.read(_DRAWN)
        if self._terminal is None or not goes_on:
            self._terminal = Terminal()
        self._terminal.feed(data)
        return self._terminal.text()

    def _told(self) -> str:
        scenes = self._runtime.scenes(self._folder.stream().newest(_TOLD))
        text = text_of(scenes[-_SCENES:])
        # CLIs write all kinds of things there; it matters where the stream has nothing to tell, or no end.
        silent = not scenes or (self._is_over() and not isinstance(scenes[-1], Noted))
        beside = self._folder.text(BESIDE).strip() if silent else ""
        return f"{text}\n\nbeside it, on standard error:\n{beside}".lstrip() if beside else text

    def _is_over(self) -> bool:
        return (self._folder.path / _RESULT).exists()


def cut(text: str) -> str:
    """The last of a text, in whole lines if it has any, of at most `LIMIT` bytes."""
    data = text.encode(errors="replace")
    if len(data) <= LIMIT:
        return data.decode()
    kept = data[len(_MORE.encode()) - LIMIT :].decode(errors="ignore")
    return _MORE + (kept.partition("\n")[2] or kept)
