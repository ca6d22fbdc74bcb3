"""Working in a thread while telling Temporal that the work goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from temporalio import activity

P = ParamSpec("P")
T = TypeVar("T")

SIGN_OF_LIFE = 10.0
"""Seconds between heartbeats while a thread works; well below every heartbeat timeout of such work."""


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `work` in a thread, heartbeating. A cancel is raised here at once; the thread finishes on its own."""
    thread = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    while True:
        done, _ = await asyncio.wait({thread}, timeout=SIGN_OF_LIFE)
        if done:
            return thread.result()
        activity.heartbeat()
