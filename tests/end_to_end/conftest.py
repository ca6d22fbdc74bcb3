"""Installations to test on: one that all tests share, and others for those that do it harm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.plans import Gate
from tests.end_to_end.rig import Rig


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One installation for the session. Every test publishes plans of its own."""
    rig = Rig(tmp_path_factory.mktemp("shared"))
    try:
        rig.start()
        yield rig
    finally:
        rig.stop()


@pytest.fixture(scope="session")
def battered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One whose processes are killed and whose messages get lost.

    A run outlives its worker for a minute, and open pull requests are read every two seconds.
    """
    rig = Rig(tmp_path_factory.mktemp("battered"), WATCHBILL_LEASE="60", WATCHBILL_FOLLOW="2")
    try:
        rig.start()
        yield rig
    finally:
        rig.stop()


@pytest.fixture
def rig(shared: Rig) -> Iterator[Rig]:
    """The shared installation, which is sound after each test."""
    yield shared
    shared.assert_sound()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """A gate at which a test's agents wait."""
    return Gate(tmp_path)
