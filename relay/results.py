"""Whether a value fits a JSON Schema, and if not, what is wrong in words that an agent can mend it by."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

MAX_FAULTS = 5
"""How many faults are told at once; an agent mends a few and asks again."""

MAX_FAULT = 300
"""Characters of one fault."""

_QUOTED = 60
"""Characters of what is wrong that a fault quotes; the validator would quote the whole of it."""


def faults_of(value: Any, schema: Any) -> list[str]:
    """What is wrong with the value, the most telling first, at most five; empty when it fits. No schema fits all."""
    if schema is None:
        return []
    # A registry of nothing: a reference that leads out of the schema is a fault, and never a download.
    validator = Draft202012Validator(schema, registry=Registry())
    try:
        Draft202012Validator.check_schema(schema)
        found = sorted(validator.iter_errors(value), key=lambda error: (len(error.absolute_path), error.json_path))
    except (SchemaError, Unresolvable) as error:
        return [f"the schema of this run's result cannot be used, which is not your fault: {_short(str(error))}"]
    except RecursionError:
        return ["it is nested too deeply"]
    return [_told(error) for error in found[:MAX_FAULTS]]


def tool_schema(schema: Any) -> dict[str, Any]:
    """The input of a tool whose one argument `result` is to fit the schema.

    Definitions move to the root, where references look for them. A schema that refers to anything else
    within itself is not shown: its references would lead elsewhere.
    """
    if not isinstance(schema, dict) or _refers_elsewhere(schema):
        return _object({"result": {"description": "The result, as JSON."}})
    shown = {name: part for name, part in schema.items() if name not in ("$schema", "$id", "$defs")}
    wrapped = _object({"result": shown})
    return {**wrapped, "$defs": schema["$defs"]} if "$defs" in schema else wrapped


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _refers_elsewhere(part: Any) -> bool:
    match part:
        case {"$ref": str(target)} if not target.startswith("#/$defs/"):
            return True
        case dict():
            return any(map(_refers_elsewhere, part.values()))
        case list():
            return any(map(_refers_elsewhere, part))
    return False


def _told(error: ValidationError) -> str:
    where = error.json_path.removeprefix("$").removeprefix(".")
    quoted = repr(error.instance)
    message = error.message if len(quoted) <= _QUOTED else error.message.replace(quoted, f"{quoted[:_QUOTED]}…")
    return f"{where}: {_short(message)}" if where else _short(message)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_FAULT else f"{line[:MAX_FAULT]}…"
