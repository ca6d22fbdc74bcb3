"""Numbers in sentences."""

from __future__ import annotations

from domain.wording import counted


def test_one_is_singular_and_any_other_number_plural():
    assert [counted(number, "check") for number in (0, 1, 2)] == ["0 checks", "1 check", "2 checks"]
    assert [counted(number, "box", "boxes") for number in (1, 3)] == ["1 box", "3 boxes"]
