"""What machines are told of costs."""

from __future__ import annotations

from starter.costs import with_units
from store.costs import ModelCosts, Money, PlanCosts, Request, RunCosts, TaskCosts


def test_every_amount_is_told_with_its_unit_and_with_what_is_left_of_it() -> None:
    model = ModelCosts("a-model", 3, 1, 70, {"input": 5, "output": 2}, (Request("req_1", 40),))
    run = RunCosts("p-1-author-1", Money(10, 70, 100), (model,))
    task = TaskCosts("p-1", 1, "One", Money(10, 70, 100), (run,))
    told = with_units(PlanCosts("p", Money(10, 70), "2026-03-01", "UTC", Money(0, 80, 50), (task,)))
    money = {"held_nano_usd": 10, "spent_nano_usd": 70, "cap_nano_usd": 100, "left_nano_usd": 20}
    assert told == {
        "plan": "p",
        "money": {**money, "cap_nano_usd": None, "left_nano_usd": None},
        "day": "2026-03-01",
        "zone": "UTC",
        "day_money": {"held_nano_usd": 0, "spent_nano_usd": 80, "cap_nano_usd": 50, "left_nano_usd": 0},
        "tasks": [
            {
                "task": "p-1",
                "ordinal": 1,
                "title": "One",
                "money": money,
                "runs": [
                    {
                        "run": "p-1-author-1",
                        "money": money,
                        "models": [
                            {
                                "model": "a-model",
                                "calls": 3,
                                "unmeasured": 1,
                                "spent_nano_usd": 70,
                                "tokens": {"input": 5, "output": 2},
                                "requests": [{"id": "req_1", "spent_nano_usd": 40}],
                            }
                        ],
                    }
                ],
            }
        ],
    }
