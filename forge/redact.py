"""Secrets stay out of every message, whoever wrote it."""

from __future__ import annotations

import re

# Installation tokens have up to about 520 characters and hold dots and dashes; fine-grained personal
# tokens begin with github_pat_.
_SECRETS = re.compile(
    r"(?P<token>gh[a-z]_[A-Za-z0-9._-]{36,}|github_pat_\w{20,})"
    r"|(?P<header>authorization:\s*(?:\w+\s+)?)\S+"
    r"|(?P<url>\w+://)[^/\s@]+(?=@)",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """The text without tokens, authorization headers, and credentials in addresses."""
    return _SECRETS.sub(lambda found: f"{found['header'] or found['url'] or ''}[redacted]", text)
