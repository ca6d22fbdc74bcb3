"""The figures of a page: where each bar of the timeline and of the cost chart is. Numbers only; the page draws them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from domain.budget import format_usd
from domain.metering import not_counted
from domain.run import Role
from starter.reporting.facts import Costs, RunReport, TaskReport

WIDTH = 960
_LABELS = 240
_RIGHT = 16
_PLOT = WIDTH - _LABELS - _RIGHT
_ROW = 24
_TOP = 30
"""Room for what stands above the rows of the timeline."""
_BAR = 14
_LEAST = 2.0
"""How wide the shortest run is drawn: it must be seen."""

_VALUES = 110
"""Room for an amount behind its bar."""

_LETTERS = 32

COLOURS = 8
"""Models that are told apart by colour; the page's style has so many."""

_STEPS = (1, 2, 5, 15, 30, 60, 120, 300, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
_TICKS = 8


@dataclass(frozen=True)
class Bar:
    """A rectangle. `kind` is its class in the page's style, `text` what it says when it is pointed at."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    text: str


@dataclass(frozen=True)
class Label:
    """`x` and `y` are where the text's line stands; `whole` is what was too long for it."""

    x: float
    y: float
    text: str
    whole: str = ""


@dataclass(frozen=True)
class Chart:
    """A figure of `WIDTH` by `height`. `text` says in words what is to be seen in it."""

    height: float
    text: str
    labels: tuple[Label, ...]
    bars: tuple[Bar, ...]
    values: tuple[Label, ...] = ()
    ticks: tuple[Label, ...] = ()
    legend: tuple[tuple[str, str], ...] = ()

    @property
    def width(self) -> int:
        return WIDTH


def timeline(tasks: Sequence[TaskReport], zone: ZoneInfo, at: datetime, since: datetime | None) -> Chart | None:
    """When each task's runs were at work; None where no run was, in that time. Runs that go on are drawn up to `at`."""
    rows = [(task, tuple(_spans(task.attempts, at, since))) for task in tasks]
    rows = [(task, spans) for task, spans in rows if spans]
    if not rows:
        return None
    begin = min(span[1] for _, spans in rows for span in spans)
    end = max(span[2] for _, spans in rows for span in spans)
    seconds = max((end - begin).total_seconds(), 0.001)

    def x(moment: datetime) -> float:
        return _LABELS + _PLOT * (moment - begin).total_seconds() / seconds

    bars = [
        _run_bar(run, task, row, x(since_), x(until))
        for row, (task, spans) in enumerate(rows)
        for run, since_, until in spans
    ]
    count = len(bars)
    height = _TOP + _ROW * len(rows) + 8
    return Chart(
        height=height,
        text=f"{count} runs of {len(rows)} tasks, from {_clock(begin, zone)} to {_clock(end, zone)} ({zone.key})",
        labels=tuple(_label(row, f"{task.ordinal}. {task.title}") for row, (task, _) in enumerate(rows)),
        bars=tuple(bars),
        ticks=tuple(Label(round(x(tick), 1), _TOP - 12, text) for tick, text in _ticks(begin, end, zone)),
    )


def cost_chart(costs: Costs) -> Chart | None:
    """What each task or plan cost, by model; None where nothing was spent and nothing is held."""
    if not costs.whole.counted:
        return None
    drawn = [part for part in costs.models if part.spending.calls or part.spending.counted]
    kinds = {part.name: f"model-{number % COLOURS}" for number, part in enumerate(drawn)}
    rows = [part for part in costs.tasks if part.spending.counted]
    most = max(part.spending.counted for part in rows)
    made_of = _by_model(costs)
    room = _PLOT - _VALUES
    bars: list[Bar] = []
    values: list[Label] = []
    for row, part in enumerate(rows):
        left = float(_LABELS)
        for model, (spent, held) in made_of[part.name].items():
            for amount, what in ((spent, "spent"), (held, "held")):
                if amount:
                    width = room * amount / most
                    text = f"{_name(part.name, part.title)}: {format_usd(amount)} {what} with {model or 'no model'}"
                    kind = f"{kinds[model]} {what}"
                    bars.append(Bar(round(left, 1), _bar_y(row, top=0), round(max(width, 0.5), 1), _BAR, kind, text))
                    left += width
        whole = part.spending.counted
        values.append(Label(round(left + 6, 1), _text_y(row, top=0), to_see(whole), format_usd(whole)))
    return Chart(
        height=_ROW * len(rows) + 8,
        text=f"{len(rows)} bars; the longest is {format_usd(most)}, all of them {format_usd(costs.whole.counted)}"
        + (f"; {not_counted(costs.whole.unmetered_runs)}, and is not drawn" if costs.whole.unmetered_runs else ""),
        labels=tuple(_label(row, _name(part.name, part.title), top=0) for row, part in enumerate(rows)),
        bars=tuple(bars),
        values=tuple(values),
        legend=tuple((kind, model or "no model") for model, kind in kinds.items()),
    )


def to_see(nano_usd: int) -> str:
    """An amount in four places: the tables have all of them."""
    return format_usd(round(nano_usd, -5))


def _spans(
    runs: Iterable[RunReport], at: datetime, since: datetime | None
) -> Iterable[tuple[RunReport, datetime, datetime]]:
    for run in runs:
        if run.began_at:
            began = datetime.fromisoformat(run.began_at)
            ended = datetime.fromisoformat(run.ended_at) if run.ended_at else max(at, began)
            if since is None or ended >= since:
                yield run, began if since is None else max(began, since), ended


def _run_bar(run: RunReport, task: TaskReport, row: int, left: float, right: float) -> Bar:
    took = "at work" if run.seconds is None else f"{run.seconds:.1f} s"
    by = "" if run.role == Role.CHECK else f" by {run.runtime}"
    text = f"{task.ordinal}. {run.role} {run.number}{by}: {run.outcome or run.state}, {took}"
    # A run at the very end may not stick out.
    width = max(_LEAST, right - left)
    kind = f"{run.role} {run.state}"
    return Bar(round(min(left, WIDTH - _RIGHT - width), 1), _bar_y(row), round(width, 1), _BAR, kind, text)


def _ticks(begin: datetime, end: datetime, zone: ZoneInfo) -> Iterable[tuple[datetime, str]]:
    """Round moments of the owner's clock between these two, few enough to be read."""
    seconds = (end - begin).total_seconds()
    days = int(seconds // (86_400 * _TICKS)) + 1
    step = next((each for each in _STEPS if seconds / each <= _TICKS), 86_400 * days)
    first = begin.astimezone(zone)
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    number = int((first - midnight).total_seconds() // step)
    before = None
    while (tick := midnight + timedelta(seconds=step * number)) <= end:
        if tick >= begin:
            clock = f"{tick:%H:%M:%S}" if step < 60 else f"{tick:%H:%M}"
            yield tick, clock if before == tick.date() else f"{tick:%d %b} {clock}"
            before = tick.date()
        number += 1


def _by_model(costs: Costs) -> Mapping[str, Mapping[str, list[int]]]:
    """What each bar is made of: every model, in the legend's order, with what was spent and what is held."""
    found = {part.name: {model.name: [0, 0] for model in costs.models} for part in costs.tasks}
    for cell in costs.cells:
        amounts = found[cell.name][cell.model]
        amounts[0] += cell.spending.spent_nano_usd or 0
        amounts[1] += cell.spending.held_nano_usd
    return found


def _name(name: str, title: str) -> str:
    return f"{name}. {title}" if title else name


def _label(row: int, text: str, top: int = _TOP) -> Label:
    flat = " ".join(text.split())
    short = flat if len(flat) <= _LETTERS else f"{flat[: _LETTERS - 1]}…"
    return Label(_LABELS - 10, _text_y(row, top), short, flat)


def _bar_y(row: int, top: int = _TOP) -> int:
    return top + _ROW * row + (_ROW - _BAR) // 2


def _text_y(row: int, top: int = _TOP) -> int:
    return top + _ROW * row + _ROW // 2 + 4


def _clock(at: datetime, zone: ZoneInfo) -> str:
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M:%S}"
