"""Numbers in sentences: one helper, so that no view tells of `1 checks`."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """`1 run`, `2 runs`; `many` is for nouns that do more than take an s."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
