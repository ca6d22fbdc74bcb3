"""A goal is missed on the side on which it was set, and never reached by what could not be measured."""

from __future__ import annotations

import pytest

from tests.bench.figures import Figure, Skipped, show


@pytest.mark.parametrize(
    ("figure", "missed"),
    [
        (Figure("calls", "/s", 50, 100, least=0.5), False),
        (Figure("calls", "/s", 49, 100, least=0.5), True),
        (Figure("CPU", "ms", 2, 1, most=2), False),
        (Figure("CPU", "ms", 2.1, 1, most=2), True),
        (Figure("overshoot", "USD", 0, most=0), False),
        (Figure("overshoot", "USD", 0.01, most=0), True),
        (Figure("added", "ms", 1, 0, most=0.125), True),
        (Figure("CPU", "ms", float("nan"), 1, most=2), True),
        (Figure("CPU", "ms", 100, 1), False),
    ],
)
def test_a_goal_is_missed_on_the_side_on_which_it_was_set(figure: Figure, *, missed: bool) -> None:
    assert figure.missed is missed


def test_what_was_not_measured_is_said_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    show([Figure("CPU", "ms", 1, 1, most=2), Skipped("a gateway", "it is not installed")])
    said = capsys.readouterr().out
    assert "SKIPPED  a gateway: it is not installed" in said
    assert "Every goal that was measured was reached." in said
