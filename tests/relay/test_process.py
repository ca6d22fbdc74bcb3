"""The door as a process: it makes what it needs, says why it cannot open, and closes in good order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

import doors.serving
import relay.__main__
from relay.settings import RelaySettings
from starter.local import ports

ROOT = Path(__file__).parents[2]


def test_it_opens_over_a_fresh_home_and_closes_when_told(tmp_path: Path) -> None:
    (port,) = ports.choose((0,))
    environment = {
        "PATH": os.environ["PATH"],
        "WATCHBILL_HOME": str(tmp_path / "home"),
        "WATCHBILL_RELAY_PORT": str(port),
        "WATCHBILL_RELAY_DRAIN": "5",
    }
    process = subprocess.Popen([sys.executable, "-m", "relay"], cwd=ROOT, env=environment, stderr=subprocess.PIPE)
    try:
        while process.poll() is None and not ports.listening(port):
            time.sleep(0.05)
        assert httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
        assert httpx.post(f"http://127.0.0.1:{port}/mcp").status_code == 401
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait(10)
    assert process.returncode in {0, -signal.SIGTERM}
    assert b"Traceback" not in said
    assert [path.name for path in (tmp_path / "home").glob("*.pem")] == []


def test_a_door_that_cannot_open_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WATCHBILL_STORE_URL", "sqlite:////proc/nowhere/store.db")
    # The test's own logs stay as they are.
    monkeypatch.setattr(doors.serving, "configure", lambda: None)
    assert doors.serving.serve_as("relay", RelaySettings, relay.__main__.serve) == 1
    line = capsys.readouterr().err
    assert line.startswith("watchbill relay: ")
    assert "/proc/nowhere" in line
