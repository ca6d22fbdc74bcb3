"""Setting up says what it is at, as it goes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A Python that makes itself a virtual environment, and an installation that waits to be let go.
PYTHON = """#!/bin/bash
case "$*" in
*venv*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
*pip*)
  for package in {1..45}; do echo "Collecting package$package"; done
  read -r < go
  echo "Installing collected packages: package1"
  read -r < go
  exit 1 ;;
-V) echo Python 3.12.1 ;;
-c*) [[ $0 == *.venv/bin/python || -n $GIVEN ]] ;;
esac
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/setup", tmp_path / ".ci/setup")
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    os.mkfifo(tmp_path / "go")
    return tmp_path


def test_a_long_installation_tells_each_step_as_it_begins_and_that_it_is_still_at_it(tree):
    told = {"PATH": "/usr/bin:/bin", "PYTHON": str(tree / "python"), "GIVEN": "1", "SETUP_PATIENCE": "1"}
    setup = subprocess.Popen(
        [tree / ".ci/setup"], env=told, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert setup.stdout
    said = [setup.stdout.readline().strip() for _ in range(5)]
    assert said[2:4] == ["setup: 20 packages found", "setup: 40 packages found"]
    assert said[4].startswith("setup: still finding packages")
    (tree / "go").write_text("\n")
    while (line := setup.stdout.readline()).startswith("setup: still finding"):
        pass
    assert line == "setup: unpacking 45 packages\n"
    assert setup.stdout.readline().startswith("setup: still unpacking")
    (tree / "go").write_text("\n")
    setup.communicate()
    assert setup.returncode == 1
