"""Watching one run at work: what is to be seen of it, wherever it works."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from domain.errors import NotFound, Unavailable
from domain.metering import Metering
from domain.run import RunState
from domain.task import SLOTTED
from starter import graph
from starter import settings as settings_
from starter.exits import Exit
from starter.looking import no_such_plan
from starter.names import task_named
from starter.output import clean, columns, note, one_line, say, say_json
from starter.settings import Settings

if TYPE_CHECKING:
    from domain.run import RunFacts
    from runtimes.screen import Screen
    from store.database import Store
    from store.screens import Seen

PAUSE = 0.5
"""Seconds between two looks. The store has a new screen every two seconds at most; the run's own host, at once."""


@dataclass(frozen=True)
class Frame:
    """A run as it is to be seen. `at` is when it was seen, None where nothing was to be seen yet.

    `deserted` says that no worker looks after it any more, so that nobody would know if it had ended.
    """

    run: RunFacts
    at: datetime | None
    text: str
    deserted: bool = False


def watch_screen(name: str, *, json: bool) -> Exit:
    """Show a task's run at work until it has ended; once where JSON is asked for. The exit code says how it ended."""
    settings = settings_.load()
    plan_id, ordinal = task_named(name, settings.owner)
    with graph.opened(settings) as store:
        first = _first(store, settings, plan_id, ordinal)
        if json:
            say_json(_as_json(_frame(first, Here(settings, first.run))))
            return _exit_of(first.run)
        frames = follow(partial(_look, store, first.run.id), Here(settings, first.run), time.sleep)
        run = _show_live(frames) if columns() else _print_all(frames)
    return _exit_of(run)


class Here:
    """The run's screen where its folder lies on this machine; nothing elsewhere."""

    def __init__(self, settings: Settings, run: RunFacts) -> None:
        self._folder = settings.home / "runs" / run.id
        self._runtime = run.runtime
        self._screen: Screen | None = None

    def look(self) -> str | None:
        """What is to be seen, if that has changed; None also where it cannot be seen from here."""
        if self._screen is None:
            if not self._folder.is_dir():
                return None
            from activities.redaction import showable
            from runtimes.folder import RunFolder
            from runtimes.registry import RUNTIMES
            from runtimes.screen import Screen

            self._screen = Screen(RUNTIMES[self._runtime], RunFolder(self._folder), showable)
        return self._screen.look()


def follow(look: Callable[[], Seen], here: Here, pause: Callable[[float], object]) -> Iterator[Frame | Unavailable]:
    """The run whenever something else is to be seen of it, the last time when it has ended.

    A store that is away is told once, and waited for.
    """
    shown: Frame | None = None
    away = False
    while True:
        try:
            frame = _frame(look(), here, shown)
        except Unavailable as error:
            if not away:
                yield error
            away = True
        else:
            away = False
            if shown is None or _told(frame) != _told(shown):
                shown = frame
                yield frame
            if not frame.run.live:
                return
        pause(PAUSE)


def _frame(seen: Seen, here: Here, shown: Frame | None = None) -> Frame:
    """What the store has of a run that has ended holds; of one at work, what is on this machine is newer."""
    if seen.run.live:
        now = datetime.now(UTC)
        deserted = seen.lease_until is not None and seen.lease_until < now
        live = here.look()
        if live is not None:
            return Frame(seen.run, now, live, deserted)
        if shown is not None and shown.at and (seen.at is None or seen.at <= shown.at):
            return Frame(seen.run, shown.at, shown.text, deserted)
        return Frame(seen.run, seen.at, seen.text, deserted)
    return Frame(seen.run, seen.at, seen.text)


def _told(frame: Frame) -> tuple[object, ...]:
    return frame.run.state, frame.text, frame.deserted


def _first(store: Store, settings: Settings, plan_id: str, ordinal: int) -> Seen:
    from domain.identity import task_id
    from store.screens import last_seen
    from store.views import plan_view

    with store.read() as connection:
        seen = last_seen(connection, task_id(plan_id, ordinal))
        if seen is not None:
            return _under_way(seen)
        view = plan_view(connection, plan_id)
    if view is None:
        raise no_such_plan(settings, plan_id)
    task = next((each for each in view.tasks if each.ordinal == ordinal), None)
    if task is None:
        raise NotFound(f"{view.slug} has no task {ordinal}; it has {len(view.tasks)}")
    raise NotFound(f"there is nothing to be seen of task {ordinal} yet: it is {task.state}, and no run of it has begun")


def _look(store: Store, run_id: str) -> Seen:
    from store.screens import seen_of

    with store.read() as connection:
        return _under_way(seen_of(connection, run_id))


def _under_way(seen: Seen) -> Seen:
    """Raises NotFound for a run that could not begin: it stands in the graph, and its task has turned to a person."""
    if seen.run.state is RunState.STARTING and seen.task_state not in SLOTTED:
        plan = seen.run.plan_id
        raise NotFound(
            f"there is nothing to be seen of run {seen.run.id}: it could not begin, and its task is {seen.task_state}; "
            f"`watchbill status {plan}` says why"
        )
    return seen


def _print_all(frames: Iterator[Frame | Unavailable]) -> RunFacts:
    run: RunFacts | None = None
    for frame in frames:
        if isinstance(frame, Unavailable):
            note(f"{frame}; waiting for it")
            continue
        run = frame.run
        say(_head(frame))
        if frame.text:
            say(frame.text.rstrip("\n"))
        say()
    assert run is not None
    return run


def _show_live(frames: Iterator[Frame | Unavailable]) -> RunFacts:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False)
    run: RunFacts | None = None
    with Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        for frame in frames:
            if isinstance(frame, Unavailable):
                live.console.print(Text(clean(f"{frame}; waiting for it"), "yellow"))
                continue
            run = frame.run
            # As many of the last lines as there is room for, beside the head and the cursor's own line.
            lines = clean(frame.text).rstrip("\n").split("\n")[-max(1, console.height - 3) :]
            shown = Text.assemble((_head(frame), "bold"), "\n", "\n".join(lines), no_wrap=True, overflow="ellipsis")
            live.update(shown, refresh=True)
    assert run is not None
    return run


def _head(frame: Frame) -> str:
    run = frame.run
    how = f", {run.confinement}" if run.confinement else ""
    how += f", {run.metering}" if run.metering == Metering.UNMETERED else ""
    which = f"{run.id}, by {run.runtime} on host {run.host}{how}: {run.state}"
    if frame.deserted:
        which += f" when last heard of; no worker looks after it. `watchbill up` on {run.host} tells what became of it"
    why = f" ({run.reason})" if run.reason and not run.live else ""
    seen = ", nothing to be seen yet"
    if frame.at:
        seen = f", as seen at {frame.at.isoformat(timespec='seconds')}" + ("" if frame.text.strip() else ": no output")
    return one_line(f"{which}{why}{seen}")


def _as_json(frame: Frame) -> dict[str, Any]:
    run = asdict(frame.run)
    names = (
        *("task_id", "role", "number", "runtime", "model", "host", "confinement", "metering"),
        *("state", "outcome", "exit_code", "reason", "deserted"),
    )
    at = frame.at.isoformat(timespec="seconds") if frame.at else None
    run["deserted"] = frame.deserted
    return {"run_id": frame.run.id, **{name: run[name] for name in names}, "at": at, "screen": frame.text}


def _exit_of(run: RunFacts) -> Exit:
    return Exit.DONE if run.live or run.state is RunState.FINISHED else Exit.UNFINISHED
