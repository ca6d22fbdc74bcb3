"""What both engines can keep: plain JSON values, and text without what PostgreSQL has no place for."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any


def plain_text(text: str) -> str:
    """The text with U+FFFD for NUL and `?` for lone surrogates: agents' output holds anything."""
    return str(text).replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def plain(value: Any, *, floats: bool = False) -> Any:
    """The value as JSON would give it back; TypeError for what has no exact place there.

    Floats are such: what is hashed must have one spelling. `floats` lets finite ones pass where nothing is.
    """
    match value:
        case None | bool() | int():
            return value
        case float() if floats and isfinite(value):
            return value
        case str():
            return plain_text(value)
        case Mapping():
            return {plain_text(key): plain(item, floats=floats) for key, item in value.items()}
        case list() | tuple():
            return [plain(item, floats=floats) for item in value]
    raise TypeError(f"{value!r} is no value that a fact can have")
