"""Make a commit of what a run left in its workspace, without ever running git on the workspace's `.git`.

Whatever stands there is an agent's to write: a `core.fsmonitor` in it ran the agent's program with our
environment (seen), and `git add` and `git status` start a second git inside every submodule. So our git
directory and an index of our own look at the files, `git ls-files` says what differs, and each path is
taken in one by one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from domain.errors import NotFound, Unavailable, WatchbillError
from forge.findings import Entry, faults_in
from forge.git import run

Git = Callable[..., bytes]

_MAX_FAULTS = 20
_GITLINK = "160000"

MAX_TAKEN_BYTES = 100 << 20
"""Bytes of a file that is taken in at all. No forge of ours takes larger ones, and git reads them to their end."""

MAX_ALL_BYTES = 1 << 30
"""Bytes of all files together that are taken in."""

MAX_RULES_BYTES = 1 << 20
"""Bytes of a .gitignore or .gitattributes: git has the whole of them in memory."""


@dataclass(frozen=True)
class Work:
    """What a run left, as a commit of ours; `head_sha` is where the run began when it changed nothing.

    `changed` are the paths that differ from the base; `faults` says what is not in the commit, or may
    not be.
    """

    head_sha: str
    tree_sha: str
    changed: tuple[str, ...]
    faults: tuple[str, ...]


@dataclass(frozen=True)
class _Survey:
    """What was seen of a workspace before git looks at it: whether it may, and whether a file may be too large."""

    faults: tuple[str, ...]
    readable: bool = True
    may_be_large: bool = False


def collect(
    workspace: Path,
    mirror: Path,
    lock: int,
    *,
    ref: str,
    start: str,
    base_sha: str,
    message: str,
    at: datetime,
    refuse: tuple[str, ...] = (),
) -> Work:
    """The commit of what differs from `start`, stored at `ref`; the same files and `at` give the same commit.

    Files that the tree's own .gitignore names stay out, as do pipes, sockets and devices. What should be
    in but cannot be is in `faults`, and so is what nobody should publish (domain.findings); `refuse` are
    patterns over paths that may not differ from the base. Raises NotFound when the workspace is not there.
    """
    if not workspace.is_dir():
        raise NotFound(f"the workspace {workspace} is gone, so there is nothing to collect")
    with TemporaryDirectory(prefix="watchbill-index-") as scratch:
        look = {"GIT_WORK_TREE": str(workspace), "GIT_INDEX_FILE": str(Path(scratch, "index"))}
        git = partial(run, mirror, held=(lock,), env=look)
        git("read-tree", start)
        seen = _survey(git, workspace)
        faults = list(seen.faults)
        if seen.readable:
            faults += _stage(git, workspace, may_be_large=seen.may_be_large)
        tree = git("write-tree").decode().strip()
    git = partial(run, mirror, held=(lock,))
    start_tree, base_tree = git("rev-parse", f"{start}^{{tree}}", f"{base_sha}^{{tree}}").decode().split()
    head = start if tree == start_tree else _commit(git, tree, start, message, at)
    git("update-ref", ref, head)
    changes = [] if tree == base_tree else _changes(git, base_sha, head)
    faults += islice(faults_in(git, changes, refuse), _MAX_FAULTS)
    return Work(head, tree, tuple(change.path for change in changes), tuple(faults[:_MAX_FAULTS]))


def _stage(git: Git, workspace: Path, *, may_be_large: bool) -> list[str]:
    """Bring the index to what the files are; answers what could not be brought in."""
    gone: list[bytes] = []
    kept: list[tuple[bytes, int]] = []
    faults = _set_large_aside(git, workspace) if may_be_large else []
    for path, gitlink in _differing(git):
        if path.endswith(b"/"):
            faults.append(f"{_text(path)} holds a git repository of its own; its files were not collected")
            continue
        try:
            there = _lstat(workspace, path)
        except (FileNotFoundError, NotADirectoryError):
            gone.append(path)
        except OSError as error:
            faults.append(f"{_text(path)} cannot be read: {error.strerror}")
        else:
            mode = there.st_mode
            taken = stat.S_ISREG(mode) or stat.S_ISLNK(mode) or (gitlink and stat.S_ISDIR(mode))
            if taken:
                kept.append((path, there.st_size if stat.S_ISREG(mode) else 0))
            else:
                gone.append(path)
    if gone:
        # By force: `--remove` keeps what lies beyond a symbolic link that took a directory's place.
        git("update-index", "-z", "--force-remove", "--stdin", input=_lines(gone))
    paths, refused = _within_bounds(sorted(kept))
    return faults + refused + _add(git, paths)


def _within_bounds(kept: list[tuple[bytes, int]]) -> tuple[list[bytes], list[str]]:
    """The files that are small enough to be taken in, and a sentence for each that is not."""
    paths: list[bytes] = []
    faults: list[str] = []
    total = 0
    for path, size in kept:
        if size > MAX_TAKEN_BYTES:
            faults.append(_too_large(path, size))
        elif total + size > MAX_ALL_BYTES:
            faults.append(f"{_text(path)} was not collected: there are more than {MAX_ALL_BYTES >> 20} MiB before it")
        else:
            total += size
            paths.append(path)
    return paths, faults


def _set_large_aside(git: Git, workspace: Path) -> list[str]:
    """Have the files of the start that are too large now passed by; they stay as they were.

    Otherwise git would read them to see whether they differ.
    """
    large: list[bytes] = []
    faults: list[str] = []
    for path in git("ls-files", "-z").split(b"\0")[:-1]:
        with suppress(OSError):
            there = _lstat(workspace, path)
            if stat.S_ISREG(there.st_mode) and there.st_size > MAX_TAKEN_BYTES:
                large.append(path)
                faults.append(_too_large(path, there.st_size))
    if large:
        git("update-index", "-z", "--skip-worktree", "--stdin", input=_lines(large))
    return faults


def _too_large(path: bytes, size: int) -> str:
    return f"{_text(path)} has {size >> 20} MiB and was not collected; {MAX_TAKEN_BYTES >> 20} MiB are the most"


def _lstat(workspace: Path, path: bytes) -> os.stat_result:
    return os.lstat(os.fsencode(workspace) + b"/" + path)


def _differing(git: Git) -> set[tuple[bytes, bool]]:
    """Every path that differs from the index, and whether the index has a submodule there.

    With stages, git lists every other path of the index as well, by the tags H and S. An untracked directory that
    is a repository comes as one path with a slash at its end.
    """
    listed = git("ls-files", "-z", "-t", "-s", "--modified", "--deleted", "--others", "--exclude-standard")
    differing = set()
    for entry in listed.split(b"\0")[:-1]:
        tag, rest = entry[:1], entry[2:]
        if tag == b"?":
            differing.add((rest, False))
        elif tag not in (b"H", b"S"):
            about, path = rest.split(b"\t", 1)
            differing.add((path, about.startswith(_GITLINK.encode())))
    return differing


def _add(git: Git, paths: list[bytes]) -> list[str]:
    """Take these files in, halving the list until those that git will not take stand alone."""
    if not paths:
        return []
    try:
        git("update-index", "-z", "--add", "--replace", "--stdin", input=_lines(paths))
    except Unavailable:
        raise
    except WatchbillError as error:
        if len(paths) == 1:
            return [f"{_text(paths[0])} could not be collected: {error}"]
        middle = len(paths) // 2
        faults = _add(git, paths[:middle])
        if len(faults) >= _MAX_FAULTS:
            raise
        return faults + _add(git, paths[middle:])
    return []


def _survey(git: Git, workspace: Path) -> _Survey:
    """Look at every file, and find the directories that cannot be looked into, except ignored ones: git is silent.

    A pipe in the place of a .gitignore or .gitattributes is deleted: git would wait on it for ever. One that is
    too large would be read whole, so where there is one git may not look at the files at all. Git looks through a
    link that took a directory's place, so beyond any link there may be a large file.
    """
    closed: list[bytes] = []
    rules: list[str] = []
    may_be_large = False
    root = os.fsencode(workspace)
    for path, there in _files(root, closed):
        shown = path.removeprefix(root + b"/")
        is_rule = path.endswith((b"/.gitignore", b"/.gitattributes"))
        if is_rule and stat.S_ISFIFO(there.st_mode):
            with suppress(OSError):
                Path(os.fsdecode(path)).unlink()
        elif not stat.S_ISREG(there.st_mode):
            may_be_large |= stat.S_ISLNK(there.st_mode)
        elif is_rule and there.st_size > MAX_RULES_BYTES:
            rules.append(f"{_text(shown)} has {there.st_size >> 20} MiB")
        else:
            may_be_large |= there.st_size > MAX_TAKEN_BYTES
    if rules:
        return _Survey(
            tuple(f"{rule}, which are no rules for git; nothing was collected" for rule in rules), readable=False
        )
    if not closed:
        return _Survey((), may_be_large=may_be_large)
    # With a dot before it, no name is taken for one of git's patterns.
    paths = [b"." + path.removeprefix(root) for path in closed]
    ignored = git("check-ignore", "-z", "--stdin", input=_lines(paths), accept=(0, 1)).split(b"\0")
    faults = tuple(f"the directory {_text(path[2:])} cannot be read" for path in paths if path not in ignored)
    return _Survey(faults, may_be_large=may_be_large)


def _files(root: bytes, closed: list[bytes]) -> Iterator[tuple[bytes, os.stat_result]]:
    """Every file and what it is, however deep; the folders that cannot be looked into go to `closed`.

    os.walk calls itself for each level, and an agent can make more of them than Python has room for.
    """
    pending = [root]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                        continue
                    with suppress(FileNotFoundError):
                        yield entry.path, entry.stat(follow_symlinks=False)
        except OSError:
            closed.append(folder)


def _commit(git: Git, tree: str, parent: str, message: str, at: datetime) -> str:
    date = f"{int(at.timestamp())} +0000"
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    text = message.replace("\0", "").encode("utf-8", "replace")
    return git("commit-tree", tree, "-p", parent, input=text, env=dates).decode().strip()


def _changes(git: Git, base_sha: str, head: str) -> list[Entry]:
    """What `head` changes since it left the base; everything that differs when they share no history."""
    diff = partial(git, "diff-tree", "-r", "-z", "--raw", "--no-renames")
    try:
        raw = diff("--merge-base", base_sha, head)
    except WatchbillError:
        raw = diff(base_sha, head)
    fields = raw.split(b"\0")[:-1]
    changes = []
    for about, path in zip(fields[::2], fields[1::2], strict=True):
        changes.append(Entry(_text(path), *about.decode().lstrip(":").split(" ")[:4]))
    return changes


def _lines(paths: list[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)


def _text(path: bytes) -> str:
    """Bytes that are no UTF-8 are shown as escapes: the path goes into rows and payloads."""
    return path.decode("utf-8", "backslashreplace")
