"""The work graph, for commands that read it. SQLAlchemy is imported here and only when one does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import Unavailable
from domain.view import PlanView
from starter.lines import PlanLine
from starter.settings import Settings

if TYPE_CHECKING:
    from store.database import Store


@contextmanager
def opened(settings: Settings) -> Iterator[Store]:
    """The store that the settings name. Raises Unavailable when it is not there or does not answer."""
    file = sqlite_file(settings.store_url)
    if file is not None and not file.exists():
        # SQLite would make an empty one.
        raise Unavailable(f"there is no store at {file}; `watchbill up` makes one, WATCHBILL_STORE_URL names another")
    from store.database import open_store

    store = open_store(settings.store_url)
    try:
        yield store
    finally:
        store.close()


def view_of(settings: Settings, plan_id: str) -> PlanView | None:
    """The plan as the graph has it, None when it was never published; raises Unavailable."""
    with opened(settings) as store, store.read() as connection:
        from store.views import plan_view

        return plan_view(connection, plan_id)


def plans_of(settings: Settings) -> list[PlanLine]:
    """The owner's plans as the graph has them, the newest first; raises Unavailable."""
    with opened(settings) as store, store.read() as connection:
        from store.views import plans_in_list

        return [
            PlanLine(
                each.plan_id, each.state, each.needs_person, published=each.published.isoformat(timespec="seconds")
            )
            for each in plans_in_list(connection, settings.owner)
        ]


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite URL; None for any other store."""
    scheme, _, path = url.partition("://")
    return Path(path.removeprefix("/")) if scheme.partition("+")[0] == "sqlite" else None
