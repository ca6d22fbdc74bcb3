"""Reduce GitHub's OpenAPI description to the answers of the operations that the stand-in serves.

    npm pack @octokit/openapi@23 && tar xzf octokit-openapi-23.*.tgz
    python tests/rehearsal/openapi/extract.py package/generated/api.github.com.json

writes `answers.json` beside this file: for each operation the JSON schema of each answer, and the
schemas that those refer to, as JSON Schema (OpenAPI 3.0 writes "or null" in its own way) and without
prose. The description is GitHub's, packaged by Octokit under the MIT license.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from rehearsal.api import ENDPOINTS

TARGET = Path(__file__).with_name("answers.json")

_PROSE = {
    "description", "example", "examples", "title", "deprecated", "externalDocs", "readOnly", "default",
    "format", "discriminator",
}  # fmt: skip


# Here the description wants an installation's account to be a user and an enterprise at once; where one
# installation is read, it says "or".
_CORRECTED = {
    "GET /app/installations": {"200": {"type": "array", "items": {"$ref": "#/schemas/installation"}}},
}


def anonymous(path: str) -> str:
    """A path with its variables' names taken out: ours and GitHub's differ."""
    return re.sub(r"\{[^}]*\}", "{}", path)


def main(source: Path) -> None:
    description = json.loads(source.read_text())
    components = description["components"]
    paths = {anonymous(path): operations for path, operations in description["paths"].items()}
    operations = {}
    for endpoint in ENDPOINTS:
        path = anonymous(endpoint.path)
        answers = paths[path][endpoint.method.lower()]["responses"]
        operations[f"{endpoint.method} {path}"] = {
            status: _schema(answer, components) for status, answer in sorted(answers.items())
        } | _CORRECTED.get(f"{endpoint.method} {path}", {})
    needed = _reached(operations, components["schemas"])
    TARGET.write_text(
        json.dumps(
            {
                "source": "@octokit/openapi, generated/api.github.com.json",
                "version": description["info"]["version"],
                "license": "MIT, Copyright (c) 2020 Octokit contributors; see LICENSE beside this file",
                "operations": operations,
                "schemas": {name: _plain(components["schemas"][name]) for name in sorted(needed)},
            },
            separators=(",", ":"),
            sort_keys=True,
        )
        + "\n"
    )


def _schema(answer: dict[str, Any], components: dict[str, Any]) -> Any:
    """The schema of an answer's JSON body; null where there is no body."""
    if "$ref" in answer:
        answer = components["responses"][answer["$ref"].rpartition("/")[2]]
    body = answer.get("content", {}).get("application/json", {}).get("schema")
    return None if body is None else _plain(body)


def _plain(schema: Any) -> Any:
    """This schema as JSON Schema, without prose. A property may well be called `description`."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {
        name: {key: _plain(value) for key, value in part.items()} if name == "properties" else _plain(part)
        for name, part in schema.items()
        if name not in _PROSE and name != "nullable" and not name.startswith("x-")
    }
    if "$ref" in plain:
        plain = {"$ref": plain["$ref"].replace("#/components/schemas/", "#/schemas/")}
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") else plain


def _reached(operations: dict[str, Any], schemas: dict[str, Any]) -> set[str]:
    reached: set[str] = set()
    waiting = set(re.findall(r"#/schemas/([^\"]+)", json.dumps(operations)))
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting |= set(re.findall(r"#/schemas/([^\"]+)", json.dumps(_plain(schemas[name])))) - reached
    return reached


if __name__ == "__main__":
    main(Path(sys.argv[1]))
