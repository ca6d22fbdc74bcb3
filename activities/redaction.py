"""What agents wrote, without secrets, before it leaves the host that they ran on."""

from __future__ import annotations

from domain.leaks import struck
from forge.redact import redact
from telemetry.secrets import without_secrets


def publishable(text: str) -> str:
    """Prose without what looks like a secret. Of what only may be one, nothing is taken: a reader would miss it."""
    return struck(redact(text))


def showable(text: str) -> str:
    """Output without what looks like a secret, or may be one."""
    return without_secrets(publishable(text))
