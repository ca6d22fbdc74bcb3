"""The gates that a heartbeat passes before it may dispatch work.

A nudge passes the interval and no other gate. Each gate is one reason not to beat; later gates
(quiet hours, a daily cap) are further lines here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HeartbeatPolicy:
    """An owner's settings.

    `interval` and `follow` are seconds: between two ticks, and between two readings of an open pull
    request that nobody hinted at. `slots` is how many tasks may be under way at once.
    """

    interval: float = 60.0
    follow: float = 900.0
    slots: int = 4


@dataclass(frozen=True)
class HeartbeatFacts:
    """What the gates look at."""

    owner_paused: bool
    slots_in_use: int


def closed_gate(policy: HeartbeatPolicy, facts: HeartbeatFacts) -> str:
    """Why no work may be dispatched now, in words; empty when every gate is open."""
    if facts.owner_paused:
        return "the owner is paused"
    if facts.slots_in_use >= policy.slots:
        return "the one slot is in use" if policy.slots == 1 else f"all {policy.slots} slots are in use"
    return ""
