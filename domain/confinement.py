"""How runs are kept from what is not theirs: what is wished for, and what each run was.

A worker says what it does of itself; a plan may ask for more and never for less. What a run was is a fact
of its row, written by the move that starts its process.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Confine(StrEnum):
    """What is wished for."""

    AUTO = "auto"
    """Confined where this host can; otherwise unconfined, and shown as such."""
    REQUIRED = "required"
    """Confined, or not run at all."""
    OFF = "off"


class Network(StrEnum):
    """What a plan gives its checks and scripts, which have no door; agents have theirs and nothing else."""

    NONE = "none"
    OPEN = "open"
    """The host's: everything that can be reached from it, this control plane included."""


class Confinement(StrEnum):
    """What a run was."""

    CONFINED = "confined"
    NETWORKED = "networked"
    """Confined but for the host's network."""
    UNCONFINED = "unconfined"


PARTLY = "partly confined"


def tightened(worker: Confine, plan: Confine) -> Confine:
    """The worker's word, unless the plan asks for more."""
    return Confine.REQUIRED if Confine.REQUIRED in (worker, plan) else worker


def of_runs(seen: Iterable[str]) -> str:
    """What several runs were, taken together; empty when none of them has begun. Each is a Confinement."""
    kinds = {kind for kind in seen if kind}
    if not kinds:
        return ""
    if len(kinds) == 1 and kinds <= {Confinement.CONFINED, Confinement.UNCONFINED}:
        return str(*kinds)
    return PARTLY


def sentence(told: str) -> str:
    """What `of_runs` told, for people."""
    return f"Runs are {told}." if told else "No run has begun."
