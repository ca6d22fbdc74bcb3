"""Directories that agents and checks work in.

A workspace is a clone of its own. It shares no object file with ours, knows no remote, and holds only
what its commits reach, so an agent may break it and learns nothing of other tasks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from forge.aside import beside
from forge.git import refs, run

_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[user]
\tname = Watchbill agent
\temail = agent@watchbill.invalid
[gc]
\tauto = 0
"""


def build(directory: Path, mirror: Path, lock: int, *, head: str, branches: Mapping[str, str], start: str) -> None:
    """Put a fresh clone at `directory`, with commit `start` checked out; what stands there already stays.

    `head` is what HEAD says: `ref: refs/heads/…` or a commit. `branches` are the refs it gets. Tags
    that `start` contains come along, for tools that derive a version from them.
    """
    if _occupied(directory):
        return
    with beside(directory) as (clone, being_built):
        _clone(clone, mirror, (lock, being_built), head=head, branches=branches, start=start)
        # Beside it was ours alone; what checks start may run as somebody else.
        clone.chmod(0o755)
        try:
            clone.rename(directory)
        except OSError:
            # Another attempt was first, and its workspace may be in use by now.
            if not _occupied(directory):
                raise


def _occupied(directory: Path) -> bool:
    """Whether anything stands there. An empty directory is nothing: moving a clone in replaces it."""
    try:
        return os.path.lexists(directory) and (not directory.is_dir() or any(directory.iterdir()))
    except PermissionError:
        return True


def _clone(
    clone: Path, mirror: Path, held: tuple[int, ...], *, head: str, branches: Mapping[str, str], start: str
) -> None:
    """Two git processes, and one more where there are tags: every run waits for this, and `git clone` takes six."""
    git_dir = clone / ".git"
    for folder in ("objects/pack", "refs"):
        (git_dir / folder).mkdir(parents=True)
    (git_dir / "config").write_text(_CONFIG)
    tags = refs(mirror, held[0], f"--merged={start}", "refs/tags") if _has_tags(mirror) else {}
    own = {**tags, **branches}
    wanted = "".join(f"{sha}\n" for sha in {start, *own.values()}).encode()
    # The deltas that the mirror has are taken over; to look for more costs longer than a clone of a run lives.
    pack = ("pack-objects", "--quiet", "--revs", "--delta-base-offset", "--window=0")
    run(mirror, *pack, str(git_dir / "objects/pack/pack"), input=wanted, held=held, config=_NO_FSYNC)
    listed = "".join(f"{own[name]} {name}\n" for name in sorted(own))
    (git_dir / "packed-refs").write_text(listed, "utf-8", "surrogateescape")
    (git_dir / "HEAD").write_text(f"{head}\n")
    look = {"GIT_WORK_TREE": str(clone)}
    run(git_dir, "read-tree", "-u", "--reset", start, env=look, held=held, config=_NO_FSYNC)


def _has_tags(mirror: Path) -> bool:
    """Whether the repository may have a tag; it is ours, and keeps its refs in files."""
    try:
        packed = (mirror / "packed-refs").read_bytes()
    except FileNotFoundError:
        packed = b""
    return b" refs/tags/" in packed or any(path.is_file() for path in (mirror / "refs/tags").rglob("*"))


_NO_FSYNC = {"core.fsync": "none"}
"""A clone that a power cut damaged is cut again."""
