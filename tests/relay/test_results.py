"""What is wrong with a result is told so that it can be mended, and nothing is fetched to find out."""

from __future__ import annotations

from typing import Any

import pytest

from relay.results import MAX_FAULTS, faults_of, tool_schema

REFERRING = {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ({"anything": [1, None]}, None),
        ({"anything": 1}, {}),
        ([1, 2], REFERRING),
        ("x", True),
    ],
)
def test_what_fits_has_no_faults(value: Any, schema: Any) -> None:
    assert faults_of(value, schema) == []


@pytest.mark.parametrize(
    ("value", "schema", "told"),
    [
        ({}, {"required": ["summary"]}, "'summary' is a required property"),
        ([1, "x"], REFERRING, "[1]: 'x' is not of type 'integer'"),
        ({"a": {"b": "y" * 9000}}, {"properties": {"a": {"properties": {"b": {"maxLength": 5}}}}}, "is too long"),
        (1, {"$ref": "https://example.com/schema.json"}, "not your fault"),
        (1, {"$ref": "#/$defs/none"}, "not your fault"),
        (1, {"type": "no such type"}, "not your fault"),
        (1, False, "does not allow"),
    ],
)
def test_a_fault_says_where_and_what(value: Any, schema: Any, told: str) -> None:
    (fault,) = faults_of(value, schema)
    assert told in fault
    assert len(fault) < 400
    assert "\n" not in fault


def test_few_faults_are_told_at_once() -> None:
    assert len(faults_of([str(n) for n in range(100)], REFERRING)) == MAX_FAULTS


def test_the_tool_shows_what_is_wanted_and_its_references_hold() -> None:
    shown = tool_schema(REFERRING)
    assert faults_of({"result": [1]}, shown) == []
    assert faults_of({"result": ["x"]}, shown) == ["result[0]: 'x' is not of type 'integer'"]
    assert faults_of({"result": [1], "more": 1}, shown)


@pytest.mark.parametrize("schema", [None, True, {"items": {"$ref": "#"}}, {"allOf": [{"$ref": "#/properties/x"}]}])
def test_a_schema_that_cannot_be_moved_is_not_shown(schema: Any) -> None:
    assert faults_of({"result": {"any": "thing"}}, tool_schema(schema)) == []
    assert faults_of({}, tool_schema(schema)) == ["'result' is a required property"]
