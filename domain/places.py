"""Whether the boxes of a revision stand where they stood: a box's place is its number, and no number is given twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from domain.errors import Fault
from domain.plan import TaskSpec

Boxes = Sequence[TaskSpec]


def misplaced(old: Boxes, new: Boxes) -> Mapping[int, tuple[Fault, ...]]:
    """What is wrong with the places of a revision's boxes, by the numbers of those places.

    A box is known by its title, else by its text. One that stands in another place than it stood would give
    its number to another; one that is nowhere would leave its number to the next box that is written.
    """
    known = {at: moved for at in range(1, len(new) + 1) if (moved := _came_from(at, old, new))}
    found: dict[int, tuple[Fault, ...]] = {}
    for at, before in known.items():
        message = (
            f"this is task {before}, and here it would become task {at}; leave every box in its place, "
            "strike out one that is not wanted, and write new ones at the end"
        )
        found[at] = (Fault(new[at - 1].line, message),)
    for box in old:
        at = box.ordinal
        if box.ordinal in known.values() or (at <= len(new) and at not in known):
            continue
        line = new[min(at, len(new)) - 1].line if new else 1
        message = f"task {at} is gone, and its number with it; write it in its place, struck out: - [ ] ~~{box.title}~~"
        found[at] = (*found.get(at, ()), Fault(line, message))
    return found


def _came_from(at: int, old: Boxes, new: Boxes) -> int:
    """The number that the box in this place had in another; 0 when it is where it was, or new."""
    box = new[at - 1]
    there = old[at - 1] if at <= len(old) else None
    if there is not None and there.title == box.title:
        return 0
    by_title = [one.ordinal for one in old if one.title == box.title and not _is_titled(one, new)]
    if by_title:
        return by_title[0]
    if not box.body or (there is not None and same_text(there.body, box.body)):
        return 0
    by_text = [one.ordinal for one in old if same_text(one.body, box.body) and not _stands(one, new)]
    return by_text[0] if len(by_text) == 1 else 0


def _is_titled(box: TaskSpec, new: Boxes) -> bool:
    """Whether this box is still in its place, with its title."""
    return box.ordinal <= len(new) and new[box.ordinal - 1].title == box.title


def _stands(box: TaskSpec, new: Boxes) -> bool:
    """Whether this box is still in its place, with its title or its text."""
    same = box.ordinal <= len(new) and bool(box.body) and same_text(new[box.ordinal - 1].body, box.body)
    return same or _is_titled(box, new)


def same_text(one: str, other: str) -> bool:
    """Whether two texts say the same: spaces at the ends of lines, which editors take away, say nothing."""
    return _said(one) == _said(other)


@lru_cache(maxsize=4096)
def _said(text: str) -> tuple[str, ...]:
    """A plan may have hundreds of boxes, each of which is held beside all the others."""
    return tuple(line.rstrip() for line in text.splitlines())
