"""The door keeps to its description, `docs/reference/relay-openapi.yaml`, whatever it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from relay.models import LISTS
from relay.shapes import SHAPES
from tests.relay.conftest import MODEL, Relay

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "relay-openapi.yaml"
DOOR: Any = schemathesis.openapi.from_path(PAGE)
PATHS: dict[str, Any] = DOOR.raw_schema["paths"]
OPERATIONS = [(path, method) for path, methods in PATHS.items() for method in methods]
BOTH = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


def test_every_address_is_described_and_no_other() -> None:
    models = {path.partition("/models/")[2].replace("{model}", MODEL) for path in PATHS if path.startswith("/models/")}
    shapes = {shape.endpoint for path in models for shape in SHAPES if shape.matches(path) is not None}
    assert shapes == {shape.endpoint for shape in SHAPES}
    assert {path for path in models if not any(shape.matches(path) is not None for shape in SHAPES)} == LISTS
    others = {path for path in PATHS if not path.startswith("/models/")}
    assert others == {"/healthz", "/readyz", "/mcp", "/events"}


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_is_asked_is_answered_or_refused_in_the_callers_form(
    metered: Relay, path: str, method: str, data: st.DataObject
) -> None:
    operation = DOOR[path][method]
    case = data.draw(st.one_of([operation.as_strategy(generation_mode=mode) for mode in BOTH]))
    metered.provider.parts, metered.provider.headers = [b"{}"], {"content-type": "application/json"}
    headers = {**metered.headers(), "Accept": "application/json, text/event-stream"}
    answer = case.call(base_url=metered.url, headers=headers)
    case.validate_response(answer, checks=[not_a_server_error, response_schema_conformance, status_code_conformance])
