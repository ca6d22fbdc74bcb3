"""Directories that agents and checks work in: built beside their place, moved in whole, moved out whole.

A workspace is a clone of its own. It shares no object file with ours, knows no remote, and holds only
what its commits reach, so an agent may break it and learns nothing of other tasks.
"""

from __future__ import annotations

import glob
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from forge.git import refs, run
from forge.lock import abandoned, held

_AGENT_CONFIG = """\
[user]
\tname = Watchbill agent
\temail = agent@watchbill.invalid
[gc]
\tauto = 0
"""


def build(
    directory: Path, mirror: Path, lock: int, *, head: str, branches: Mapping[str, str], start: str
) -> None:
    """Put a fresh clone at `directory`, with commit `start` checked out; what stands there already stays.

    `head` is what HEAD says: `ref: refs/heads/…` or a commit. `branches` are the refs it gets. Tags
    that `start` contains come along, for tools that derive a version from them.
    """
    if _occupied(directory):
        return
    with _beside(directory) as (aside, aside_lock):
        clone = aside / "new"
        _clone(clone, mirror, (lock, aside_lock), head=head, branches=branches, start=start)
        try:
            clone.rename(directory)
        except OSError:
            # Another attempt was first, and its workspace may be in use by now.
            if not _occupied(directory):
                raise


def remove(directory: Path) -> str:
    """Delete a directory; answers what could not be deleted and why, or nothing when all is gone."""
    if directory.is_symlink() or not directory.is_dir():
        directory.unlink(missing_ok=True)
        return ""
    with _beside(directory) as (aside, _):
        try:
            directory.chmod(0o700)
            directory.rename(aside / "old")
        except OSError as error:
            return f"{directory} could not be moved away ({error.strerror}); delete it by hand"
        try:
            _delete(aside / "old")
        except OSError as error:
            return f"{aside} could not be deleted ({error.strerror}); delete it by hand"
    return ""


def _occupied(directory: Path) -> bool:
    return os.path.lexists(directory) and (not directory.is_dir() or any(directory.iterdir()))


def _clone(
    clone: Path, mirror: Path, held: tuple[int, ...], *, head: str, branches: Mapping[str, str], start: str
) -> None:
    """Four git processes: this is what every run waits for, and a fetch alone takes six."""
    clone.mkdir()
    run(clone, "init", "--quiet", "--template=", env={"GIT_DIR": ".git"}, held=held)
    git_dir = clone / ".git"
    own = {**refs(mirror, held[0], f"--merged={start}", "refs/tags"), **branches}
    wanted = "".join(f"{sha}\n" for sha in {start, *own.values()}).encode()
    pack = ("pack-objects", "--quiet", "--revs", "--delta-base-offset", str(git_dir / "objects/pack/pack"))
    run(mirror, *pack, input=wanted, held=held, config=_NO_FSYNC)
    listed = "".join(f"{own[name]} {name}\n" for name in sorted(own))
    (git_dir / "packed-refs").write_text(listed, "utf-8", "surrogateescape")
    (git_dir / "HEAD").write_text(f"{head}\n")
    with (git_dir / "config").open("a") as config:
        config.write(_AGENT_CONFIG)
    run(git_dir, "reset", "--quiet", "--hard", env={"GIT_WORK_TREE": str(clone)}, held=held, config=_NO_FSYNC)


_NO_FSYNC = {"core.fsync": "none"}
"""A clone that a power cut damaged is cut again."""


@contextmanager
def _beside(directory: Path) -> Iterator[tuple[Path, int]]:
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
                        _delete(leftover)
            aside.mkdir(mode=0o700)
            lock = stack.enter_context(held(aside))
        try:
            yield aside, lock
        finally:
            with suppress(OSError):
                _delete(aside)


def _delete(directory: Path) -> None:
    try:
        shutil.rmtree(directory)
    except PermissionError:
        for folder, names, _ in os.walk(directory):
            for name in names:
                path = Path(folder, name)
                if not path.is_symlink():
                    path.chmod(0o700)
        shutil.rmtree(directory)
