"""Secrets stay out of every message, whoever wrote it."""

from __future__ import annotations

import re

from domain.tokens import WHOLE_TOKEN

_SECRETS = re.compile(
    rf"(?P<token>{WHOLE_TOKEN})"
    r"|(?P<header>(?i:authorization):\s*(?:\w+\s+)?)\S+"
    r"|(?P<url>(?<=\w)://)[^/\s@]+(?=@)"
)


def redact(text: str) -> str:
    """The text without tokens, authorization headers, and credentials in addresses."""
    return _SECRETS.sub(lambda found: f"{found['header'] or found['url'] or ''}[redacted]", text)
