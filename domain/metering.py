"""Whether agents ask their models through the relay: what a plan says, and what each agent's run was.

An agent on a login or a key of its own goes around the relay. Nothing is held for its calls, nothing bounds them,
and nobody here knows what they cost. No run is such a one unless its plan says so, and whoever confirms the plan has
read it. What a run was is a fact of its row, written by the move that starts its process; what calls no model is
neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from domain.wording import counted


class Meter(StrEnum):
    """What a plan says of its agents."""

    ON = "on"
    OFF = "off"
    """Each is on a login of its own."""


class Metering(StrEnum):
    """What an agent's run was."""

    METERED = "metered"
    UNMETERED = "unmetered"


PARTLY = "partly unmetered"


def of_runs(seen: Iterable[str]) -> str:
    """What several agents' runs were, taken together; empty without any.

    Each is a Metering, or what some of them were, taken together; or empty for one from before there was anything but
    metered ones.
    """
    kinds = {kind or str(Metering.METERED) for kind in seen}
    if len(kinds) > 1:
        return PARTLY
    return kinds.pop() if kinds else ""


def has_unmetered(told: str) -> bool:
    """Whether any of them was unmetered."""
    return told in (Metering.UNMETERED, PARTLY)


def sentence(told: str) -> str:
    """What `of_runs` told, for people; empty where there is nothing that they need to be told."""
    if not has_unmetered(told):
        return ""
    whose = "they call their models on logins" if told == Metering.UNMETERED else "some call their models on logins"
    return f"Agents are {told}: {whose} of their own, and what that costs is not known."


def known(spent: int, *, unmetered: bool) -> int | None:
    """What is known to be spent, in nano-dollars; None for nothing, where somebody was at work who is not counted."""
    return None if unmetered and not spent else spent


def not_counted(unmetered_runs: int) -> str:
    """What is in none of the amounts, for people; empty where they are all there is."""
    return f"what {counted(unmetered_runs, 'unmetered run')} cost is not known" if unmetered_runs else ""
