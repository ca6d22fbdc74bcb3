"""What an agent's CLI left in its memory for the next run, read with care: the agent could write all of it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

_MOST = 20_000
"""Entries that are looked at: whoever has more remembers nothing beyond them."""

_BIGGEST = 256 << 20
"""Bytes of a session's file: one that has grown beyond them is not gone on with."""

_LONGEST = 8 << 20
"""Bytes of a line in it: to decode one takes many times as much memory."""


def files_below(folder: Path, depth: int, most: int = _MOST) -> Iterator[Path]:
    """The plain files so many folders below this one, which may not be there. No link is followed."""
    folders, left = [(str(folder), depth)] if is_folder(folder) else [], most
    while folders:
        path, deeper = folders.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        return
                    if deeper and entry.is_dir(follow_symlinks=False):
                        folders.append((entry.path, deeper - 1))
                    elif not deeper and entry.is_file(follow_symlinks=False):
                        yield Path(entry.path)
        except OSError:
            # It may have been made so that nobody can read it.
            continue


def is_whole(file: Path, is_prompt: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Whether a session's file is whole lines of JSON objects, among them the prompt that the session began with.

    A CLI that was killed, or a disk that filled up, leaves others. They cannot be gone on with, or only by an agent
    that knows of no task; what is not understood may be such a one as well.
    """
    prompted = False
    try:
        with _open_plain(file) as lines:
            if os.fstat(lines.fileno()).st_size > _BIGGEST:
                return False
            for line in iter(lambda: lines.readline(_LONGEST), b""):
                said = json.loads(line) if line.endswith(b"\n") else None
                if not isinstance(said, dict):
                    return False
                prompted = prompted or is_prompt(said)
    except (OSError, ValueError, RecursionError):
        return False
    return prompted


def is_folder(path: Path) -> bool:
    """Whether this is a folder, and no link to one; not where that cannot be found out."""
    return stat.S_ISDIR(_mode(path))


def is_file(path: Path) -> bool:
    """Whether this is a plain file: no link, and nothing that would keep a reader waiting."""
    return stat.S_ISREG(_mode(path))


def _open_plain(file: Path) -> BinaryIO:
    """Never through a link, and never waiting; OSError for what is no plain file."""
    found = os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(found.fileno()).st_mode):
        found.close()
        raise OSError(f"{file} is no plain file")
    return found


def _mode(path: Path) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0
