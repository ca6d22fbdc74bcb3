"""Money that is set aside before a model is asked: the ceilings that it is taken from."""

from __future__ import annotations

from enum import StrEnum


class CeilingKind(StrEnum):
    """What a ceiling is over, in the order in which every writer locks them."""

    RUN = "run"
    TASK = "task"
    PLAN = "plan"
    DAY = "day"
