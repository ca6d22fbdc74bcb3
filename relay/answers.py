"""How the relay says no: one sentence in JSON, in the shape that Anthropic's and OpenAI's clients both show."""

from __future__ import annotations

import re
from collections.abc import Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "request_too_large",
    421: "invalid_request_error",
}


class Refused(Exception):
    """The request is answered with this status and sentence, and with nothing else.

    A sentence may name what the caller sent, so it is made one line of what can be shown.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__("".join(each if each.isprintable() else "\ufffd" for each in message))
        self.status = status


_BETWEEN_DIGITS = re.compile("(?<=[0-9])(?=[0-9])")


def final(message: str) -> str:
    """The message of a refusal that is not to be tried again, in which no two digits follow one another.

    OpenCode 1.18 tries again whatever has 429, 500, 502, 503, 504 or 524 in it, be it in an amount or an id. A word
    joiner between digits cannot be seen, and is taken out again by whoever reads an agent's words.
    """
    return _BETWEEN_DIGITS.sub("\u2060", message)


def refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    error = {"type": _TYPES.get(status, "api_error"), "message": message}
    return JSONResponse({"type": "error", "error": error}, status, {**(headers or {}), **headers_of(status)})


def headers_of(status: int) -> Mapping[str, str]:
    """What a refusal says beside its sentence: whoever is refused is not to try again, unless the fault is here."""
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    return headers if status >= 500 else {**headers, "x-should-retry": "false"}


async def body_of(request: Request, limit: int) -> bytes:
    """The whole body. Raises Refused as soon as it is known to be larger than `limit` bytes."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise Refused(413, f"the body is larger than {limit} bytes")
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise Refused(413, f"the body is larger than {limit} bytes")
            parts.append(part)
    except ClientDisconnect as error:
        raise Refused(400, "the body was broken off") from error
    return b"".join(parts)
