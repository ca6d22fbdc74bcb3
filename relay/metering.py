"""Reads what a call used from its answer as it goes by, without holding it up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import structlog

from relay.shapes.shape import Shape, Wish
from relay.sse import Splitter, data_of
from relay.usage import Usage, plain_id

log = structlog.get_logger("relay")

LONGEST = 32 << 20
"""Bytes of an answer that is no stream, or of one event of one, that are kept to be read."""

_NEEDLE = b'"usage'
"""What every event has in it that tells of usage, in any API."""


class Meter:
    """Reads one answer. `streamed` says whether it comes in events.

    What cannot be read tells nothing: the call then costs what was set aside for it.
    """

    def __init__(self, shape: Shape, wish: Wish, *, streamed: bool) -> None:
        self._shape = shape
        self._watch = shape.watch() if streamed else None
        self._strips = streamed and wish.strips_usage
        self._splitter = Splitter(LONGEST, apart=self._strips)
        self._whole = bytearray()
        self._lost = False
        self._last = b""
        self.named = ""
        """What the answer calls itself; empty where that was not told beside its usage."""

    def passing(self, piece: bytes) -> bytes:
        """What of a piece is the caller's: all of it, unless it tells what only we asked for."""
        if not self._strips or self._lost:
            return piece
        try:
            # Read before it is written: whether an event is the caller's shows at its end.
            return b"".join(event for event in self._splitter.feed(piece) if not self._is_ours(event))
        except ValueError as error:
            self._lose(error)
            return self._splitter.rest()

    def look(self, piece: bytes) -> None:
        """Look through a piece that was passed on."""
        if self._lost or self._strips:
            return
        try:
            if self._watch is None:
                self._keep(piece)
            else:
                for events in self._splitter.feed(piece):
                    # Most of a stream is text, and is looked at no closer than this.
                    if _NEEDLE in events:
                        self._see(events)
        except ValueError as error:
            self._lose(error)

    def rest(self) -> bytes:
        """What was held back of a stream that ended, and is the caller's."""
        if not self._strips:
            return b""
        if not self._lost:
            self._close()
        return self._last if self._lost else self._last + self._splitter.rest()

    def used(self, *, whole: bool) -> Usage | None:
        """What the call used; None where that was not told. `whole`: the answer came to its end."""
        if self._lost:
            return None
        try:
            if self._watch is not None:
                self._close()
                return self._watch.used(whole=whole)
            return self._shape.used(self._read(self._whole)) if whole and self._whole else None
        except ValueError as error:
            self._lose(error)
            return None

    def _close(self) -> None:
        """Take in the event of which only the end of the stream shows that it is whole."""
        if not self._strips or not (event := self._splitter.close()):
            return
        try:
            self._last = b"" if self._is_ours(event) else event
        except ValueError as error:
            self._last = event + self._splitter.rest()
            self._lose(error)

    def _lose(self, error: ValueError) -> None:
        self._lost = True
        log.warning("what a call used cannot be told", endpoint=self._shape.endpoint, why=str(error)[:300])

    def _keep(self, piece: bytes) -> None:
        self._whole += piece
        if len(self._whole) > LONGEST:
            raise ValueError("the answer is too long to be read")

    def _see(self, events: bytes) -> list[object]:
        assert self._watch is not None
        seen = []
        for part in _telling(events):
            for data in data_of(part):
                if self._shape.tells.search(data):
                    seen.append(self._read(data))
                    self._watch.see(seen[-1])
        return seen

    def _read(self, raw: bytes | bytearray) -> Any:
        told = orjson.loads(raw)
        if isinstance(told, dict):
            self.named = plain_id(told.get("id")) or plain_id(told.get("responseId")) or self.named
        return told

    def _is_ours(self, event: bytes) -> bool:
        """Whether an event tells usage and nothing else."""
        if not self._shape.tells.search(event):
            return False
        return any(isinstance(each, dict) and not each.get("choices") for each in self._see(event))


def _telling(events: bytes) -> Iterator[bytes]:
    """Those events that may tell of usage; of line breaks that are not the usual ones, all that stand together."""
    found = events.find(_NEEDLE)
    while found >= 0:
        begin, end = events.rfind(b"\n\n", 0, found), events.find(b"\n\n", found)
        yield events[max(0, begin) : end if end >= 0 else len(events)]
        found = events.find(_NEEDLE, end) if end >= 0 else -1
