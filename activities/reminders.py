"""Keeping what an agent is reminded of at the state of the graph while it is at work."""

from __future__ import annotations

from temporalio import activity

from activities.commissions import Commissions
from domain.errors import WatchbillError
from domain.run import RunFacts
from domain.task import TaskFacts
from runtimes.agent import put
from runtimes.folder import RunFolder
from runtimes.hooks import BRIEF_FILE
from store import notes
from store.database import Store


class Reminder:
    """Writes one run's reminder anew whenever a note of its plan or its repository has changed.

    The first look always writes it: nobody knows what a worker before this one had seen.
    """

    def __init__(
        self, store: Store, commissions: Commissions, folder: RunFolder, run: RunFacts, task: TaskFacts
    ) -> None:
        self._store, self._commissions = store, commissions
        self._folder, self._run, self._task = folder, run, task
        self._seen: object = None

    def take(self) -> None:
        """Write it if there is something else to tell. What cannot be written now is for the next look."""
        try:
            with self._store.read() as connection:
                seen = notes.mark(connection, self._run.plan_id, self._task.owner)
            if seen != self._seen:
                put(self._folder.path / BRIEF_FILE, self._commissions.reminder(self._run, self._task))
                self._seen = seen
        except (WatchbillError, OSError) as error:
            about = {"run": self._run.id, "reason": str(error)}
            activity.logger.warning("a run's reminder was not written", extra=about)
