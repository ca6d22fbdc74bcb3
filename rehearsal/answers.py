"""How the stand-in answers: GitHub's error bodies, pages with Link headers, and bodies that do not change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

DOCUMENTATION = "https://docs.github.com/rest"

Json = Any
Problem = Mapping[str, str]


class Refused(Exception):
    """An answer that is not a success, with GitHub's body for it.

    `errors` are the entries of a 422; `headers` are sent along.
    """

    def __init__(
        self,
        status: int,
        message: str,
        errors: Sequence[Problem] = (),
        headers: Mapping[str, str] | None = None,
        documentation: str = DOCUMENTATION,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self.body: dict[str, Json] = {"message": message}
        if errors:
            self.body["errors"] = [dict(problem) for problem in errors]
        self.body |= {"documentation_url": documentation, "status": str(status)}


def not_found() -> Refused:
    return Refused(404, "Not Found")


def invalid(*errors: Problem) -> Refused:
    """422 as GitHub words it when a well-formed request breaks a rule."""
    return Refused(422, "Validation Failed", errors)


def invalid_field(resource: str, field_name: str, code: str = "invalid") -> Refused:
    return invalid({"resource": resource, "field": field_name, "code": code})


def custom(resource: str, message: str) -> Refused:
    return invalid({"resource": resource, "code": "custom", "message": message})


def not_supplied(name: str) -> Refused:
    """422 as GitHub words it when a field that the schema requires is absent."""
    return Refused(422, f'Invalid request.\n\n"{name}" wasn\'t supplied.')


@dataclass(frozen=True)
class Answer:
    """A success: `body` is JSON, or text when `media` says so, or None for no body at all."""

    body: Json = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media: str = "application/json; charset=utf-8"

    def content(self) -> bytes:
        if self.body is None:
            return b""
        return self.body.encode() if isinstance(self.body, str) else encode(self.body)


def encode(body: Json) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def etag(content: bytes) -> str:
    return f'W/"{hashlib.sha256(content).hexdigest()}"'


def page(items: Sequence[Json], query: str, url: str, wrap: str = "") -> Answer:
    """One page of a list, with GitHub's `per_page` (30, at most 100), `page`, and Link header.

    `wrap` names the field that holds the list where GitHub wraps it beside a `total_count`.
    """
    asked = dict(parse_qsl(query))
    size = max(1, min(number_or(asked.get("per_page"), 30), 100))
    number = max(1, number_or(asked.get("page"), 1))
    last = max(1, -(-len(items) // size))
    links = {"prev": number - 1, "first": 1} if number > 1 else {}
    if number < last:
        links |= {"next": number + 1, "last": last}
    link = ", ".join(f'<{url}?{urlencode({**asked, "page": target})}>; rel="{name}"' for name, target in links.items())
    shown: Json = list(items[(number - 1) * size : number * size])
    if wrap:
        shown = {"total_count": len(items), wrap: shown}
    return Answer(shown, headers={"Link": link} if link else {})


def number_or(text: str | None, default: int) -> int:
    """The number that a query's field says, or the default where it says none."""
    return int(text) if text and text.isdecimal() else default
