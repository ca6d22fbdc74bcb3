"""The door as a process: it answers without Temporal, and a kill between row and nudge loses nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import doors.serving
import webhooks.__main__
from starter.local import ports
from tests.activities.conftest import Graph
from tests.webhooks.conftest import SECRET, Doorway, headers, pull_request
from webhooks.settings import WebhookSettings

ROOT = Path(__file__).parents[2]


@contextmanager
def door(
    folder: Path, temporal: str, secret: bytes = SECRET, **told: str
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The process and its address, once it is open."""
    (port,) = ports.choose((0,))
    (folder / "secret").write_bytes(secret)
    environment = {
        "PATH": os.environ["PATH"],
        "WATCHBILL_STORE_URL": f"sqlite:///{folder / 'store.db'}",
        "WATCHBILL_WEBHOOK_SECRET_FILE": str(folder / "secret"),
        "WATCHBILL_WEBHOOKS_PORT": str(port),
        "WATCHBILL_TEMPORAL_ADDRESS": temporal,
        **told,
    }
    log = folder / "door.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "webhooks"], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
    try:
        while process.poll() is None and not ports.listening(port):
            time.sleep(0.05)
        yield process, f"http://127.0.0.1:{port}/webhooks/github"
    finally:
        process.kill()
        process.wait(10)


@pytest.fixture
def silent_temporal() -> Iterator[str]:
    """An address where connections are taken and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_kill_between_row_and_nudge_loses_nothing(graph: Graph, tmp_path: Path, silent_temporal: str) -> None:
    body = pull_request()
    with door(tmp_path, silent_temporal) as (process, address):
        assert httpx.post(address, content=body, headers=headers(body)).status_code == 202
        process.kill()
        process.wait(10)
    assert [row.handled_at for row in Doorway(graph.store).rows()] == [None]
    with door(tmp_path, silent_temporal) as (_, address):
        breaks_off(address, body)
        assert httpx.post(address, content=body, headers=headers(body)).status_code == 202
    assert [row.delivery for row in Doorway(graph.store).rows()] == ["d1"]
    assert SECRET.decode() not in (tmp_path / "door.log").read_text()


def breaks_off(address: str, body: bytes) -> None:
    """A sender who hangs up in the middle of a delivery."""
    url = httpx.URL(address)
    head = "".join(f"{name}: {value}\r\n" for name, value in headers(body, "d2").items())
    with socket.create_connection((url.host, url.port or 0)) as connection:
        request = f"POST {url.path} HTTP/1.1\r\nHost: door\r\n{head}Content-Length: {len(body)}\r\n\r\n"
        connection.sendall(request.encode() + body[:20])


@pytest.mark.parametrize(
    ("told", "code", "said"),
    [
        ({"WATCHBILL_WEBHOOK_SECRET_FILE": "/nowhere/secret"}, 2, "/nowhere/secret"),
        ({"WATCHBILL_STORE_URL": "sqlite:////proc/nowhere/store.db"}, 1, "/proc/nowhere"),
        ({"WATCHBILL_STORE_URL": "postgresql://ada:hunter2@db:port/x"}, 2, "WATCHBILL_STORE_URL is no address"),
        ({"WATCHBILL_TEMPORAL_ADDRESS": "foo:bar:baz"}, 2, "WATCHBILL_TEMPORAL_ADDRESS: it should look like"),
        ({"TEMPORAL_PROFILE": "gone"}, 2, "Profile 'gone' not found"),
        ({"WATCHBILL_WEBHOOKS_HOST": "host.invalid"}, 1, "cannot listen at host.invalid:8270"),
        ({}, 2, "is empty; put the secret into it"),
    ],
)
def test_a_door_that_cannot_open_says_why(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    told: dict[str, str],
    code: int,
    said: str,
) -> None:
    (tmp_path / "secret").write_bytes(b"hunter2" if told else b"  \n")
    usual = {
        "WATCHBILL_STORE_URL": f"sqlite:///{tmp_path}/new.db",
        "WATCHBILL_WEBHOOK_SECRET_FILE": f"{tmp_path}/secret",
    }
    for name, value in (usual | told).items():
        monkeypatch.setenv(name, value)
    # The test's own logs stay as they are.
    monkeypatch.setattr(doors.serving, "configure", lambda: None)
    assert doors.serving.serve_as("webhooks", WebhookSettings, webhooks.__main__.serve) == code
    line = capsys.readouterr().err
    assert line.startswith("watchbill webhooks: ")
    assert said in line
    assert line.count("\n") == 1
    assert "hunter2" not in line
