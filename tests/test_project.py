"""The project's own files agree with each other."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOMS = {path.parent.name for path in ROOT.glob("*/__init__.py")}
PINS = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_room_is_packaged_typed_and_layered():
    tools = PROJECT["tool"]
    assert set(tools["hatch"]["build"]["targets"]["wheel"]["packages"]) == ROOMS
    assert set(tools["mypy"]["files"]) == ROOMS | {"tests"}
    assert set(tools["importlinter"]["root_packages"]) == ROOMS
    layers = " | ".join(tools["importlinter"]["contracts"][0]["layers"])
    assert set(layers.split(" | ")) == ROOMS


def test_every_pin_is_exact_and_names_no_address():
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+", pin) for pin in PINS)


def test_everything_we_ask_for_is_pinned():
    pinned = {plain(pin.split("==")[0]) for pin in PINS}
    project = PROJECT["project"]
    lines = project["dependencies"] + project["optional-dependencies"]["dev"]
    assert {plain(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in lines} <= pinned


def test_every_make_target_is_in_the_help():
    makefile = (ROOT / "Makefile").read_text()
    declared = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert declared
    said = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  make ([\w-]+)", said, re.MULTILINE)) == set(declared[1].split())


def test_setup_says_what_is_wrong_with_an_old_python(tmp_path):
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.9.1\nexit 1\n')
    old.chmod(0o755)
    done = subprocess.run(
        ["bash", ROOT / ".ci/setup"],
        env={"PATH": "/usr/bin:/bin", "PYTHON": str(old)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "Python 3.9.1" in done.stderr


@pytest.mark.parametrize("script", [".ci/run", ".ci/setup", "docker/entrypoint", "docker/make-secrets"])
def test_every_script_is_well_formed_and_can_be_run(script):
    path = ROOT / script
    assert path.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", path], check=True)
