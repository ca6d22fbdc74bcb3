"""From when on a report tells: a time ago, a day, or a moment."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

_AGO = re.compile(r"(\d{1,4})\s*([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

USUAL = "24h"
"""A night, and the day before it."""


def moment(text: str, now: datetime, zone: ZoneInfo) -> datetime:
    """`12h`, `2d`, `2026-03-01`, `2026-03-01T18:30` or with a zone, as aware time; ValueError for anything else.

    What names no zone is meant in `zone`, the owner's, in which their days begin: the sums of a day are then the
    ledger's. A moment that is still to come is a ValueError as well.
    """
    said = text.strip()
    ago = _AGO.fullmatch(said)
    if ago:
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        found = datetime.fromisoformat(said)
    except ValueError:
        raise ValueError(f"{text!r} is no time; write 12h, 2d, 2026-03-01 or 2026-03-01T18:30") from None
    found = found if found.tzinfo else found.replace(tzinfo=zone)
    if found > now:
        raise ValueError(f"{text!r} is still to come; a report is about what was")
    return found
