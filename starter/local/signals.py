"""Being asked to end: Ctrl-C, a kill, or a terminal that is gone."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import FrameType

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """From now on, on the main thread, `asked` is called on the loop for each of these signals.

    Not with the loop's own handlers: to take those away leaves SIGINT raising KeyboardInterrupt anywhere,
    whatever was there before.
    """

    def __init__(self, asked: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()

        def heard(_signal: int, _frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(asked)

        self._before = {each: signal.signal(each, heard) for each in _ASKING}

    def release(self) -> None:
        """Let them do what they did before."""
        for each, handler in self._before.items():
            signal.signal(each, handler or signal.SIG_DFL)
