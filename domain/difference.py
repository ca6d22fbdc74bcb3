"""What a revision changes of a confirmed plan, as data and in words: what a person reads before they confirm it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum
from functools import lru_cache

from domain.wording import counted

SHOWN = 60
"""Lines of a difference that a view has room for; `watchbill revise` shows them all."""


class BoxKind(StrEnum):
    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True)
class Change:
    """One thing that becomes another: `what` is a key of the front matter, or the name of a plan's or task's fact.

    `lines` is the difference of what has many lines, as `diff -u` shows it.
    """

    what: str
    before: str = ""
    after: str = ""
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.called if self.lines else f"{self.called} {self.before} → {self.after}"

    @property
    def called(self) -> str:
        """What it is called among people."""
        return _CALLED.get(self.what, self.what)


_CALLED = {"body": "text", "budget_nano_usd": "budget", "spec": "what the plan is about"}


@dataclass(frozen=True)
class BoxChange:
    """What becomes of one box. `state` is its task's, empty for a box that is new.

    `by` names keys of the front matter by which a task that has begun goes on otherwise than it began.
    """

    ordinal: int
    title: str
    kind: BoxKind
    state: str = ""
    changes: tuple[Change, ...] = ()
    by: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = f"{_SIGNS[self.kind]} {self.ordinal}. {self.title}"
        match self.kind:
            case BoxKind.ADDED:
                return f"{name}: new{''.join(f'; {change.called} {change.after}' for change in self.changes)}"
            case BoxKind.REMOVED:
                return f"{name} ({self.state}): struck out, and cancelled"
            case BoxKind.CHANGED:
                by = (f"goes on by the plan's new {', '.join(self.by)}",) if self.by else ()
                return f"{name} ({self.state}): {'; '.join((*map(str, self.changes), *by))}"


_SIGNS = {BoxKind.ADDED: "+", BoxKind.CHANGED: "~", BoxKind.REMOVED: "-"}


@dataclass(frozen=True)
class Difference:
    """Everything that a revision changes: keys of the front matter and the prose, then boxes by their ordinals.

    `unchanged` counts the boxes that stay as they are; `kept` are those of them whose tasks are under way and
    keep a default that the plan had when they were confirmed.
    """

    plan: tuple[Change, ...] = ()
    boxes: tuple[BoxChange, ...] = ()
    unchanged: int = 0
    kept: tuple[int, ...] = ()

    @property
    def summary(self) -> str:
        """How much of what there is, in a few words."""
        counts = {kind: sum(box.kind is kind for box in self.boxes) for kind in BoxKind}
        said = [f"{counted(count, 'box', 'boxes')} {kind}" for kind, count in counts.items() if count]
        if self.plan:
            said.insert(0, counted(len(self.plan), "change of the whole plan", "changes of the whole plan"))
        return ", ".join(said) or "nothing of what is done"


def in_words(difference: Difference, *, whole: bool = False) -> tuple[str, ...]:
    """The difference a line at a time, with the lines of texts where the whole of it is wanted."""
    told = list(_lines(difference, whole=whole))
    if not whole and len(told) > SHOWN:
        told[SHOWN:] = [f"and {counted(len(told) - SHOWN, 'more line')}"]
    return tuple(told)


def _lines(difference: Difference, *, whole: bool) -> Iterator[str]:
    for change in difference.plan:
        yield f"~ {change}"
        yield from _indented(change) if whole else ()
    for box in difference.boxes:
        yield str(box)
        for change in box.changes if whole else ():
            yield from _indented(change)
    if difference.kept:
        at_work = ", ".join(map(str, difference.kept))
        yield f"= at work, and keeps the defaults that it was confirmed with: {at_work}"
    if difference.unchanged:
        yield f"= {counted(difference.unchanged, 'box', 'boxes')} unchanged"


def _indented(change: Change) -> Iterator[str]:
    return (f"    {line}" for line in change.lines)


@lru_cache(maxsize=256)
def text_change(what: str, before: str, after: str) -> Change:
    """A change of a text of many lines. A revision that waits is looked at often, and its texts stay the same."""
    lines = unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    # The names of the two files, which there are none of.
    return Change(what, lines=tuple(lines)[2:])
