"""Directories that come and go as a whole.

What is built is a locked directory beside its place, and what is deleted stands in one; it is moved in or out
in one step. So nobody ever meets half of it, and what a killed process left is told from what a living one is
doing by its lock.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from forge.lock import abandoned, held


@contextmanager
def beside(directory: Path) -> Iterator[tuple[Path, int]]:
    """A locked directory beside this one: moved into its place by then, or gone afterwards."""
    parent = directory.parent
    parent.mkdir(parents=True, exist_ok=True)
    aside = parent / f".{directory.name}.{uuid.uuid4().hex}"
    with ExitStack() as stack:
        # Under the parent's lock, so that nobody takes a directory for abandoned before it is locked.
        with held(parent):
            _sweep(parent)
            aside.mkdir(mode=_OPEN)
            lock = stack.enter_context(held(aside))
        try:
            yield aside, lock
        finally:
            with suppress(OSError):
                delete(aside)


def remove(directory: Path) -> str:
    """Delete whatever stands there; answers what could not be deleted and why, or nothing when all is gone.

    A repeat after a crash finds what the crash left beside it.
    """
    if directory.is_symlink() or not directory.is_dir():
        directory.unlink(missing_ok=True)
        if directory.parent.is_dir():
            with held(directory.parent):
                _sweep(directory.parent)
        return ""
    with suppress(OSError):
        directory.rmdir()
        return ""
    with beside(directory) as (aside, _):
        try:
            directory.chmod(_OPEN)
            # In a directory of ours: who has this one open still could hold its lock, or close it to us.
            directory.rename(aside / "old")
        except OSError as error:
            return f"{directory} could not be moved away ({error.strerror}); delete it by hand"
        try:
            delete(aside / "old")
        except OSError as error:
            return f"{aside} could not be deleted ({error.strerror}); delete it by hand"
    return ""


def _sweep(parent: Path) -> None:
    """Delete what dead processes left in this directory, whose lock is held."""
    for leftover in parent.glob(f".*.{'[0-9a-f]' * 32}"):
        if abandoned(leftover):
            with suppress(OSError):
                delete(leftover)


def delete(directory: Path) -> None:
    """Delete a directory, also where its folders are closed to us; OSError when something stays.

    What lies deep in it is moved to its top first: folders can be within each other deeper than a path can name
    and than Python can call itself. No link is followed, whoever else is at work in it.
    """
    with _opened(str(directory)) as top:
        pending = _emptied(top, top)
        while pending:
            name = pending.pop()
            with _opened(name, top) as folder:
                pending += _emptied(folder, top)
            os.rmdir(name, dir_fd=top)
    directory.rmdir()


def _emptied(folder: int, top: int) -> list[str]:
    """Delete a folder's files and move its folders to the top; answers their names there."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    names = []
    for name, is_folder in found:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
        elif folder == top:
            names.append(name)
        else:
            names.append(uuid.uuid4().hex)
            # A folder that may not be written in may not be moved either.
            with _opened(name, folder):
                os.rename(name, names[-1], src_dir_fd=folder, dst_dir_fd=top)
    return names


@contextmanager
def _opened(name: str, within: int | None = None) -> Iterator[int]:
    """The folder itself and no link to it, opened up for its owner."""
    flags = os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        descriptor = os.open(name, os.O_RDONLY | flags, dir_fd=within)
    except PermissionError:
        place = os.open(name, os.O_PATH | flags, dir_fd=within)
        try:
            os.chmod(f"/proc/self/fd/{place}", _OPEN)  # noqa: PTH101 - a descriptor's, and no path's
        finally:
            os.close(place)
        descriptor = os.open(name, os.O_RDONLY | flags, dir_fd=within)
    try:
        if os.fstat(descriptor).st_mode & _OPEN != _OPEN:
            os.fchmod(descriptor, _OPEN)
        yield descriptor
    finally:
        os.close(descriptor)


_OPEN = 0o700
