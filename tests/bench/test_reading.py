"""What the bench measures of reading is what is done: each of its figures comes from a real brief, status or report."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.reading import reading

pytestmark = pytest.mark.slow


def test_a_brief_and_every_command_that_reads_a_plan_are_measured(tmp_path: Path) -> None:
    figures = reading(tmp_path, boxes=3, rounds=1)
    assert len(figures) == 5
    assert all(figure.ours > 0 for figure in figures)
    assert "A crowd of 3" in (tmp_path / "page.html").read_text()
