"""The store as a door of many callers uses it: in threads, and readers never behind writers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from sqlalchemy import Connection

from store.database import Store

_T = TypeVar("_T")

# Together fewer than the 15 connections of the store's pool, so that none of them waits for one.
_READERS, _WRITERS = 8, 4


class Graph:
    """One transaction a call. Raises what the store raises: Unavailable when it does not answer.

    A writer can wait for seconds for its turn. Threads of their own keep whoever only reads, such as
    every model call, from waiting behind those.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._readers, self._writers = CapacityLimiter(_READERS), CapacityLimiter(_WRITERS)

    async def read(self, ask: Callable[[Connection], _T]) -> _T:
        def within() -> _T:
            with self._store.read() as connection:
                return ask(connection)

        return await to_thread.run_sync(within, limiter=self._readers)

    async def write(self, say: Callable[[Connection], _T]) -> _T:
        """Whoever gives up waiting does not break it off: it is committed or rolled back as a whole."""

        def within() -> _T:
            with self._store.write() as connection:
                return say(connection)

        return await to_thread.run_sync(within, limiter=self._writers)
