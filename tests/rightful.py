"""Who would cause a move, for tests that are about something else."""

from __future__ import annotations

from domain.duties import Actor, may


def rightful(kind: str, event: str) -> Actor:
    """The first actor with this duty; a person for what is nobody's."""
    return next((actor for actor in Actor if may(actor, kind, event)), Actor.PERSON)
