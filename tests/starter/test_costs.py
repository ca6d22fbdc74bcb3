"""What people and machines are told of costs."""

from __future__ import annotations

import pytest

from domain.told import ToldUsage
from starter.costs import in_words, lines, with_units
from store.costs import ModelCosts, Money, PlanCosts, Request, RoleCosts, RunCosts, TaskCosts

TOKENS = {"input": 5, "output": 2, "cache_read": 0}
MODEL = ModelCosts("a-model", 3, 1, 70, 10, TOKENS, (Request("req_1", 40),))
RUN = RunCosts("p-1-author-1", "author", Money(10, 70, 100), (MODEL,), "metered")
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
    money = {"held_nano_usd": 10, "spent_nano_usd": 70, "cap_nano_usd": 100, "unmetered_runs": 0, "left_nano_usd": 20}
    day = {"held_nano_usd": 0, "spent_nano_usd": 80, "cap_nano_usd": 50, "unmetered_runs": 0, "left_nano_usd": 0}
    came_to = {
        "calls": 3, "unmeasured": 1, "spent_nano_usd": 70, "held_nano_usd": 10, "tokens": TOKENS, "unmetered_runs": 0,
    }  # fmt: skip
    assert told == {
        "plan": "p",
        "money": {**money, "cap_nano_usd": None, "left_nano_usd": None},
        "day": "2026-03-01",
        "zone": "UTC",
        "day_money": day,
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
                        "metering": "metered",
                        "told": None,
                    }
                ],
            }
        ],
        "roles": [{"role": "author", **came_to}],
        "models": [{"model": "a-model", **came_to, "requests": []}],
    }


CENT = 10_000_000


@pytest.mark.parametrize(
    ("money", "said"),
    [
        (Money(0, 0), "0.00 USD spent"),
        (Money(CENT, 2 * CENT, 5 * CENT), "0.02 USD spent, 0.01 USD held; 0.02 USD of 0.05 USD left"),
        (Money(0, 0, None, 1), "what 1 unmetered run cost is not known"),
        (Money(CENT, 0, None, 1), "0.01 USD held; what 1 unmetered run cost is not known"),
        (Money(0, CENT, None, 2), "0.01 USD spent; what 2 unmetered runs cost is not known"),
        (Money(0, 0, CENT, 2), "what 2 unmetered runs cost is not known; 0.01 USD of 0.01 USD left"),
    ],
)
def test_what_is_not_known_is_never_said_to_be_nothing(money: Money, said: str) -> None:
    assert in_words(money) == said
    assert with_units(money)["spent_nano_usd"] == (money.spent or (None if money.unmetered_runs else 0))


def test_a_run_that_is_unmetered_is_told_as_such_a_one() -> None:
    run = RunCosts("p-1-author-1", "author", Money(0, 0, None, 1), (), "unmetered")
    task = TaskCosts("p-1", 1, "One", Money(0, 0, None, 1), (run,))
    found = PlanCosts(
        "p", Money(0, 0, None, 1), "2026-03-01", "UTC", Money(0, 0, 5 * CENT, 1), (task,),
        roles=(RoleCosts("author", 0, 0, None, 0, {}, 1),),
        models=(ModelCosts("a-model", 3, 1, 70, 0, TOKENS, unmetered_runs=1),),
    )  # fmt: skip
    unknown = "what 1 unmetered run cost is not known"
    assert list(lines(found)) == [
        "p: what 1 unmetered run cost is not known",
        "  role author: what 1 unmetered run cost is not known",
        f"  model a-model: 3 calls, 1 without usage, 0.00000007 USD; tokens: 5 input, 2 output; {unknown}",
        "  1. One: what 1 unmetered run cost is not known",
        "     author-1: unmetered, and what it cost is not known",
        "2026-03-01 in UTC, over all plans: what 1 unmetered run cost is not known; 0.05 USD of 0.05 USD left",
    ]
    assert with_units(found)["roles"][0]["spent_nano_usd"] is None


def test_what_a_cli_says_of_itself_stands_beneath_its_run_as_unverified_and_in_no_amount() -> None:
    told = ToldUsage("codex", {"input": 3000, "output": 150})
    run = RunCosts("p-1-author-1", "author", Money(0, 0, None, 1), metering="unmetered", told=told)
    task = TaskCosts("p-1", 1, "One", Money(0, 0, None, 1), (run,))
    found = list(lines(PlanCosts("p", Money(0, 0, None, 1), "2026-03-01", "UTC", Money(0, 0, None, 1), (task,))))
    unknown, taken = "what 1 unmetered run cost is not known", "3000 input, 150 output tokens"
    assert found == [
        f"p: {unknown}",
        f"  1. One: {unknown}",
        "     author-1: unmetered, and what it cost is not known",
        f"       unverified: codex says of itself that it took {taken} in its session so far; in no sum",
        f"2026-03-01 in UTC, over all plans: {unknown}",
    ]
