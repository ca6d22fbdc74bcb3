"""Work in a thread: it tells that it goes on, and a cancel does not wait for it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities import patience


async def test_a_thread_that_takes_long_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SIGN_OF_LIFE", 0.01)
    signs: list[Any] = []
    enough = threading.Event()
    environment = ActivityEnvironment()

    def beat(*details: Any) -> None:
        signs.append(details)
        if len(signs) == 3:
            enough.set()

    environment.on_heartbeat = beat
    assert await environment.run(patience.in_thread, enough.wait, 30)
    assert len(signs) >= 3


async def test_a_cancel_is_raised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    environment = ActivityEnvironment()
    working = asyncio.ensure_future(environment.run(patience.in_thread, done.wait, 30))
    await asyncio.sleep(0)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    done.set()


async def test_what_a_thread_raises_is_raised_here() -> None:
    with pytest.raises(ZeroDivisionError):
        await ActivityEnvironment().run(patience.in_thread, divmod, 1, 0)
