"""What an agent says and does, as a person reads it: the same few scenes for every CLI, and how they look.

A CLI's own file turns its stream into scenes. A stream is read by pieces and is the agent's own word, so
nothing in it has to be there, or to be of the kind that it should be.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.wording import counted
from runtimes.text import plain

_FIRST_LINES = 4
_LINE = 200
_SAID_LINES = 60
_NAMES = (
    "command", "cmd", "file_path", "filePath", "notebook_path", "path", "pattern", "query", "question", "title",
    "topic", "summary", "url",
)  # fmt: skip
"""What CLIs call the one thing that tells most about a use of a tool; the first that is there is shown."""


@dataclass(frozen=True)
class Said:
    """Words of the agent's."""

    text: str


@dataclass(frozen=True)
class Used:
    """A use of a tool: of what, on what, and what came of it; None as long as nothing has come."""

    tool: str
    what: str
    outcome: str | None = None
    failed: bool = False


@dataclass(frozen=True)
class Noted:
    """What the CLI says of the run itself: an error, or its end."""

    text: str


Scene = Said | Used | Noted


def text_of(scenes: Sequence[Scene]) -> str:
    """The scenes one below the other, as plain text without control characters."""
    return "\n".join(line for scene in scenes for line in _lines_of(scene))


def dig(value: Any, *names: str) -> Any:
    """What stands in objects within objects under these names; None where any of them is not there."""
    for name in names:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def words(value: Any) -> str:
    """Whatever stands for text in a stream: a text, or a list of blocks that have one."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, (words(dig(block, "text")) for block in value)))
    return ""


def what_of(given: Any) -> str:
    """What a tool was given, in one line: its command or path, or else all of it."""
    if isinstance(given, str):
        return given
    found = (dig(given, name) for name in _NAMES)
    told = next((value for value in found if isinstance(value, str) and value), None)
    return told if told is not None else json.dumps(given) if given else ""


def _lines_of(scene: Scene) -> list[str]:
    match scene:
        case Said(text):
            return [*_first(text, _SAID_LINES), ""]
        case Noted(text):
            return [f"-- {line}" for line in _first(text, _FIRST_LINES)]
    what = " ".join(_plain(scene.what).split())
    head = _short(f"> {_plain(scene.tool)} {what}".strip())
    if scene.outcome is None:
        return [head, "  ..."]
    mark = "! " if scene.failed else "  "
    return [head, *(f"{mark}{line}" for line in _first(scene.outcome, _FIRST_LINES))]


def _first(text: str, limit: int) -> list[str]:
    """The first lines of a text that are not empty at its ends, and how many there are more."""
    lines = [_short(line.rstrip()) for line in _plain(text).strip("\n").splitlines()]
    more = len(lines) - limit
    return lines if more <= 1 else [*lines[:limit], f"... {counted(more, 'line')} more"]


def _short(line: str) -> str:
    return line if len(line) <= _LINE else line[: _LINE - 1] + "…"


def _plain(text: str) -> str:
    return plain(text.encode(errors="replace"))
