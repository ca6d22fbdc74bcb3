"""What is known to break replay, or to keep a workflow from ever failing, is not in the workflows' text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

WORKFLOWS = sorted(Path(__file__).parents[2].glob("workflows/*.py"))

FORBIDDEN_MODULES = {"os", "random", "secrets", "socket", "subprocess", "threading", "time"}
FORBIDDEN_CALLS = {
    "hash": "differs from process to process",
    "id": "differs from process to process",
    "open": "is not replayed",
    "print": "prints again at every replay",
    "asyncio.wait": "answers in an order of its own",
    "asyncio.as_completed": "answers in an order of its own",
    "datetime.now": "is not replayed; use workflow.now()",
    "datetime.utcnow": "is not replayed; use workflow.now()",
    "uuid.uuid4": "is not replayed; use workflow.uuid4()",
}
OURS = {"ApplicationError", "HostGone", "MovedOn"}
"""What a workflow may raise: Temporal's own, and what its own modules catch."""

LOCAL = {"execute_local_activity", "execute_local_activity_method"}


def dotted(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def is_set(node: ast.expr) -> bool:
    named = isinstance(node, ast.Call) and dotted(node.func) in ("set", "frozenset")
    return named or isinstance(node, ast.Set | ast.SetComp)


def iterated(tree: ast.AST) -> Iterator[ast.expr]:
    """What loops and comprehensions go through, and what becomes a list or a tuple as it comes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            yield node.iter
        if isinstance(node, ast.Call) and dotted(node.func) in ("list", "tuple", "iter", "next", "map", "zip"):
            yield from node.args


def functions(trees: dict[Path, ast.Module]) -> dict[str, ast.AST]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name: node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, kinds)}


def uses_local_activities(trees: dict[Path, ast.Module]) -> set[str]:
    """The names of functions that come to a local activity, however far down."""
    known = functions(trees)
    found = set(LOCAL)
    while True:
        more = {
            name
            for name, body in known.items()
            if any(dotted(call.func).rpartition(".")[2] in found for call in calls(body))
        }
        if more <= found:
            return found
        found |= more


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in WORKFLOWS}


def test_nothing_that_is_not_replayed_is_called(trees: dict[Path, ast.Module]) -> None:
    found = [
        f"{path.name}:{call.lineno}: {name} {FORBIDDEN_CALLS[name]}"
        for path, tree in trees.items()
        for call in calls(tree)
        if (name := dotted(call.func)) in FORBIDDEN_CALLS
    ]
    assert not found


def test_no_module_is_imported_that_a_replay_cannot_repeat(trees: dict[Path, ast.Module]) -> None:
    imported = {
        (path.name, module.split(".")[0])
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
    }
    assert not [(file, module) for file, module in imported if module in FORBIDDEN_MODULES]


def test_no_set_is_gone_through_in_its_own_order(trees: dict[Path, ast.Module]) -> None:
    found = [f"{path.name}:{one.lineno}" for path, tree in trees.items() for one in iterated(tree) if is_set(one)]
    assert not found


def test_local_activities_never_run_side_by_side(trees: dict[Path, ast.Module]) -> None:
    local = uses_local_activities(trees)
    assert {"facts", "_write_down"} <= local
    found = [
        f"{path.name}:{call.lineno}"
        for path, tree in trees.items()
        for call in calls(tree)
        if dotted(call.func) in ("asyncio.gather", "asyncio.create_task", "asyncio.ensure_future")
        for inner in calls(call)
        if dotted(inner.func).rpartition(".")[2] in local
    ]
    assert not found


def test_what_is_raised_ends_a_workflow_instead_of_stalling_it(trees: dict[Path, ast.Module]) -> None:
    raised = {
        (path.name, dotted(node.exc.func) if isinstance(node.exc, ast.Call) else ast.unparse(node.exc))
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and node.exc is not None
    }
    assert not [(file, name) for file, name in raised if name not in OURS]
