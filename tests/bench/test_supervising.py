"""What `make bench` measures of runs can be measured: it is seldom run whole, and follows what runs become."""

from __future__ import annotations

from pathlib import Path

from tests.bench.figures import Figure
from tests.bench.supervising import hook, supervision


def test_the_hook_answers_as_in_a_run(tmp_path: Path) -> None:
    row = hook(tmp_path, 1)
    assert row.ours > 0
    assert row.against is not None
    assert row.against > 0


def test_a_supervised_command_has_its_rows(tmp_path: Path) -> None:
    rows = supervision(tmp_path, 1)
    assert len(rows) == 3
    assert all(row.ours > 0 for row in rows if isinstance(row, Figure))
