"""Server-sent events in pieces that end anywhere: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

from __future__ import annotations

import re
from collections.abc import Iterator

_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_LINE = re.compile(rb"\r\n|\n|\r")
_LAST = (b"\n\n", b"\n\r\n", b"\r\r", b"\n\r")
_LONGEST_END = 4


class TooLong(ValueError):
    """An event is longer than any that we would read."""


class Splitter:
    """Cuts a stream where events end. `longest` is the bytes of an event beyond which TooLong is raised.

    Events that are whole at the same time stay together, unless each is wanted `apart`: then each comes with all of
    the line breaks behind it, so one that ends in a CR waits for the LF that may follow, or for `close`.
    """

    def __init__(self, longest: int, *, apart: bool = False) -> None:
        self._longest, self._apart = longest, apart
        self._rest = bytearray()
        self._seen = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The events, with the line breaks behind them, that are whole now."""
        if not self._rest and not self._apart and piece.endswith(b"\n\n"):
            # The common case by far: a piece that ends where an event does is not copied.
            yield piece
            return
        self._rest += piece
        begun = 0
        for end in self._ends(max(0, self._seen - _LONGEST_END)):
            yield bytes(self._rest[begun:end])
            begun = end
        if begun:
            del self._rest[:begun]
        self._seen = len(self._rest)
        if self._seen > self._longest:
            raise TooLong("an event of the stream is too long to be read")

    def _ends(self, start: int) -> Iterator[int]:
        if self._apart:
            ends = (end.end() for end in _END.finditer(self._rest, start))
            yield from (end for end in ends if end < len(self._rest) or not self._rest.endswith(b"\r"))
            return
        # Every form that _END knows has one of these at its end; the last one is found much faster.
        places = ((self._rest.rfind(end, start), len(end)) for end in _LAST)
        last = max((place + length for place, length in places if place >= 0), default=0)
        if last:
            yield last

    def close(self) -> bytes:
        """The event that is whole now that nothing more comes; empty where there is none."""
        event = bytes(self._rest) if self._rest.endswith((b"\r\r", b"\n\r")) else b""
        del self._rest[: len(event)]
        return event

    def rest(self) -> bytes:
        """What stands at the end of the stream without the line breaks behind it."""
        return bytes(self._rest)


def data_of(event: bytes) -> list[bytes]:
    """The data of one event, or of several that stand together."""
    found: list[bytes] = []
    lines: list[bytes] = []
    for line in (*_LINE.split(event), b""):
        if line.startswith(b"data:"):
            lines.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line and lines:
            found.append(b"\n".join(lines))
            lines = []
    return found
