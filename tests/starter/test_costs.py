"""What machines are told of costs."""

from __future__ import annotations

from starter.costs import lines, with_units
from store.costs import ModelCosts, Money, PlanCosts, Request, RoleCosts, RunCosts, TaskCosts

TOKENS = {"input": 5, "output": 2, "cache_read": 0}
MODEL = ModelCosts("a-model", 3, 1, 70, 10, TOKENS, (Request("req_1", 40),))
RUN = RunCosts("p-1-author-1", "author", Money(10, 70, 100), (MODEL,))
COSTS = PlanCosts(
    "p", Money(10, 70), "2026-03-01", "UTC", Money(0, 80, 50),
    tasks=(TaskCosts("p-1", 1, "One", Money(10, 70, 100), (RUN,)),),
    roles=(RoleCosts("author", 3, 1, 70, 10, TOKENS),),
    models=(ModelCosts("a-model", 3, 1, 70, 10, TOKENS),),
)  # fmt: skip


def test_what_each_role_and_each_model_came_to_is_told_before_the_tasks() -> None:
    told = list(lines(COSTS))
    came_to = "3 calls, 1 without usage, 0.00000007 USD, 0.00000001 USD held; tokens: 5 input, 2 output"
    assert told[1:3] == [f"  role author: {came_to}", f"  model a-model: {came_to}"]
    assert told[3].startswith("  1. One: ")
    assert f"       a-model: {came_to}" in told


def test_every_amount_is_told_with_its_unit_and_with_what_is_left_of_it() -> None:
    told = with_units(COSTS)
    money = {"held_nano_usd": 10, "spent_nano_usd": 70, "cap_nano_usd": 100, "left_nano_usd": 20}
    came_to = {"calls": 3, "unmeasured": 1, "spent_nano_usd": 70, "held_nano_usd": 10, "tokens": TOKENS}
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
                        "role": "author",
                        "money": money,
                        "models": [
                            {
                                "model": "a-model",
                                **came_to,
                                "requests": [{"id": "req_1", "spent_nano_usd": 40}],
                            }
                        ],
                    }
                ],
            }
        ],
        "roles": [{"role": "author", **came_to}],
        "models": [{"model": "a-model", **came_to, "requests": []}],
    }
