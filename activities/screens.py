"""Keeping what is to be seen of a run in the store, so that it can be watched from anywhere."""

from __future__ import annotations

from datetime import UTC, datetime

from temporalio import activity

from activities.redaction import showable
from domain.errors import WatchbillError
from domain.run import Role, RunFacts
from runtimes.folder import RunFolder
from runtimes.port import Runtime
from runtimes.screen import Screen
from store.database import Store
from store.screens import put_screen

EVERY = 2.0
"""Seconds between two looks at a run's screen; it is written only when it has changed."""


class Camera:
    """Takes one run's screen into the store. What cannot be shown keeps no run from going on, or from its end."""

    def __init__(self, store: Store, runtime: Runtime, folder: RunFolder, run: RunFacts) -> None:
        self._store, self._run = store, run
        self._screen = Screen(runtime, folder, showable)
        self._seen = self._kept = ""

    def take(self) -> None:
        """Keep what is to be seen now, if it is something else than before."""
        seen = self.look()
        if seen == self._kept:
            return
        try:
            with self._store.write() as connection:
                put_screen(connection, self._run.id, seen, datetime.now(UTC))
        except WatchbillError as error:
            # Whoever has a fact to write says so; the next look tries again.
            activity.logger.warning("a screen was not kept", extra={"run": self._run.id, "reason": str(error)})
        else:
            self._kept = seen

    def last(self) -> str | None:
        """What is kept beside the run's end, as the last there was to be seen; None for nothing.

        A check that was over before anybody could watch it has all of its output as evidence.
        """
        return self.look() if self._run.role is Role.AUTHOR or self._kept else None

    def look(self) -> str:
        """What is to be seen now, without secrets."""
        try:
            found = self._screen.look()
        except Exception as error:  # noqa: BLE001 - an agent can write anything, and nothing of it is a reason to fail
            activity.logger.warning("a screen cannot be read", extra={"run": self._run.id, "reason": repr(error)})
            found = None
        if found is not None:
            self._seen = found
        return self._seen
