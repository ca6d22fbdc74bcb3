"""How a caller is told that there is too little money: which ceiling, what is left of it, and how to raise it."""

from __future__ import annotations

from domain.budget import format_usd
from domain.ledger import CeilingKind
from store.ledger import Ask, Short


def told(short: Short, ask: Ask) -> str:
    """One sentence for a person: an agent cannot do anything about it, and is not to try."""
    left, cap, needed = (format_usd(max(0, amount)) for amount in (short.left, short.cap, ask.least))
    return (
        f"{_OF[short.ceiling].format(ask=ask)} has {left} left of {cap}, "
        f"and this call may need {needed}; {_RAISED[short.ceiling].format(ask=ask)}"
    )


_OF = {
    CeilingKind.RUN: "the budget of run {ask.run}",
    CeilingKind.TASK: "the budget of task {ask.task}",
    CeilingKind.PLAN: "the budget of plan {ask.plan}",
    CeilingKind.DAY: "today's budget of {ask.owner}",
}
_RAISED = {
    CeilingKind.RUN: "which had what its task had left as it began, or what the plan gives a review: raise the task's "
    'with `watchbill approve {ask.task} --budget "… USD"`, a review\'s by another `review_budget` and '
    "`watchbill revise`, or resume the task where that was done meanwhile",
    CeilingKind.TASK: 'raise it with `watchbill approve {ask.task} --budget "… USD"`',
    CeilingKind.PLAN: 'raise it with `watchbill approve {ask.task} --plan-budget "… USD"`',
    CeilingKind.DAY: 'raise it with `watchbill budget --day "… USD"`, or go on tomorrow',
}
