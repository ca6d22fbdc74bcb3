"""What was measured, what it is held against, and the one table in which all of it is printed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One line of the table. `ours` and `against` are in `unit`.

    `most` and `least` are the goal: the largest and the smallest ratio, or value of ours where nothing is set
    against it.
    """

    what: str
    unit: str
    ours: float
    against: float | None = None
    most: float | None = None
    least: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.ours / self.against if self.against else None

    @property
    def missed(self) -> bool:
        """Whether the goal was not reached; nor is it where what was measured gives no number to hold against it."""
        if self.most is None and self.least is None:
            return False
        reached = self.ours if self.against is None else self.ratio
        if reached is None or math.isnan(reached):
            return True
        return reached > (math.inf if self.most is None else self.most) or reached < (
            -math.inf if self.least is None else self.least
        )

    @property
    def verdict(self) -> str:
        if self.most is None and self.least is None:
            return ""
        return "missed" if self.missed else "ok"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio, "verdict": self.verdict}


@dataclass(frozen=True)
class Skipped:
    """What was not measured, and why not. No goal of it is missed."""

    what: str
    why: str
    missed: bool = False

    def as_json(self) -> dict[str, Any]:
        return {"what": self.what, "verdict": "skipped", "why": self.why}


Row = Figure | Skipped


def show(rows: Sequence[Row]) -> None:
    """The table, and in plain words which goals were missed and what was not measured."""
    figures = [row for row in rows if isinstance(row, Figure)]
    table = [("what", "ours", "against", "ratio", "goal", ""), *map(_row, figures)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        first, *others = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join((first.strip().ljust(widths[0]), *others)).rstrip())
    missed = [figure for figure in figures if figure.missed]
    print()
    for figure in missed:
        reached = f"{figure.ratio:.2f} times" if figure.ratio else _value(figure.ours, figure.unit)
        print(f"MISSED  {figure.what}: {reached}, and the goal is {_goal(figure)}")
    skipped = [row for row in rows if isinstance(row, Skipped)]
    for row_ in skipped:
        print(f"SKIPPED  {row_.what}: {row_.why}")
    if not missed:
        print("Every goal that was measured was reached." if skipped else "Every goal was reached.")


def _row(figure: Figure) -> tuple[str, ...]:
    against = "" if figure.against is None else _value(figure.against, figure.unit)
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    return figure.what, _value(figure.ours, figure.unit), against, ratio, _goal(figure), figure.verdict


def _goal(figure: Figure) -> str:
    bounds = (("at most", figure.most), ("at least", figure.least))
    return ", ".join(f"{word} {_bound(figure, bound)}" for word, bound in bounds if bound is not None)


def _bound(figure: Figure, bound: float) -> str:
    return _value(bound, figure.unit) if figure.against is None else f"{bound:.3g}x"


def _value(value: float, unit: str) -> str:
    places = 0 if value >= 100 else 1 if value >= 10 else 2 if unit != "s" else 3
    return f"{value:.{places}f} {unit}".strip()
