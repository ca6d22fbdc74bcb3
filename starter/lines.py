"""A plan as a line in a list."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlanLine:
    """One plan of an owner, as the store or Temporal lists it; each knows one time of the two, in ISO 8601.

    `published` is when its first text was. `in_temporal_since` is when its workflow began, which may be after that:
    a plan that was looked at again after its end, or whose Temporal was lost, has a newer one.
    """

    plan_id: str
    state: str
    needs_person: bool
    published: str = ""
    in_temporal_since: str = ""
