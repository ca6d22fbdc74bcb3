"""`watchbill report`: a plan's report, or that of all plans, on a terminal, for machines, or as a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from domain.errors import NotFound, Unavailable
from starter import graph
from starter import settings as settings_
from starter.exits import CommandFailed, Exit
from starter.looking import no_such_plan
from starter.names import plan_named
from starter.output import clean, say, say_json
from starter.reporting.facts import MorningReport, Report
from starter.reporting.markdown import morning_to_markdown, to_markdown
from starter.reporting.since import USUAL, moment
from starter.settings import Settings
from starter.whole import write_whole

if TYPE_CHECKING:
    from sqlalchemy import Connection


def report(name: str, since: str, page: Path | None, *, markdown: bool, json: bool) -> Exit:
    """Give the report of a plan, or of all plans of the owner where no plan is named."""
    settings = settings_.load()
    at = datetime.now(UTC)
    plan_id = plan_named(name, settings.owner) if name else ""
    with _reading(settings) as (connection, zone):
        from starter.reporting.loading import load_morning_report, load_plan_report

        begin = _begin(since or ("" if name else USUAL), at, zone)
        found: Report | MorningReport | None
        if begin is not None and not plan_id:
            found = load_morning_report(connection, settings.owner, at, begin)
        else:
            found = load_plan_report(connection, plan_id, at, begin)
    if found is None:
        raise no_such_plan(settings, plan_id)
    if page is not None:
        _write(page, found, zone)
    if json:
        say_json(found)
    elif page is None:
        show_report(found, plain=markdown)
    else:
        say(f"{page}: written")
    return Exit.DONE


def load_report(settings: Settings, plan_id: str) -> Report:
    """Raises NotFound for a plan that was never published, and Unavailable without the store."""
    return _load(settings, plan_id)[0]


def write_report(settings: Settings, plan_id: str, page: Path) -> None:
    """Write the report of a plan into a file, as a page. Raises as `load_report` does."""
    _write(page, *_load(settings, plan_id))
    say(f"{page}: written")


def _load(settings: Settings, plan_id: str) -> tuple[Report, ZoneInfo]:
    with _reading(settings) as (connection, zone):
        from starter.reporting.loading import load_plan_report

        found = load_plan_report(connection, plan_id, datetime.now(UTC))
    if found is None:
        raise no_such_plan(settings, plan_id)
    return found, zone


def show_report(found: Report | MorningReport, *, plain: bool = False) -> None:
    """The report as Markdown, typeset where a person reads it on a terminal."""
    text = clean(to_markdown(found) if isinstance(found, Report) else morning_to_markdown(found))
    if plain or not sys.stdout.isatty():
        say(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text, hyperlinks=False))


@contextmanager
def _reading(settings: Settings) -> Iterator[tuple[Connection, ZoneInfo]]:
    """One moment of the graph, and the owner's time zone."""
    with graph.opened(settings) as store, store.read() as connection:
        from starter.reporting.loading import zone_of

        yield connection, zone_of(connection, settings.owner)


def _begin(since: str, at: datetime, zone: ZoneInfo) -> datetime | None:
    try:
        return moment(since, at, zone) if since else None
    except ValueError as error:
        raise CommandFailed(Exit.USAGE, f"--since: {error}") from None


def _write(path: Path, found: Report | MorningReport, zone: ZoneInfo) -> None:
    from starter.reporting.page import morning_page, plan_page

    text = plan_page(found, zone) if isinstance(found, Report) else morning_page(found, zone)
    try:
        write_whole(path, text)
    except OSError as error:
        # It speaks of the draft beside the page, which nobody has named.
        why = f"--html: {path} cannot be written: {(error.strerror or str(error)).lower()}"
        raise (NotFound if isinstance(error, FileNotFoundError) else Unavailable)(why) from error
