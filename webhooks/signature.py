"""Whether a delivery is from whom it says: HMAC-SHA256 over the raw body, and nothing weaker."""

from __future__ import annotations

import hashlib
import hmac


def is_signed(secret: bytes, body: bytes, header: bytes) -> bool:
    """Whether `header` (X-Hub-Signature-256) signs exactly these bytes. False for anything malformed."""
    expected = b"sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest().encode()
    return hmac.compare_digest(expected, header)
