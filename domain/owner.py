"""An owner: whoever's plans these are. Their gate shuts every plan of theirs at once."""

from __future__ import annotations

from enum import StrEnum

from domain.lifecycle import Lifecycle, table


class OwnerState(StrEnum):
    OPEN = "open"
    PAUSED = "paused"


class OwnerEvent(StrEnum):
    OPEN = "open"
    PAUSE = "pause"
    RESUME = "resume"
    BUDGET = "budget"


OWNER = Lifecycle(
    "owner",
    table(
        (None, OwnerEvent.OPEN, OwnerState.OPEN),
        (OwnerState.OPEN, OwnerEvent.PAUSE, OwnerState.PAUSED),
        (OwnerState.PAUSED, OwnerEvent.RESUME, OwnerState.OPEN),
        # What their runs may cost a day, and where that day begins.
        (None, OwnerEvent.BUDGET, OwnerState.OPEN),
        (OwnerState.OPEN, OwnerEvent.BUDGET, OwnerState.OPEN),
        (OwnerState.PAUSED, OwnerEvent.BUDGET, OwnerState.PAUSED),
    ),
    ended=frozenset(),
)
