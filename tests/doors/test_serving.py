"""How doors open, and how they say why they cannot."""

from __future__ import annotations

import socket

import pytest
from starlette.applications import Starlette

from domain.errors import Misconfigured, Unavailable, WatchbillError
from doors.serving import CANNOT_SERVE, UNUSABLE, cannot_serve, listen


async def test_a_place_that_is_taken_is_told_with_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(WatchbillError, match=f"cannot listen at 127.0.0.1:{port}: address already in use"):
            await listen(Starlette(), "127.0.0.1", port)


async def test_a_host_that_is_not_this_machine_is_told_with_its_address() -> None:
    with pytest.raises(WatchbillError, match=r"cannot listen at host\.invalid:8270: "):
        await listen(Starlette(), "host.invalid", 8270)


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (Misconfigured("WATCHBILL_X is odd"), UNUSABLE, "WATCHBILL_X is odd"),
        (Unavailable("the store did not\nanswer"), CANNOT_SERVE, "the store did not answer"),
        (OSError(28, "No space left on device", "/x"), CANNOT_SERVE, "/x: no space left on device"),
    ],
)
def test_what_hinders_a_door_is_one_line_and_has_its_code(
    capsys: pytest.CaptureFixture[str], error: WatchbillError | OSError, code: int, line: str
) -> None:
    assert cannot_serve("relay", error) == code
    assert capsys.readouterr().err == f"watchbill relay: {line}\n"
