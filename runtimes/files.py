"""The small files through which a worker and a supervisor talk: replaced whole, or added to by lines.

JSON goes through the C half of the `json` package: the package itself imports `re`, which would
cost a supervisor's start-up more than everything else that it imports.
"""

from __future__ import annotations

import os
import time
from _json import encode_basestring_ascii, make_encoder, make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_KIND, _PLAIN_FILE = 0o170000, 0o100000


class _Dialect:
    """What the scanner asks of its caller: strict JSON, plain Python values."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def _refuse(value: object) -> object:
    raise TypeError(f"{value!r} has no place in JSON")


_dialect: Any = _Dialect
_scan = make_scanner(_dialect)
_encode = make_encoder(None, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, False)


def read_bytes(path: str) -> bytes | None:
    """What a file holds, or None when it is not there (or, in /proc, no longer, or not for us)."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return None


def read_object(path: str) -> dict[str, Any] | None:
    """The JSON object in a file, or None when there is no file or no object in it.

    Files here are replaced whole, so one without an object is what a power cut left: no file.
    """
    return decode(read_bytes(path) or b"")


def read_left(path: str, limit: int) -> bytes:
    """The first bytes of a file that an agent may have put there: nothing unless it is a plain file, and no link.

    A link would have us read what is not the agent's, and a named pipe would never let us go. Python opens no
    folder as a file, so what it is asked for is looked at first.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        if os.fstat(descriptor).st_mode & _KIND != _PLAIN_FILE:
            return b""
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(limit)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def append_left(path: str, data: bytes, room: int) -> bool:
    """Add to a file that an agent may have replaced, unless it holds `room` bytes already; whether there was room.

    OSError unless it is a plain file, or none yet: what is written into a link or a pipe is kept nowhere.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o600)
    try:
        stat = os.fstat(descriptor)
        if stat.st_mode & _KIND != _PLAIN_FILE:
            raise OSError(f"{path} is no plain file")
        if stat.st_size >= room:
            return False
        # In one write, so that lines of several writers never mix; one that is cut is not kept.
        if os.write(descriptor, data) != len(data):
            raise OSError(f"{path} has no room")
        return True
    finally:
        os.close(descriptor)


def decode(data: bytes) -> dict[str, Any] | None:
    """The JSON object that these bytes are, with blanks behind it at most, or None."""
    try:
        text = data.decode()
        value, end = _scan(text, 0)
    except (ValueError, StopIteration):
        return None
    return value if isinstance(value, dict) and not text[end:].strip(" \t\r\n") else None


def write_object(path: str, value: dict[str, Any]) -> None:
    """Replace a file: whoever reads it sees the old object or the new one, whoever dies in between."""
    draft = f"{path}.{os.getpid()}-{time.monotonic_ns()}"
    try:
        _write(draft, "xb", value)
        os.replace(draft, path)
    except OSError:
        # On a full disk whoever tries again would leave one each time.
        if os.path.lexists(draft):
            os.unlink(draft)
        raise


def append_object(path: str, value: dict[str, Any]) -> None:
    """Add a line in one write, so that lines of several writers never mix."""
    _write(path, "ab", value)


def encode(value: dict[str, Any]) -> bytes:
    """An object as a line of JSON."""
    return "".join((*_encode(value, 0), "\n")).encode()


def _write(path: str, mode: str, value: dict[str, Any]) -> None:
    with open(path, mode, opener=_private) as file:
        file.write(encode(value))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
