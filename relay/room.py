"""How many bytes of requests are read at once, in all: each is in memory several times while it is judged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from relay.answers import Refused

ROOM = 128 << 20
"""Bytes of requests that are read at once."""
ROOM_SECONDS = 60.0
"""How long a request waits until there is room for it."""


class Room:
    """Room for so many bytes, first come, first served."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._turn, self._freed = asyncio.Lock(), asyncio.Event()

    @asynccontextmanager
    async def taken(self, size: int) -> AsyncIterator[None]:
        """Raises Refused with 503 when there is none in time. `size` is no more than all there is."""
        if self._turn.locked() or self._free < size:
            await self._wait_for(size)
        self._free -= size
        try:
            yield
        finally:
            self._free += size
            self._freed.set()

    async def _wait_for(self, size: int) -> None:
        """Wait for room, which is to be taken at once: nothing else may run in between."""
        try:
            async with asyncio.timeout(ROOM_SECONDS), self._turn:
                while self._free < size:
                    self._freed.clear()
                    await self._freed.wait()
        except TimeoutError as error:
            raise Refused(503, "too much is being asked at once; try again") from error
