"""A value that fits a JSON Schema, made of what there is to say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.models.conversation import Schema

_DEEPEST = 20


def fill(schema: Schema, says: Mapping[str, Any], known: Mapping[str, Any] | None = None) -> Any:
    """The smallest value that fits: what is required, and no more.

    `says` has the text for a field by its name, and under "" the text for all others; a value that is no text, and
    one of those that a field may only have, is set as it is. `known` are values
    of the outermost object that are set as they are, where its schema has a property of that name; an
    object that leaves its properties open gets each of `says` that has a name. Formats and patterns of
    texts are beyond it.
    """
    value = _value(schema, schema, says, "", 0)
    if isinstance(value, dict) and known:
        value |= {name: known[name] for name in _properties(schema) if name in known}
    return value


def _value(schema: Any, root: Schema, says: Mapping[str, Any], name: str, depth: int) -> Any:
    schema = _resolved(schema, root)
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    if name in says and not isinstance(says[name], str):
        return says[name]
    if schema.get("enum"):
        return says[name] if says.get(name) in schema["enum"] else schema["enum"][0]
    for word in ("anyOf", "oneOf"):
        if schema.get(word):
            choices = [_resolved(choice, root) for choice in schema[word]]
            chosen = next((choice for choice in choices if choice.get("type") != "null"), choices[0])
            return _value({**schema, word: None, **chosen}, root, says, name, depth)
    match _type(schema):
        case "object":
            return _object(schema, root, says, depth)
        case "array":
            least = int(schema.get("minItems", 0))
            return [_value(schema.get("items", {}), root, says, name, depth + 1) for _ in range(least)]
        case "string":
            text = says.get(name, says[""]).ljust(int(schema.get("minLength", 0)), ".")
            return text[: schema["maxLength"]] if "maxLength" in schema else text
        case "integer" | "number":
            return schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
        case "boolean":
            return True
        case _:
            return None


def _object(schema: Schema, root: Schema, says: Mapping[str, Any], depth: int) -> dict[str, Any]:
    properties = _properties(schema)
    if not properties:
        return {name: text for name, text in says.items() if name}
    if depth > _DEEPEST:
        raise ValueError("a value of this schema would have no end; it requires itself")
    required = schema.get("required", ())
    wanted = [name for name in properties if name in required or name in says]
    return {name: _value(properties[name], root, says, name, depth + 1) for name in wanted}


def _properties(schema: Schema) -> Mapping[str, Any]:
    found: Mapping[str, Any] = schema.get("properties") or {}
    return found


def _type(schema: Schema) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    return str(kind)


def _resolved(schema: Any, root: Schema) -> dict[str, Any]:
    """The schema itself with its references into the root followed and its `allOf` merged."""
    if not isinstance(schema, Mapping):
        return {}
    found = dict(schema)
    for _ in range(_DEEPEST):
        reference = found.pop("$ref", None)
        if not isinstance(reference, str):
            break
        target: Any = root
        for step in reference.removeprefix("#").strip("/").split("/"):
            target = target.get(step.replace("~1", "/").replace("~0", "~"), {}) if step else target
        found = {**target, **found}
    for part in found.pop("allOf", ()):
        found = _merged(found, _resolved(part, root))
    return found


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    both = {**one, **other}
    if "properties" in one and "properties" in other:
        both["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        both["required"] = [*one["required"], *other["required"]]
    return both
