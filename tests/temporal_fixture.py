"""A real Temporal dev server for the tests: one a session, in memory, on free ports."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from temporalio.client import Client


@pytest.fixture(scope="session")
def temporal_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of the session's server, with Watchbill's search attributes; it dies with this process."""
    from starter.local import ports, service, temporal

    program = temporal.choose_program(Path("/nowhere"))
    port, http_port = ports.choose((0, 0))
    server = temporal.Server(program, port, http_port)
    log = tmp_path_factory.mktemp("temporal") / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(service.leashed(server.command()), stdout=output, stderr=output)
    try:
        while not server.ready():
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        server.prepare()
        yield server.address
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture
async def temporal_client(temporal_address: str) -> Client:
    """A client with the pydantic data converter."""
    from temporalio.client import Client
    from temporalio.contrib.pydantic import pydantic_data_converter

    return await Client.connect(temporal_address, data_converter=pydantic_data_converter)
