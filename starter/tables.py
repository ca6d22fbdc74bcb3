"""What a person reads on a terminal: plans and boxes as tables. Rich is imported here and only for these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from domain import confinement, metering
from domain.budget import format_usd
from domain.decision import Revised
from domain.difference import in_words
from domain.plan import PlanSpec, TaskSpec
from domain.policy import UNPROVEN
from domain.task import TaskState
from domain.view import PlanView, TaskView, counts
from domain.wording import counted
from starter.hints import Waiting, waiting
from starter.lines import PlanLine
from starter.output import clean, columns, in_full, one_line
from starter.retrying import Retry

_COLOURS = {
    "merged": "green",
    "no_changes": "green",
    "done": "green",
    "completed": "green",
    "failed": "red",
    "closed": "red",
    "cancelled": "red",
    "paused": "yellow",
    "in_review": "cyan",
    "awaiting_confirmation": "yellow",
}


TABLE_WIDTH = 60
"""Columns of a terminal below which a table would break within words."""

_WAITS = "waits for a person"


def show_boxes(spec: PlanSpec) -> None:
    """The boxes of a document that is published or about to be."""
    rows = [(str(task.ordinal), one_line(task.title), _after(task.after), _by(task)) for task in spec.tasks]
    _print_table(("#", "task", "after", "by"), rows)
    show_metering(spec.expected_metering)


def show_metering(told: str) -> None:
    """What whoever says yes has to know of a plan's agents; nothing where they are metered."""
    if said := metering.sentence(told):
        _print_in_full("", said, coloured=len(said))


def show_difference(revised: Revised) -> None:
    """What a revision changes, to the last line of every text."""
    for line in in_words(revised.difference, whole=True):
        _print(Text(clean(line)))


def show_plan(view: PlanView, retries: Iterable[Retry] = ()) -> None:
    """A plan with every box, what is tried again, what waits for a person, and what to type about it."""
    gate = ", paused" if view.paused else ""
    head = Text.assemble(
        (one_line(view.title), "bold"), "  ", (f"{view.state}{gate}", _COLOURS.get(view.state, "")),
    )  # fmt: skip
    _print(head)
    _print(Text(f"{view.repository} → {view.base} · merge {view.merge} · {view.plan_id}", "dim"))
    _print_table(("#", "task", "state", "runs", "pull request"), [_row(task) for task in view.tasks], state=2)
    for task in view.tasks:
        if task.reason and task.state in (TaskState.FAILED, TaskState.CLOSED):
            _print_in_full(f"#{task.ordinal} {task.state}:", task.reason)
    for each in retries:
        _print_in_full(f"#{each.task} waiting:", each.text)
    show_waiting(waiting(view))
    show_metering(view.metering)
    for line in view.proposed.lines if view.proposed else ():
        _print(Text(f"    {clean(line)}"))
    spent = f" {format_usd(view.spent_nano_usd)} spent." if view.spent_nano_usd else ""
    chain = f"{counted(view.seq, 'receipt')}, {view.head[:12]}"
    _print(Text(f"{summary(view)}. {confinement.sentence(view.confinement)}{spent} {chain}.", "dim"))


def show_waiting(waits: Iterable[Waiting]) -> None:
    for each in waits:
        whom = "plan" if each.task is None else f"#{each.task}"
        named = f" ({each.question_id})" if each.question_id else ""
        _print_in_full(f"{_WAITS}  {whom}{named}:", each.text, coloured=len(_WAITS))
        for command in each.commands:
            _print(Text(f"    {command}"))


def show_plans(lines: Iterable[PlanLine]) -> None:
    seen = list(lines)
    rows = [
        (each.plan_id, each.state, "needed" if each.needs_person else "", each.published or each.in_temporal_since)
        for each in seen
    ]
    since = "published" if any(each.published for each in seen) else "in Temporal since"
    _print_table(("plan", "state", "person", since), rows, state=1)


def show_findings(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    _print_table(names, rows, state=1)


def summary(view: PlanView) -> str:
    """How many boxes are in which state, in words."""
    return ", ".join(f"{count} {state}" for state, count in counts(view).items()) or "no boxes"


def _row(task: TaskView) -> tuple[str, ...]:
    state = f"{task.state} ({UNPROVEN})" if task.proof == UNPROVEN else task.state
    title = f"~~{task.title}~~" if task.struck else task.title
    return str(task.ordinal), one_line(title), state, str(task.runs or ""), task.pull_url


def _by(box: TaskSpec) -> str:
    return "struck out" if box.struck else "done" if box.done else box.runtime


def _after(ordinals: tuple[int, ...]) -> str:
    return ", ".join(map(str, ordinals))


def _print_table(names: Sequence[str], rows: Iterable[Sequence[str]], state: int | None = None) -> None:
    """Rows under their columns' names; one after the other where the terminal is too narrow for columns."""
    if (columns() or TABLE_WIDTH) >= TABLE_WIDTH:
        _print(_table(names, rows, state))
        return
    for row in rows:
        _print_in_full("", "  ".join(filter(None, row)))


def _table(names: Sequence[str], rows: Iterable[Sequence[str]], state: int | None) -> Table:
    """`state` is the index of the column that is coloured by what it says."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, name in enumerate(names):
        table.add_column(name, overflow="fold", no_wrap=number == state)
    for row in rows:
        cells = [Text(clean(cell)) for cell in row]
        if state is not None:
            cells[state].stylize(_COLOURS.get(row[state], ""))
        table.add_row(*cells)
    return table


def _print_in_full(label: str, text: str, coloured: int = 0) -> None:
    """Somebody's words behind a label; `coloured` is how much of the label stands out."""
    first, *rest = map(Text, in_full(f"{label} {text}".lstrip()))
    first.stylize("yellow", 0, coloured)
    for line in (first, *rest):
        _print(line)


def _print(what: Table | Text) -> None:
    # Nothing is folded for a pipe; a table is as wide as what is in it.
    Console(width=columns() or 10_000, highlight=False, soft_wrap=False).print(what, soft_wrap=isinstance(what, Text))
