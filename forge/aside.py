"""Directories that come and go as a whole.

What is built, and what is deleted, stands locked beside its place, and is moved in or out in one step. So
nobody ever meets half of it, and what a killed process left is told from what a living one is doing by its
lock.
"""

from __future__ import annotations

import glob
import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from forge.lock import abandoned, held


@contextmanager
def beside(directory: Path) -> Iterator[tuple[Path, int]]:
    """A new directory beside this one, locked: to be moved into its place once it is whole, and gone otherwise."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with _locked(directory) as (aside, lock):
        try:
            yield aside, lock
        finally:
            with suppress(OSError):
                delete(aside)


def remove(directory: Path) -> str:
    """Delete whatever stands there; answers what could not be deleted and why, or nothing when all is gone."""
    if directory.is_symlink() or not directory.is_dir():
        directory.unlink(missing_ok=True)
        return ""
    with suppress(OSError):
        directory.rmdir()
        return ""
    with ExitStack() as stack:
        try:
            directory.chmod(_OPEN)
            # Into a directory of ours: who still has this one open could hold its lock, or close it to us.
            aside, _ = stack.enter_context(_locked(directory))
            directory.rename(aside / "old")
        except OSError as error:
            return f"{directory} could not be moved away ({error.strerror}); delete it by hand"
        try:
            delete(aside)
        except OSError as error:
            return f"{aside} could not be deleted ({error.strerror}); delete it by hand"
    return ""


@contextmanager
def _locked(directory: Path) -> Iterator[tuple[Path, int]]:
    """A new directory beside this one, locked; what dead processes left there goes.

    Under the parent's lock, so that nobody takes it for abandoned before it is locked.
    """
    aside = directory.parent / f".{directory.name}.{uuid.uuid4().hex}"
    with ExitStack() as stack:
        with held(directory.parent):
            for leftover in directory.parent.glob(f".{glob.escape(directory.name)}.*"):
                if abandoned(leftover):
                    with suppress(OSError):
                        delete(leftover)
            aside.mkdir(mode=0o700)
            lock = stack.enter_context(held(aside))
        yield aside, lock


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
