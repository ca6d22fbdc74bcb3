"""A plan as a line in a list."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlanLine:
    """One plan of an owner. `started` is when it was first published, in ISO 8601."""

    plan_id: str
    state: str
    needs_person: bool
    started: str
