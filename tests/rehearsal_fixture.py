"""The stand-in GitHub as a fixture, for every room that talks to a forge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.server import Rehearsal


@pytest.fixture
def rehearsal(tmp_path: Path) -> Iterator[Rehearsal]:
    """A stand-in GitHub with nothing in it; `rehearsal.scene` sets it up, `rehearsal.url` reaches it."""
    with Rehearsal(tmp_path / "github") as github:
        yield github
