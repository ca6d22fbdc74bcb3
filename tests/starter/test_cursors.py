"""How far a plan was watched outlives the process, and is never worth a failure."""

from __future__ import annotations

import pytest

from starter.cursors import Cursor


def test_a_cursor_is_kept_a_plan_each(tmp_path):
    Cursor(tmp_path, "faster-1a2b3c4d").write(41)
    assert Cursor(tmp_path, "faster-1a2b3c4d").read() == 41
    assert Cursor(tmp_path, "other-1a2b3c4d").read() == 0


@pytest.mark.parametrize("text", ["", "x", "-3", "\x00"])
def test_a_broken_cursor_begins_again(tmp_path, text):
    cursor = Cursor(tmp_path, "faster-1a2b3c4d")
    cursor.write(5)
    (tmp_path / "cursors/faster-1a2b3c4d").write_text(text)
    assert cursor.read() == 0


def test_a_home_that_cannot_be_written_is_no_failure(tmp_path):
    (tmp_path / "file").write_text("")
    Cursor(tmp_path / "file", "faster-1a2b3c4d").write(5)
    assert Cursor(tmp_path / "file", "faster-1a2b3c4d").read() == 0
