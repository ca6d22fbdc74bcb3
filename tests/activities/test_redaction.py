"""What agents wrote is looked through for secrets in a time that grows with its length, whatever it is."""

from __future__ import annotations

import pytest

from activities.redaction import showable


@pytest.mark.parametrize("piece", ["a", "1", "x_", "-eyJ", "gh", "a-", "://", "a://b", "sk-ant-", "Authorization: "])
def test_the_same_piece_over_and_over_is_looked_through(piece: str) -> None:
    # Where each piece is followed to the end of the text, this takes longer than a test may.
    text = piece * (300_000 // len(piece))
    assert showable(f"{text} https://ada:secret@example.org").endswith("://[redacted]@example.org")
