"""The rules behind every timeout, and that workflows and activities keep to them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from workflows import options

ROOT = Path(options.__file__).parents[1]
NAMED: dict[str, dict[str, Any]] = {
    name: value for name, value in vars(options).items() if isinstance(value, dict) and name.isupper()
}
EXECUTES = re.compile(r"(execute|start)_(local_)?activity(_method|_class)?")
TIMING = re.compile(r".*(_timeout|retry_policy)")
SAYS_WHAT_A_REPEAT_DOES = re.compile(r"\b(repeat(s|ed)?|again|twice|once|a read)\b|^Read ", re.IGNORECASE)

every_option = pytest.mark.parametrize("how", NAMED.values(), ids=NAMED)


def modules(*rooms: str) -> Iterator[tuple[Path, ast.Module]]:
    for room in rooms:
        for file in sorted((ROOT / room).glob("*.py")):
            yield file, ast.parse(file.read_text(), str(file))


def calls(tree: ast.AST, name: re.Pattern[str]) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name.fullmatch(called):
                yield node


def activity_methods() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for file, tree in modules("activities"):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
                ast.unparse(decorator).startswith("activity.defn") for decorator in node.decorator_list
            ):
                yield f"{file.stem}.{node.name}", node


def heartbeats(method: ast.AST, source: ast.Module) -> bool:
    """Whether the method, or what it calls in its own module, heartbeats."""
    reached, ahead = set[str](), [method]
    functions = {n.name: n for n in ast.walk(source) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    while ahead:
        for node in ast.walk(ahead.pop()):
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            if name in {"heartbeat", "heartbeating", "in_thread"}:
                return True
            if name in functions and name not in reached:
                reached.add(name)
                ahead.append(functions[name])
    return False


def uses_of(option: str) -> set[str]:
    """The activities that workflows call with an option, as `Class.method`."""
    used = set()
    for _, tree in modules("workflows"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and any(
                ast.unparse(part) == f"options.{option}"
                for part in (*node.args, *(keyword.value for keyword in node.keywords))
            ):
                used |= {ast.unparse(arg) for arg in node.args if re.fullmatch(r"[A-Z]\w+\.\w+", ast.unparse(arg))}
    return {use for use in used if not use.startswith("options.")}


ACTIVITIES = dict(activity_methods())


@every_option
def test_every_activity_has_a_bound_on_one_attempt(how: dict[str, Any]) -> None:
    assert how["start_to_close_timeout"] > timedelta()


@every_option
def test_whatever_may_take_long_has_a_heartbeat_because_a_cancel_comes_through_it(
    how: dict[str, Any],
) -> None:
    if how["start_to_close_timeout"] > timedelta(seconds=60):
        assert how["heartbeat_timeout"] <= timedelta(seconds=60)


@every_option
def test_an_activity_is_not_retried_faster_and_faster(how: dict[str, Any]) -> None:
    policy = how.get("retry_policy")
    assert policy is None or policy.backoff_coefficient >= 1


def test_a_move_as_a_local_activity_is_short_and_handed_on_after_two_tries() -> None:
    assert options.LOCAL["start_to_close_timeout"] <= timedelta(seconds=2)
    assert options.LOCAL["retry_policy"].maximum_attempts == 2
    assert options.STORE["retry_policy"].maximum_attempts == 0
    assert "schedule_to_close_timeout" not in options.STORE


@pytest.mark.parametrize("option", ["GIT", "RUN"])
def test_work_for_one_host_notices_that_nobody_polls_its_queue(option: str) -> None:
    assert NAMED[option]["schedule_to_start_timeout"] <= timedelta(minutes=1)


def test_watching_a_run_outlasts_the_longest_run_that_a_plan_may_ask_for() -> None:
    from domain.attributes import MAX_TIMEOUT

    assert options.RUN["start_to_close_timeout"] > timedelta(seconds=MAX_TIMEOUT)


@pytest.mark.parametrize("option", [name for name, how in NAMED.items() if "heartbeat_timeout" in how])
def test_what_is_called_with_a_heartbeat_timeout_heartbeats(option: str) -> None:
    """Else it times out however well it goes, and its first attempt runs on beside the next."""
    sources = {file.stem: tree for file, tree in modules("activities")}
    used = uses_of(option)
    assert used, f"no workflow uses {option}"
    for use in used:
        name = next(name for name in ACTIVITIES if name.split(".")[1] == use.split(".")[1])
        assert heartbeats(ACTIVITIES[name], sources[name.split(".")[0]]), f"{use} never heartbeats"


def test_workflows_run_activities_with_named_options_only() -> None:
    for file, tree in modules("workflows"):
        for call in calls(tree, EXECUTES):
            spread = [ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg is None]
            named = [value for value in spread if value.removeprefix("options.") in NAMED or value == "how"]
            assert named == spread != [], f"{file.name}:{call.lineno} names no options"


def test_what_is_passed_on_as_options_is_named_too() -> None:
    """`on_host` and `best_effort` take the options from whoever calls them."""
    for file, tree in modules("workflows"):
        for call in calls(tree, re.compile("on_host|best_effort")):
            given = [ast.unparse(part) for part in (*call.args, *(keyword.value for keyword in call.keywords))]
            assert any(part.removeprefix("options.") in NAMED for part in given), f"{file.name}:{call.lineno}"


def test_no_timeout_or_retry_policy_is_set_anywhere_but_among_the_options() -> None:
    for file, tree in modules("workflows", "activities"):
        if file.name == "options.py":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                set_here = [k.arg for k in node.keywords if k.arg and TIMING.fullmatch(k.arg)]
                assert set_here == [], f"{file.name}:{node.lineno} sets {set_here}"
            elif isinstance(node, ast.Name):
                assert node.id != "RetryPolicy", f"{file.name}:{node.lineno}"


def test_every_option_is_used() -> None:
    text = "".join(file.read_text() for file, _ in modules("workflows"))
    assert [name for name in NAMED if f"options.{name}" not in text] == []


@pytest.mark.parametrize("name", sorted(ACTIVITIES))
def test_every_activity_says_what_a_repeat_of_it_does(name: str) -> None:
    assert SAYS_WHAT_A_REPEAT_DOES.search(ast.get_docstring(ACTIVITIES[name]) or ""), name


def test_no_workflow_log_overwrites_what_a_log_record_is_made_of() -> None:
    """`logging` raises KeyError for such a name, which fails the workflow's task again and again."""
    import logging

    taken = {*vars(logging.makeLogRecord({})), "message", "asctime"}
    for file, tree in modules("workflows", "activities"):
        for call in calls(tree, re.compile("debug|info|warning|error|exception")):
            for keyword in call.keywords:
                if keyword.arg == "extra" and isinstance(keyword.value, ast.Dict):
                    names = {key.value for key in keyword.value.keys if isinstance(key, ast.Constant)}
                    assert not names & taken, f"{file.name}:{call.lineno}"


def test_no_workflow_gathers_local_activities() -> None:
    """Side by side they end in one order and replay in another."""
    for file, tree in modules("workflows"):
        for call in calls(tree, re.compile("gather|wait|as_completed|create_task")):
            gathered = ast.unparse(call)
            assert "local" not in gathered, f"{file.name}:{call.lineno}"
            assert "facts(" not in gathered, f"{file.name}:{call.lineno}"
