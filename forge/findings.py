"""What in a commit of ours may not be published: by its paths, modes and sizes, and by what stands in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from domain.findings import ABSENT, LINK, MAX_DIFF_BYTES, MAX_FILE_BYTES, SUBMODULE, Change, findings
from domain.leaks import leaks

Git = Callable[..., bytes]


@dataclass(frozen=True)
class Entry:
    """A line of `git diff-tree --raw`: a path with its modes and objects before and after."""

    path: str
    before: str
    after: str
    old: str
    new: str


def faults_in(git: Git, entries: list[Entry], refuse: tuple[str, ...]) -> Iterator[str]:
    """A sentence for each fault, cheap ones first; lazily, so that whoever has read enough may stop.

    Files that are too large to be reviewed are not looked into for secrets: they are a fault already.
    """
    sizes = _sizes(git, [entry.new for entry in entries if entry.after not in (ABSENT, SUBMODULE)])
    links = _contents(git, [entry.new for entry in entries if entry.after == LINK])
    changes = [
        Change(
            entry.path,
            entry.before,
            entry.after,
            sizes.get(entry.new, 0),
            links.get(entry.new, b"").decode("utf-8", "replace"),
        )
        for entry in entries
    ]
    yield from findings(changes, refuse)
    small = [entry for entry in entries if 0 < sizes.get(entry.new, 0) <= MAX_FILE_BYTES and entry.after != LINK]
    if sum(sizes[entry.new] for entry in small) <= MAX_DIFF_BYTES:
        yield from _secrets(git, small)


def _secrets(git: Git, entries: list[Entry]) -> Iterator[str]:
    new = _contents(git, [entry.new for entry in entries])
    suspect = [entry for entry in entries if any(leaks(new[entry.new]))]
    # What was there before is no news; only where there is something now does that matter.
    old = _contents(git, [entry.old for entry in suspect if entry.before not in (ABSENT, SUBMODULE)])
    for entry in suspect:
        for leak in leaks(new[entry.new], old.get(entry.old, b"")):
            yield f"{entry.path} has what looks like {leak.kind} in line {leak.line}"


def _sizes(git: Git, objects: list[str]) -> dict[str, int]:
    if not objects:
        return {}
    listed = git("cat-file", "--batch-check=%(objectname) %(objectsize)", input="\n".join(objects).encode() + b"\n")
    return {name: int(size) for name, size in (line.split(" ") for line in listed.decode().splitlines())}


def _contents(git: Git, objects: list[str]) -> dict[str, bytes]:
    """What these objects hold; all of it is in memory at once."""
    if not objects:
        return {}
    output = git("cat-file", "--batch=%(objectname) %(objectsize)", input="\n".join(objects).encode() + b"\n")
    found = {}
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        name, size = output[at:end].decode().split(" ")
        found[name] = output[end + 1 : end + 1 + int(size)]
        at = end + 1 + int(size) + 1
    return found
