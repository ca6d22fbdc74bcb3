"""When to stop watching."""

from __future__ import annotations

from enum import StrEnum


class Until(StrEnum):
    """Once the plan has ended, or already when a person is needed."""

    ENDED = "ended"
    PERSON = "person"
