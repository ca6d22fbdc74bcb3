"""The terminal of a run that has one, as a person would see it: what it drew, put through an emulator."""

from __future__ import annotations

import re
from contextlib import suppress

import pyte

from domain.leaks import covered
from runtimes.port import COLUMNS, ROWS

_PIECES = re.compile(rb"(?=\x1b)")


class Terminal:
    """Of the bytes that it is fed nothing is kept but the screen: cells without colours."""

    def __init__(self) -> None:
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)

    def feed(self, data: bytes) -> None:
        """Draw these bytes, cut anywhere."""
        for piece in _PIECES.split(data):
            # What the emulator does not know makes it stumble; it goes on at the next sequence, as terminals do.
            with suppress(Exception):
                self._stream.feed(piece)

    def text(self) -> str:
        """The screen without what is empty at its right and below, and with stars over secrets.

        What fills a row goes on in the next: a secret that was broken there is still one.
        """
        rows = [[self._screen.buffer[y][x].data for x in range(COLUMNS)] for y in range(ROWS)]
        lines = ["".join(row) for row in rows]
        shown = covered("".join(lines))
        found, at = [], 0
        for line in lines:
            found.append(shown[at : at + len(line)].rstrip())
            at += len(line)
        return "\n".join(found).rstrip("\n")
