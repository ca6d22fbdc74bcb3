"""The door as a process: it makes what it needs, says why it cannot open, and closes in good order."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

import doors.serving
import relay.__main__
from relay.settings import RelaySettings
from signing.keys import open_or_make
from store.database import Store
from store.tables import reservations
from tests.relay.conftest import ASKED, MESSAGES, Relay
from tests.relay.processes import door, log_of, told_of


def private_keys(home: Path) -> list[Path]:
    """The files of a home, however deep and whatever their names, that hold a key which can sign."""
    return [path for path in home.rglob("*") if path.is_file() and b"PRIVATE KEY" in path.read_bytes()]


def test_it_opens_over_a_fresh_home_makes_no_key_that_signs_and_closes_when_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with door(home, WATCHBILL_RELAY_DRAIN="5") as (port, process):
        assert httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
        assert httpx.post(f"http://127.0.0.1:{port}/mcp").status_code == 401
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)
    assert process.returncode == 0
    assert b"Traceback" not in log_of(home, port).read_bytes()
    assert (home / "graph.db").exists()
    assert private_keys(home) == []
    # Where a worker has its keys is where one would be found.
    key = home / "keys" / "capability.pem"
    open_or_make(key)
    assert private_keys(home) == [key]


def test_what_a_call_came_to_is_written_although_the_door_is_told_to_stop_while_the_store_is_busy(
    relay: Relay, tmp_path: Path
) -> None:
    relay.provider.goes_on.clear()
    store: Store = relay.graph.store
    told = {**told_of(store, relay.provider_url, tmp_path), "WATCHBILL_RELAY_DRAIN": "0"}
    with door(tmp_path / "home", **told) as (port, process):
        body = {**ASKED, "stream": True}
        url = f"http://127.0.0.1:{port}{MESSAGES}"
        with httpx.stream("POST", url, headers=relay.headers(), json=body, timeout=30) as stream:
            pieces = stream.iter_raw()
            assert next(pieces) == b"data: one\n\n"
            with store.write():
                process.send_signal(signal.SIGTERM)
                with pytest.raises(httpx.HTTPError):
                    next(pieces)
        process.wait(timeout=30)
        assert process.returncode == 0
    with store.read() as connection:
        assert connection.scalars(select(reservations.c.state)).all() == ["settled"]


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
