"""What a plan has cost, as a person reads it and as machines do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from datetime import UTC, datetime
from typing import Any

from domain.budget import format_usd
from domain.metering import not_counted
from domain.wording import counted
from starter import graph
from starter import settings as settings_
from starter.exits import Exit
from starter.looking import no_such_plan
from starter.names import plan_named
from starter.output import one_line, say, say_json
from store.costs import ModelCosts, Money, PlanCosts, RoleCosts, RunCosts, plan_costs


def costs(name: str, *, json: bool) -> Exit:
    settings = settings_.load()
    plan_id = plan_named(name, settings.owner)
    with graph.opened(settings) as store, store.read() as connection:
        found = plan_costs(connection, plan_id, datetime.now(UTC))
    if found is None:
        raise no_such_plan(settings, plan_id)
    if json:
        say_json(with_units(found))
    else:
        for line in lines(found):
            say(line)
    return Exit.DONE


def lines(found: PlanCosts) -> Iterator[str]:
    """The costs from the plan down to each run's models, by role and by model, and the day over all plans."""
    yield f"{found.plan}: {in_words(found.money)}"
    for role in found.roles:
        yield f"  role {role.role}: {_calls(role)}"
    for model in found.models:
        yield f"  model {model.model}: {_calls(model)}"
    for task in found.tasks:
        yield "  " + one_line(f"{task.ordinal}. {task.title}: {in_words(task.money)}", 200)
        for run in task.runs:
            yield from _run_lines(run, task.task)
    yield f"{found.day} in {found.zone}, over all plans: {in_words(found.day_money)}"


def in_words(money: Money) -> str:
    spent = "" if money.known is None else f"{format_usd(money.known)} spent"
    held = f"{format_usd(money.held)} held" if money.held else ""
    left = "" if money.cap is None else f"{format_usd(money.left or 0)} of {format_usd(money.cap)} left"
    return "; ".join(filter(None, (", ".join(filter(None, (spent, held))), not_counted(money.unmetered_runs), left)))


def _run_lines(run: RunCosts, task: str) -> Iterator[str]:
    said = "unmetered, and what it cost is not known" if run.money.unmetered_runs else in_words(run.money)
    yield f"     {run.run.removeprefix(f'{task}-')}: {said}"
    if run.told:
        yield f"       {run.told.sentence}"
    for model in run.models:
        yield f"       {model.model}: {_calls(model)}"


def _calls(part: ModelCosts | RoleCosts) -> str:
    unknown = not_counted(part.unmetered_runs)
    if unknown and not part.calls and not part.held:
        return unknown
    tokens = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in part.tokens.items() if count)
    unmeasured = f", {part.unmeasured} without usage" if part.unmeasured else ""
    spent = "" if part.spent is None else f", {format_usd(part.spent)}"
    held = f", {format_usd(part.held)} held" if part.held else ""
    told = f"{counted(part.calls, 'call')}{unmeasured}{spent}{held}; tokens: {tokens or 'none'}"
    return f"{told}; {unknown}" if unknown else told


_AMOUNTS = ("held", "spent", "cap", "left")


def with_units(value: Any) -> Any:
    """For machines: every amount under a name that says its unit, and what is left beside it, so that none reckons."""
    if isinstance(value, Money):
        return with_units({**vars(value), "spent": value.known, "left": value.left})
    if is_dataclass(value) and not isinstance(value, type):
        return with_units(vars(value))
    if isinstance(value, Mapping):
        return {f"{key}_nano_usd" if key in _AMOUNTS else key: with_units(each) for key, each in value.items()}
    return [with_units(each) for each in value] if isinstance(value, list | tuple) else value
