"""What CommonMark sees in a document: its headings, its top-level lists, and which lists are the tasks.

Whether something is a list item is for a CommonMark parser to say, never for a regular expression:
boxes in fences, quotes, HTML comments and nested lists look like tasks and are none.
https://spec.commonmark.org/0.31.2/#list-items
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from domain.errors import Fault

MAX_NESTING = 100
"""Containers (a list counts twice: list and item). markdown-it skips everything that comes after a
deeper one, so a document that reaches this is refused, or tasks would go missing without a word."""

_BOX = re.compile(r"\[([ xX])\](?=[ \t]|$)[ \t]*")
_MARKER = re.compile(r"[ \t]*(?:[-+*]|\d{1,9}[.)])[ \t]+")


@dataclass(frozen=True)
class Heading:
    line: int
    level: int
    text: str

    @property
    def names_tasks(self) -> bool:
        return self.text.strip("*_: \t").casefold() == "tasks"


@dataclass(frozen=True)
class Item:
    """A top-level list item. `done` is None without a box; `first` is the box's line after the marker.

    `body` is the source of the lines below, without the item's indentation.
    """

    line: int
    done: bool | None = None
    first: str = ""
    body: str = ""


@dataclass(frozen=True)
class ItemList:
    """A top-level list on the lines `start` up to, not including, `end`."""

    start: int
    end: int
    items: tuple[Item, ...]

    @property
    def has_boxes(self) -> bool:
        return any(item.done is not None for item in self.items)


@dataclass(frozen=True)
class Outline:
    """Headings and lists in order; lines count from 1. `too_deep` is a line nested past the limit, or 0."""

    lines: tuple[str, ...]
    headings: tuple[Heading, ...]
    lists: tuple[ItemList, ...]
    too_deep: int = 0


@dataclass(frozen=True)
class Section:
    """Where the tasks stand: the lines `start` up to, not including, `end`. `heading` is None without one."""

    start: int
    end: int
    lists: tuple[ItemList, ...]
    heading: Heading | None = None


def read_outline(text: str) -> Outline:
    """Parse Markdown whose lines end in LF."""
    lines = tuple(text.split("\n"))
    # Titles and bodies stay as they were written, so inline markup is never parsed.
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).disable("inline")
    tokens = parser.parse(text)
    too_deep = (_line(token) for token in tokens if token.nesting == 1 and token.level >= MAX_NESTING - 1)
    return Outline(lines, tuple(_headings(tokens)), tuple(_lists(tokens, lines)), next(too_deep, 0))


def find_tasks(outline: Outline) -> tuple[Section | None, tuple[Fault, ...]]:
    """The section that holds the tasks, and what is wrong with the choice.

    It is the first section headed "Tasks", or else the only section that has boxes.
    """
    for heading in outline.headings:
        if heading.names_tasks:
            return _named_section(outline, heading)
    return _only_section_with_boxes(outline)


def _named_section(outline: Outline, heading: Heading) -> tuple[Section, tuple[Fault, ...]]:
    """A heading's section ends at the next heading of the same or a higher level."""
    after = (other for other in outline.headings if other.line > heading.line)
    end = next((other.line for other in after if other.level <= heading.level), len(outline.lines) + 1)
    message = f'this is a second "Tasks" section; the tasks stand in that of line {heading.line}'
    faults = tuple(
        Fault(other.line, message)
        for other, lists in _passages(outline)
        if other and other.names_tasks and other.line >= end and _boxed(lists)
    )
    return Section(heading.line, end, _between(outline, heading.line, end), heading), faults


def _only_section_with_boxes(outline: Outline) -> tuple[Section | None, tuple[Fault, ...]]:
    found = [(heading, boxed) for heading, lists in _passages(outline) if (boxed := _boxed(lists))]
    if not found:
        return None, ()
    if len(found) > 1:
        names = [f'"{heading.text}"' if heading else "the top of the document" for heading, _ in found]
        lines = [boxed[0].start for _, boxed in found]
        places = " and ".join(f"{name} (line {line})" for name, line in zip(names, lines, strict=True))
        message = f'there are boxes under {places}; give the section that holds the tasks the heading "Tasks"'
        return None, (Fault(lines[1], message),)
    # Without a heading of its own, the section reaches from its first box to its last.
    (_, boxed), *_ = found
    start, end = boxed[0].start, boxed[-1].end
    return Section(start, end, _between(outline, start, end)), ()


def _passages(outline: Outline) -> Iterator[tuple[Heading | None, tuple[ItemList, ...]]]:
    """The lists between each heading and the next one, whatever their levels; the first has no heading."""
    ends = [*(heading.line for heading in outline.headings), len(outline.lines) + 1]
    position = 0
    for heading, end in zip((None, *outline.headings), ends, strict=True):
        begin = position
        while position < len(outline.lists) and outline.lists[position].start < end:
            position += 1
        yield heading, outline.lists[begin:position]


def _between(outline: Outline, start: int, end: int) -> tuple[ItemList, ...]:
    return tuple(found for found in outline.lists if start <= found.start < end)


def _boxed(lists: tuple[ItemList, ...]) -> tuple[ItemList, ...]:
    return tuple(found for found in lists if found.has_boxes)


def _headings(tokens: list[Token]) -> Iterator[Heading]:
    for position, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0:
            text = " ".join(tokens[position + 1].content.split())
            yield Heading(_line(token), int(token.tag[1:]), text)


def _lists(tokens: list[Token], lines: tuple[str, ...]) -> Iterator[ItemList]:
    opened: Token | None = None
    items: list[Item] = []
    for position, token in enumerate(tokens):
        if token.level == 0 and token.type in ("bullet_list_open", "ordered_list_open"):
            opened, items = token, []
        elif token.level == 1 and token.type == "list_item_open" and opened:
            items.append(_item(token, tokens[position + 1 : position + 3], lines))
        elif token.level == 0 and opened and token.nesting == -1:
            yield ItemList(_line(opened), _end(opened), tuple(items))
            opened = None


def _item(opening: Token, content: list[Token], lines: tuple[str, ...]) -> Item:
    line = _line(opening)
    # A box opens a paragraph, also one that an underline below turns into a heading, on the item's own line.
    block, text = content[0], content[-1]
    is_text = block.type == "paragraph_open" or (block.type == "heading_open" and block.markup in ("-", "="))
    if not is_text or _line(block) != line:
        return Item(line)
    first = text.content.split("\n", 1)[0]
    box, marker = _BOX.match(first), _MARKER.match(lines[line - 1])
    if box is None or marker is None:
        return Item(line)
    width = len(marker[0].expandtabs(4))
    rest = [_dedent(below, width) for below in lines[line : _end(opening) - 1]]
    return Item(line, box[1] != " ", first[box.end() :].rstrip(), _without_blank_ends(rest))


def _dedent(line: str, width: int) -> str:
    """Take `width` columns of indentation off; a tab that reaches beyond them leaves its rest as spaces.

    https://spec.commonmark.org/0.31.2/#tabs
    """
    column = 0
    for position, character in enumerate(line):
        if column >= width or character not in " \t":
            return " " * (column - width) + line[position:]
        column += 4 - column % 4 if character == "\t" else 1
    return " " * (column - width)


def _without_blank_ends(lines: list[str]) -> str:
    filled = [number for number, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[filled[0] : filled[-1] + 1]) if filled else ""


def _line(token: Token) -> int:
    return token.map[0] + 1 if token.map else 0


def _end(token: Token) -> int:
    return token.map[1] + 1 if token.map else 0
