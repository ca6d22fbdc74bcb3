"""Directories that come and go as a whole.

What is built, and what is deleted, stands in a locked directory beside its place, and is moved in or out in
one step. So nobody ever meets half of it, and what a killed process left is told from what a living one is
doing by its lock.
"""

from __future__ import annotations

import glob
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from forge.lock import abandoned, held


@contextmanager
def beside(directory: Path) -> Iterator[tuple[Path, int]]:
    """A locked directory beside this one, gone afterwards, as is what dead processes left there."""
    parent = directory.parent
    parent.mkdir(parents=True, exist_ok=True)
    aside = parent / f".{directory.name}.{uuid.uuid4().hex}"
    with ExitStack() as stack:
        # Under the parent's lock, so that nobody takes a directory for abandoned before it is locked.
        with held(parent):
            for leftover in parent.glob(f".{glob.escape(directory.name)}.*"):
                if abandoned(leftover):
                    with suppress(OSError):
                        delete(leftover)
            aside.mkdir(mode=0o700)
            lock = stack.enter_context(held(aside))
        try:
            yield aside, lock
        finally:
            with suppress(OSError):
                delete(aside)


def delete(directory: Path) -> None:
    """Delete a directory, also where its folders are closed to us; OSError when something stays."""
    try:
        shutil.rmtree(directory)
    except PermissionError:
        for folder, names, _ in os.walk(directory):
            for name in names:
                path = Path(folder, name)
                if not path.is_symlink():
                    path.chmod(0o700)
        shutil.rmtree(directory)
