"""What an agent's CLI left in its memory for the next run, read with care: the agent could write all of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

_MOST = 20_000
"""Entries that are looked at: whoever has more remembers nothing beyond them."""


def files_below(folder: Path, depth: int, most: int = _MOST) -> Iterator[str]:
    """The names of the plain files so many folders below this one, which may not be there. No link is followed."""
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
                        yield entry.name
        except OSError:
            # It may have been made so that nobody can read it.
            continue


def is_folder(path: Path) -> bool:
    """Whether this is a folder, and no link to one; not where that cannot be found out."""
    return stat.S_ISDIR(_mode(path))


def is_file(path: Path) -> bool:
    """Whether this is a plain file: no link, and nothing that would keep a reader waiting."""
    return stat.S_ISREG(_mode(path))


def _mode(path: Path) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0
