"""What looks like a credential, wherever text leaves us: logs, histories, errors."""

from __future__ import annotations

import re

from domain.tokens import MARKS, WHOLE_TOKEN

# A value ends at the quote of its string at the latest; a key is taken out whole, or as far as it was written.
_SECRET = re.compile(
    rf"{WHOLE_TOKEN}"
    r"|(?i:(?:basic|bearer)\s+[A-Za-z0-9+/=._~-]{8,})"
    r"|(?<=://)[^/\s@\"]+(?=@)"
    r"|-----BEGIN [^-]+-----[^\"]*?(?:-----END [^-]+-----|(?=\")|\Z)"
)
_MARKS = (*MARKS, "basic", "bearer", "://", "-----begin ")
"""One of which, in whatever case, is in all that the pattern finds: most lines of a log have none."""


def without_secrets(text: str) -> str:
    """The text with `[redacted]` in the place of everything that looks like a credential."""
    folded = text.casefold()
    if not any(mark in folded for mark in _MARKS):
        return text
    return _SECRET.sub("[redacted]", text)
