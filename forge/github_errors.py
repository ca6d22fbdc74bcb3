"""What an error answer of GitHub means, decided in one place by status, headers and body.

githubkit's own exceptions do not tell enough: a secondary limit without headers looks like any refusal,
and an HTTP date in Retry-After escapes as a ValueError. GitHub's rules are those of
https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api and
https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from domain.errors import NotFound, RateLimited, Unauthorized, Unavailable, WatchbillError
from forge.redact import redact

LEAST_WAIT = 60.0
"""Seconds that GitHub asks for when a limit says nothing else."""


class Refused(WatchbillError):
    """GitHub understood and said no: 405, 409, 422 and other answers that mean something to who asked.

    `reasons` are GitHub's sentences, `fields` what it names as invalid.
    """

    def __init__(self, message: str, *, status: int, reasons: tuple[str, ...], fields: tuple[str, ...]) -> None:
        super().__init__(message)
        self.status, self.reasons, self.fields = status, reasons, fields

    def says(self, *words: str) -> bool:
        """Whether one of GitHub's sentences holds any of these; it has no codes for them."""
        return any(word in reason for word in words for reason in self.reasons)


def graphql_error(asked: str, errors: Sequence[Mapping[str, Any]]) -> WatchbillError:
    """The error for what GraphQL answers with status 200; its types are what REST has statuses for."""
    reasons = tuple(str(error.get("message") or "") for error in errors)
    said = redact(f"GitHub did not {asked}: {'; '.join(filter(None, reasons)) or 'no reason'}")
    match str(errors[0].get("type") or ""):
        case "RATE_LIMITED":
            return RateLimited(said, retry_after=LEAST_WAIT)
        case "FORBIDDEN" | "INSUFFICIENT_SCOPES":
            return Unauthorized(f"{said}; check what the token or the App may do there")
        case "NOT_FOUND":
            return NotFound(said)
        case "SERVICE_UNAVAILABLE" | "INTERNAL":
            return Unavailable(said)
    return Refused(said, status=422, reasons=reasons, fields=())


@dataclass(frozen=True)
class ErrorAnswer:
    """An answer with a status of 400 or more. `asked` is the request in words, such as `GET /user`.

    `headers` has lower-case names. `now` is Unix time, for limits that name a moment.
    """

    asked: str
    status: int
    headers: Mapping[str, str]
    content: bytes
    now: float

    def error(self) -> WatchbillError:
        """The error for it; RateLimited and Unavailable say how long to wait where GitHub does."""
        said = redact(f"GitHub answered {self.status} to {self.asked}: {'; '.join(self._reasons) or 'no reason'}")
        if self._limited:
            return RateLimited(said, retry_after=self._wait() or LEAST_WAIT)
        if self.status >= 500 or self.status == 408:
            return Unavailable(said, retry_after=self._wait())
        if self.status == 401:
            return Unauthorized(f"{said}; check the token, or the App's id and key")
        if self.status == 403:
            return Unauthorized(f"{said}; check what the token or the App may do there")
        if self.status in (404, 410):
            return NotFound(said)
        return Refused(said, status=self.status, reasons=self._reasons, fields=self._fields)

    @property
    def _limited(self) -> bool:
        if self.status == 429:
            return True
        limits = ("rate limit", "abuse detection")
        return self.status == 403 and (
            "retry-after" in self.headers
            or self.headers.get("x-ratelimit-remaining") == "0"
            or any(limit in self._message.lower() for limit in limits)
        )

    def _wait(self) -> float | None:
        """Seconds to wait: Retry-After before the reset of a used-up limit."""
        asked = self.headers.get("retry-after", "")
        if asked.isascii() and asked.isdigit():
            return float(asked)
        if asked:
            try:
                return max(1.0, parsedate_to_datetime(asked).timestamp() - self.now)
            except ValueError:
                return LEAST_WAIT
        reset = self.headers.get("x-ratelimit-reset", "")
        if self.headers.get("x-ratelimit-remaining") == "0" and reset.isascii() and reset.isdigit():
            return max(1.0, float(reset) - self.now)
        return None

    @property
    def _body(self) -> dict[str, Any]:
        try:
            body = json.loads(self.content)
        except ValueError:
            return {}
        return body if isinstance(body, dict) else {}

    @property
    def _message(self) -> str:
        return str(self._body.get("message") or "")

    @property
    def _errors(self) -> list[dict[str, Any]]:
        errors = self._body.get("errors")
        listed = errors if isinstance(errors, list) else [errors] if errors else []
        return [error if isinstance(error, dict) else {"message": str(error)} for error in listed]

    @property
    def _reasons(self) -> tuple[str, ...]:
        sentences = [self._message, *(str(error.get("message") or "") for error in self._errors)]
        return tuple(sentence for sentence in sentences if sentence)

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(
            str(error["field"]) for error in self._errors if error.get("code") == "invalid" and error.get("field")
        )
