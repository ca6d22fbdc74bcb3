"""What was measured, what it is held against, and the one table in which all of it is printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One line of the table. `ours` and `against` are in `unit`.

    `most` is the goal: the largest ratio, or the largest value of ours where nothing is set against it.
    """

    what: str
    unit: str
    ours: float
    against: float | None = None
    most: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.ours / self.against if self.against else None

    @property
    def missed(self) -> bool:
        reached = self.ours if self.against is None else self.ratio
        return self.most is not None and reached is not None and reached > self.most

    @property
    def verdict(self) -> str:
        if self.most is None:
            return ""
        return "over" if self.missed else "ok"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio, "verdict": self.verdict}


def show(figures: Sequence[Figure]) -> None:
    """The table, and in plain words which goals were missed."""
    rows = [("what", "ours", "against", "ratio", "goal", ""), *map(_row, figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *others = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join((first.strip().ljust(widths[0]), *others)).rstrip())
    missed = [figure for figure in figures if figure.missed]
    print()
    for figure in missed:
        reached = f"{figure.ratio:.2f} times" if figure.ratio else _value(figure.ours, figure.unit)
        print(f"MISSED  {figure.what}: {reached}, and the goal is at most {_goal(figure)}")
    if not missed:
        print("Every goal was reached.")


def _row(figure: Figure) -> tuple[str, ...]:
    against = "" if figure.against is None else _value(figure.against, figure.unit)
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    return figure.what, _value(figure.ours, figure.unit), against, ratio, _goal(figure), figure.verdict


def _goal(figure: Figure) -> str:
    if figure.most is None:
        return ""
    return _value(figure.most, figure.unit) if figure.against is None else f"{figure.most:g}x"


def _value(value: float, unit: str) -> str:
    places = 0 if value >= 100 else 1 if value >= 10 else 2 if unit != "s" else 3
    return f"{value:.{places}f} {unit}".strip()
