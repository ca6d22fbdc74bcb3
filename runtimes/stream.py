"""The reading side of a run's stream: what the agent said, as decoded objects, while it runs or afterwards."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

GAP = "watchbill.gap"
"""The type of the object that stands where something is gone; `bytes` says how much."""

_ATTEMPTS = 8
_DEEPEST = 100


class Stream:
    """The objects of a stream, oldest first; each iteration begins again, with what there is then.

    A line without its end is left out: it is still being written, or its writer died. `skipped` counts the
    whole lines, in the last iteration so far, that were no JSON objects.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.skipped = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.skipped = 0
        end = 0
        with ExitStack() as stack:
            for offset, part in self._open(stack):
                if offset > end:
                    yield {"type": GAP, "bytes": offset - end}
                end = offset
                for line in part:
                    end += len(line)
                    yield from self._decoded(line)

    def newest(self, limit: int) -> Iterator[dict[str, Any]]:
        """The objects of whole lines within the last `limit` bytes; a gap first where there is something before."""
        with ExitStack() as stack:
            parts = [(part, os.fstat(part.fileno()).st_size) for _, part in self._open(stack)]
            skipped = max(0, sum(size for _, size in parts) - limit)
            if skipped:
                yield {"type": GAP, "bytes": skipped}
            for part, size in parts:
                if 0 < skipped <= size:
                    # From the byte before: the line that it ends is not whole here, or ends there.
                    part.seek(skipped - 1)
                    part.readline()
                if skipped <= size:
                    for line in part:
                        yield from self._decoded(line)
                skipped = max(0, skipped - size)

    def _open(self, stack: ExitStack) -> list[tuple[int, BinaryIO]]:
        """The parts by their offsets, all open before one is read: the writer removes old ones meanwhile."""
        for _ in range(_ATTEMPTS):
            try:
                parts = [path for path in self._folder.glob("stream.*") if path.suffix[1:].isdecimal()]
                found = sorted((int(path.suffix[1:]), path) for path in parts)
                return [(offset, stack.enter_context(_open_plain(path))) for offset, path in found]
            except OSError:
                continue
        return []

    def _decoded(self, line: bytes) -> Iterator[dict[str, Any]]:
        if not line.endswith(b"\n"):
            return
        try:
            value = json.loads(line, parse_constant=_refuse)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and not (line.count(b"[") + line.count(b"{") > _DEEPEST and is_deep(value)):
            yield value
        elif line.strip():
            self.skipped += 1


def is_deep(value: Any) -> bool:
    """Whether lists and objects lie more than 100 deep in this: whoever goes through it would run out of stack."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [part for one in level for part in _parts_of(one)]
    return bool(level)


def _parts_of(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _open_plain(path: Path) -> BinaryIO:
    """Never through a link, and never waiting: the folder is within the agent's reach."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def _refuse(name: str) -> NoReturn:
    """NaN and the infinities are no JSON, and no database takes them."""
    raise ValueError(name)
