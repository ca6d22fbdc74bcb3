"""From when on a report tells is read as a person means it."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from starter.reporting.since import USUAL, moment

NOW = datetime(2026, 3, 29, 7, 30, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("90m", "2026-03-29T06:00:00+00:00"),
        ("12h", "2026-03-28T19:30:00+00:00"),
        (" 2d ", "2026-03-27T07:30:00+00:00"),
        ("1w", "2026-03-22T07:30:00+00:00"),
        (USUAL, "2026-03-28T07:30:00+00:00"),
        # The day on which summer time begins there, as the ledger counts it.
        ("2026-03-29", "2026-03-28T23:00:00+00:00"),
        ("2026-03-29T08:00", "2026-03-29T06:00:00+00:00"),
        ("2026-03-29 00:00:00Z", "2026-03-29T00:00:00+00:00"),
        ("2026-03-29T05:00+05:30", "2026-03-28T23:30:00+00:00"),
    ],
)
def test_a_moment_is_read(said: str, meant: str) -> None:
    assert moment(said, NOW, BERLIN).astimezone(UTC) == datetime.fromisoformat(meant)


@pytest.mark.parametrize("said", ["", "yesterday", "12", "-3h", "12 parsecs", "2026-02-30", "99999h"])
def test_what_is_no_time_is_refused_with_what_is(said: str) -> None:
    with pytest.raises(ValueError, match="write 12h, 2d, 2026-03-01"):
        moment(said, NOW, BERLIN)


def test_a_moment_that_is_still_to_come_is_refused() -> None:
    with pytest.raises(ValueError, match="still to come"):
        moment("2026-03-30", NOW, BERLIN)
