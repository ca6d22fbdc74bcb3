"""What looks like a credential, wherever text leaves us: logs, histories, errors."""

from __future__ import annotations

import re

from domain.tokens import WHOLE_TOKEN

# A value ends at the quote of its string at the latest; a key is taken out whole, or as far as it was written.
_SECRET = re.compile(
    rf"{WHOLE_TOKEN}"
    r"|(?i:(?:basic|bearer)\s+[A-Za-z0-9+/=._~-]{8,})"
    r"|(?<=://)[^/\s@\"]+(?=@)"
    r"|-----BEGIN [^-]+-----[^\"]*?(?:-----END [^-]+-----|(?=\")|\Z)"
)


def without_secrets(text: str) -> str:
    """The text with `[redacted]` in the place of everything that looks like a credential."""
    return _SECRET.sub("[redacted]", text)
