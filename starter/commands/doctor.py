"""The doctor: what this machine has and lacks."""

from __future__ import annotations

from starter.exits import Exit
from starter.options import Json


def doctor(json: Json = False) -> Exit:
    """Say what Watchbill lacks here, and what mends it.

    Exits with 1 when something is missing; a warning is no reason to. Secrets are never shown.
    """
    from starter import examining

    return examining.doctor(json=json)
