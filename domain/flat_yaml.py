"""The little of YAML that front matter may use: one mapping of texts and lists of texts.

Nothing is resolved to a type, so every value is what stands in the file. Aliases, anchors, tags,
nesting and further documents are refused. Events are read one by one, so nothing can blow up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

MAX_ENTRIES = 100
"""Keys of a mapping, and texts of one list: far more than anybody needs, few enough to explain each."""

Value = str | tuple[str, ...] | None
"""A text, a list of texts, or None where nothing was written."""

_SHAPE = "write front matter as lines such as `key: value`"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Entry:
    """`problem` says what is wrong with the value's shape, if anything."""

    key: str
    line: int
    value: Value
    problem: str = ""


class Unreadable(Exception):
    """The text cannot be read on from `line`."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def read_entries(text: str, first_line: int) -> Iterator[Entry]:
    """The entries in order, as far as the text can be read, and then Unreadable.

    `first_line` is the number of the text's first line in its file. YAML counts lines as everybody
    does only in a text without U+0085, U+2028 and U+2029.
    """
    try:
        yield from _mapping(_plain_events(text, first_line), first_line)
    except yaml.MarkedYAMLError as error:
        # What is never closed is better shown where it opens than where the text runs out.
        in_block = error.context_mark is None or "block" in (error.context or "")
        mark = error.problem_mark if in_block else error.context_mark
        line = first_line + min(mark.line, text.count("\n")) if mark else first_line
        raise Unreadable(line, f"this is not YAML: {error.problem}; special characters need quotes") from None
    except yaml.YAMLError as error:
        raise Unreadable(first_line, f"this is not YAML: {error}") from None


def _plain_events(text: str, first_line: int) -> Iterator[yaml.Event]:
    """The events inside the one document; Unreadable at whatever makes YAML more than text."""
    documents = 0
    for event in yaml.parse(text, Loader=_LOADER):
        refusal = ""
        documents += isinstance(event, yaml.DocumentStartEvent)
        if documents > 1:
            refusal = "a second YAML document has no place here"
        elif isinstance(event, yaml.AliasEvent):
            refusal = f"*{event.anchor} is a YAML alias; put the value in quotes"
        elif isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            refusal = f"&{event.anchor} is a YAML anchor; put the value in quotes"
        elif isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)) and event.tag is not None:
            refusal = f"{event.tag} is a YAML tag; put the value in quotes"
        if refusal:
            raise Unreadable(first_line + _line(event), refusal)
        if isinstance(event, (yaml.NodeEvent, yaml.CollectionEndEvent)):
            yield event


def _line(event: yaml.Event) -> int:
    """Counting from 0. A parser always sets the mark; only events made by hand lack it."""
    return event.start_mark.line if event.start_mark else 0


def _mapping(events: Iterator[yaml.Event], first_line: int) -> Iterator[Entry]:
    first = next(events, None)
    if first is None:
        return
    if not isinstance(first, yaml.MappingStartEvent):
        raise Unreadable(first_line + _line(first), _SHAPE)
    for count, key in enumerate(events):
        if isinstance(key, yaml.MappingEndEvent):
            break
        line = first_line + _line(key)
        if not isinstance(key, yaml.ScalarEvent):
            raise Unreadable(line, _SHAPE)
        if count == MAX_ENTRIES:
            raise Unreadable(line, f"there are more than {MAX_ENTRIES} keys")
        value, problem = _value(next(events), events)
        yield Entry(key.value, line, value, problem)
    # Whatever follows the mapping, the events refuse.
    next(events, None)


def _value(event: yaml.Event, events: Iterator[yaml.Event]) -> tuple[Value, str]:
    """One value and what is wrong with its shape; all of its events are used up."""
    if isinstance(event, yaml.ScalarEvent):
        unwritten = event.implicit[0] and event.value in ("", "~", "null", "Null", "NULL")
        return (None if unwritten else event.value), ""
    texts: list[str] = []
    depth, flat = 1, isinstance(event, yaml.SequenceStartEvent)
    while depth:
        event = next(events)
        if isinstance(event, yaml.CollectionStartEvent):
            depth, flat = depth + 1, False
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.ScalarEvent):
            texts.append(event.value)
    if not flat:
        return None, "a text or a list of texts is needed here, and nothing nested"
    return tuple(texts), f"there are more than {MAX_ENTRIES} texts" if len(texts) > MAX_ENTRIES else ""
