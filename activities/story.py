"""Keeping what a run tells of itself in the store while it runs: what lies on the host only, its agent can erase."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from temporalio import activity

from domain.errors import WatchbillError
from domain.run import RunFacts
from runtimes.folder import RunFolder
from runtimes.hooks import EVENTS_FILE
from store import events
from store.database import Store
from store.events import Event

_AT_ONCE = 500
"""Events of one transaction: writes are short."""


class Teller:
    """Takes what one run's hook has seen into the store. A repeat, by this teller or another, changes nothing."""

    def __init__(self, store: Store, folder: RunFolder, run: RunFacts) -> None:
        self._store, self._folder, self._run = store, folder, run
        self._seen: tuple[int, ...] = ()
        self._kept: set[int] = set()

    def take(self) -> None:
        """Keep what is new, if the file has changed; what could not be kept is for the next look."""
        seen = self._mark()
        if seen == self._seen or len(self._kept) >= events.MOST_EVENTS:
            return
        fresh = [event for event in story_of(self._folder.uses()) if event.n not in self._kept]
        try:
            with self._store.write() as connection:
                events.append(connection, self._run.id, fresh[:_AT_ONCE])
        except WatchbillError as error:
            activity.logger.warning("a run's story was not kept", extra={"run": self._run.id, "reason": str(error)})
            return
        self._kept |= {event.n for event in fresh[:_AT_ONCE]}
        if len(fresh) <= _AT_ONCE:
            self._seen = seen

    def _mark(self) -> tuple[int, ...]:
        try:
            stat = os.lstat(self._folder.path / EVENTS_FILE)
        except OSError:
            return ()
        return stat.st_ino, stat.st_size, stat.st_mtime_ns


def story_of(told: Iterable[Mapping[str, Any]], *, ours: bool = False) -> Sequence[Event]:
    """Events from a run's folder as the graph keeps them, in the order of their times.

    An event's number is its time, in half microseconds: it is the same in every copy, wherever it stood in a
    file that was erased and begun anew. Of several at one time the later have the numbers after it. Those that
    are `ours`, the supervisor's, are even, so that an agent cannot take one of them.
    """
    story: list[Event] = []
    for one in sorted(told, key=lambda one: datetime.fromisoformat(one["at"])):
        at = datetime.fromisoformat(one["at"])
        n = 2 * max(0, round(at.timestamp() * 1_000_000)) + (0 if ours else 1)
        said = {key: value for key, value in one.items() if key not in ("at", "seq", "event")}
        story.append(Event(max(n, story[-1].n + 2) if story else n, at, one["event"], said))
    return story
