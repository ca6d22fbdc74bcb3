"""Printing: one line or one JSON object at a time, and never a control character of somebody else's."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What moves a terminal's cursor, colours it, or reorders what a reader sees; tab and newline may stay."""


def clean(text: str) -> str:
    """Somebody's words, safe to print on a terminal. Outputs of agents end up in reasons and questions."""
    return _CONTROL.sub("\ufffd", text)


def one_line(text: str, limit: int = 300) -> str:
    flat = clean(" ".join(text.split()))
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def columns() -> int | None:
    """How wide the terminal is; None for a pipe, which has no width."""
    if not sys.stdout.isatty():
        return None
    # A terminal that does not know its width has one of 0.
    return os.get_terminal_size(sys.stdout.fileno()).columns or 80


def in_full(text: str, indent: str = "  ") -> list[str]:
    """Somebody's words to the last one, over as many lines as they need.

    Lines stay lines, and those after the first are indented. On a terminal they break between words, never
    within one, so that an address or a command can still be copied; for a pipe nothing breaks.
    """
    lines = clean(text).splitlines() or [""]
    told = [lines[0], *(indent + line for line in lines[1:])]
    width = columns()
    if width is None:
        return told
    from textwrap import wrap

    room = max(width, len(indent) + 10)
    return [
        part
        for line in told
        for part in wrap(line, room, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]
    ]


def say(text: str = "") -> None:
    """A line for whoever called, at once."""
    print(clean(text), flush=True)


def note(text: str) -> None:
    """A line beside the output: what a person wants to know and a pipe does not."""
    print(clean(text), file=sys.stderr, flush=True)


def say_json(value: Any) -> None:
    """One JSON value on one line; dataclasses as objects."""
    print(_json(value), flush=True)


def note_json(value: Any) -> None:
    print(_json(value), file=sys.stderr, flush=True)


def _json(value: Any) -> str:
    import json

    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    from dataclasses import asdict, is_dataclass

    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return str(value)
