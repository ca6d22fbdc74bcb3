"""Words that views share: numbers in sentences, so that none tells of `1 checks`, and what agents' words are."""

from __future__ import annotations

OWN_WORDS = "In its own words, which nobody has checked:"
"""Stands before whatever an agent says."""


def counted(number: int, one: str, many: str = "") -> str:
    """`1 run`, `2 runs`; `many` is for nouns that do more than take an s."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
