"""What holds in an installation, read from its store, which costs nothing and disturbs nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from domain.identity import plan_id
from domain.view import PlanView, TaskView
from store.database import Store, open_store
from store.evidence import Evidence, content, evidence_of
from store.receipts import receipts_of
from store.views import plan_view
from tests.end_to_end.installation import OWNER, Installation


class Facts(Installation):
    """An installation whose store is read."""

    def __init__(self, folder: Path, **settings: str) -> None:
        super().__init__(folder, **settings)
        self._store: Store | None = None

    def stop(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
        super().stop()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        if self._store is None:
            self._store = open_store(f"sqlite:///{self.home / 'graph.db'}")
        with self._store.read() as connection:
            yield connection

    def view(self, slug: str) -> PlanView:
        with self.reading() as connection:
            view = plan_view(connection, plan_id(OWNER, slug))
        assert view is not None, f"{slug} was never published"
        return view

    def task(self, slug: str, ordinal: int = 1) -> TaskView:
        return next(task for task in self.view(slug).tasks if task.ordinal == ordinal)

    def rows(self, sql: str, **values: object) -> list[Any]:
        with self.reading() as connection:
            return list(connection.execute(text(sql), values))

    def evidence(self, slug: str, kind: str) -> list[tuple[Evidence, str]]:
        """The evidence of this kind, each with what it holds."""
        with self.reading() as connection:
            found = [one for one in evidence_of(connection, plan_id=plan_id(OWNER, slug)) if one.kind == kind]
            return [(one, content(connection, one.digest).decode()) for one in found]

    def receipts(self, slug: str) -> list[Any]:
        with self.reading() as connection:
            return list(receipts_of(connection, plan_id(OWNER, slug), 0, 1000))

    def until_state(self, slug: str, ordinal: int, *states: str) -> TaskView:
        """Wait for one of these states of a task; a question that nobody expects fails at once."""

        def reached() -> TaskView | None:
            task = self.task(slug, ordinal)
            unexpected = task.question_id and "paused" not in states
            assert not unexpected, task
            return task if task.state in states else None

        return self.until(reached, f"{slug}#{ordinal} is {' or '.join(states)}", slug=slug)

    def until_completed(self, slug: str) -> PlanView:
        """Wait for the plan's end; a question that was not open before fails at once."""
        known = {task.question_id for task in self.view(slug).tasks}

        def completed() -> PlanView | None:
            view = self.view(slug)
            assert {task.question_id for task in view.tasks} <= {*known, ""}, view.tasks
            return view if view.state == "completed" else None

        return self.until(completed, f"{slug} is completed", slug=slug)

    def story(self, slug: str) -> str:
        return "\n".join(line.text for line in self.view(slug).story) if slug else ""
