"""What in a change may not be published without a person's word, told from its paths, kinds and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from domain.scope import refused
from domain.wording import counted

MAX_FILE_BYTES = 10 << 20
MAX_DIFF_BYTES = 50 << 20
"""GitHub takes files of up to 100 MiB and warns from 50; nobody reviews a tenth of that."""

ABSENT, FILE, PROGRAM, LINK, SUBMODULE = "000000", "100644", "100755", "120000", "160000"
"""The modes that git knows."""

_SHOWN = 5


@dataclass(frozen=True)
class Change:
    """A path that differs, with its modes before and after and the size of what it is now, in bytes.

    `target` is where a symbolic link leads, as it is written in it.
    """

    path: str
    before: str
    after: str
    size: int = 0
    target: str = ""


def findings(changes: Sequence[Change], refuse: tuple[str, ...]) -> Iterator[str]:
    """A sentence for each reason; `refuse` are patterns over paths that may not be changed."""
    if hit := refused(refuse, (change.path for change in changes)):
        more = f" and {counted(len(hit) - _SHOWN, 'more path')}" if len(hit) > _SHOWN else ""
        yield f"the policy refuses changes to {', '.join(hit[:_SHOWN])}{more}"
    for change in changes:
        if problem := _problem(change):
            yield f"{change.path} {problem}"
    total = sum(change.size for change in changes)
    if total > MAX_DIFF_BYTES:
        yield f"the changed files have {total >> 20} MiB; more than {MAX_DIFF_BYTES >> 20} are no change to review"


def _problem(change: Change) -> str:
    if change.after == SUBMODULE:
        moved = change.before == SUBMODULE
        return f"is a git repository of its own{', and leads to another commit' if moved else ''}"
    if change.before == SUBMODULE:
        return "is no git repository of its own any more"
    if change.path == ".gitmodules":
        return "says which other repositories belong to this one"
    if change.after == LINK and _leads_out(change.path, change.target):
        return "is a symbolic link that leads out of the repository"
    if {change.before, change.after} in ({LINK, FILE}, {LINK, PROGRAM}):
        return "has become a symbolic link" if change.after == LINK else "is no symbolic link any more"
    if (change.before, change.after) == (FILE, PROGRAM):
        return "has become executable"
    if change.size > MAX_FILE_BYTES:
        return f"has {change.size >> 20} MiB; more than {MAX_FILE_BYTES >> 20} are no file to review"
    return ""


def _leads_out(path: str, target: str) -> bool:
    """Whether a link's target is absolute, climbs above the root on its way, or has `.git` on it.

    Nor may it climb again behind a name: what that is climbed from is told by where another link leads.
    """
    segments = [segment for segment in target.split("/") if segment not in ("", ".")]
    climbs = segments.count("..")
    return (
        target.startswith("/")
        or climbs > path.count("/")
        or ".." in segments[climbs:]
        or any(segment.casefold() == ".git" for segment in segments)
    )
