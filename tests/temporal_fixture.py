"""Real Temporal dev servers for the tests: one a session, and more where a test needs its own."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from starter.local import ports, temporal
from starter.local.service import leashed

if TYPE_CHECKING:
    from temporalio.client import Client


@contextmanager
def dev_server(folder: Path, *options: str, database: Path | None = None) -> Iterator[temporal.Server]:
    """A server on free ports that answers; its log is in `folder`, and it dies with this process.

    It is in memory without `database`. `options` are further arguments of `temporal server start-dev`.
    """
    port, http_port = ports.choose((0, 0))
    program = temporal.choose_program(database or folder / "none")
    server = temporal.Server(program, port, http_port, database=database)
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(leashed((*server.command(), *options)), stdout=output, stderr=output)
    try:
        while not server.ready():
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        yield server
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="session")
def temporal_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of the session's server, with Watchbill's search attributes."""
    with dev_server(tmp_path_factory.mktemp("temporal")) as server:
        server.prepare()
        yield server.address


@pytest.fixture
async def temporal_client(temporal_address: str) -> Client:
    """A client with the pydantic data converter."""
    from temporalio.client import Client
    from temporalio.contrib.pydantic import pydantic_data_converter

    return await Client.connect(temporal_address, data_converter=pydantic_data_converter)
