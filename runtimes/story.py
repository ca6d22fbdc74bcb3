"""A run's story as its files tell it: lines of JSON that an agent could have written, read without trusting one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from runtimes.files import read_left

MOST_EVENTS = 5_000
"""Lines of a file that are read, the first; an agent at honest work makes some hundreds."""

_FILE_BYTES = 4 << 20
_LINE_BYTES = 16 << 10
_TEXT = 2_000
_NAME = 100
_LARGEST = 1 << 53


def read_events(path: str, after: int = 0) -> list[dict[str, Any]]:
    """The events behind the first `after` lines of a file; a line still being written is left for the next time.

    Each is flat, with texts of at most 2000 characters, finite numbers and truth values. It has its `seq`, the
    number of its line from 1, what `event` it is, and when: `at`, in ISO 8601. What is no event is left out.
    """
    lines = read_left(path, _FILE_BYTES).split(b"\n")[:-1][:MOST_EVENTS]
    told = ((seq, _event_in(line)) for seq, line in enumerate(lines[after:], after + 1))
    return [{**event, "seq": seq} for seq, event in told if event is not None]


def _event_in(line: bytes) -> dict[str, Any] | None:
    if len(line) > _LINE_BYTES:
        return None
    try:
        told = json.loads(line)
        at = datetime.fromtimestamp(told["at"], UTC).isoformat()
        kind = told["event"]
    except (ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError):
        return None
    if not isinstance(kind, str):
        return None
    said = {key: _cut(value) for key, value in told.items() if len(key) <= _NAME and _is_flat(value)}
    return {**said, "event": kind[:_NAME], "at": at}


def _is_flat(value: Any) -> bool:
    if isinstance(value, int | float):
        # Neither NaN nor an infinity is below anything.
        return abs(value) < _LARGEST
    return value is None or isinstance(value, str)


def _cut(value: Any) -> Any:
    return value[:_TEXT] if isinstance(value, str) else value
