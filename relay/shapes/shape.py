"""What every API has in common: a request in, a bound on what it can cost, and what its answer used."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson

from relay.answers import Refused
from relay.usage import Usage

Json = dict[str, Any]

LEAST_OUTPUT = 4096
"""Tokens of output below which an answer is not worth its input: a file that an agent writes is one tool call."""

MOST_OUTPUT = 1_000_000
"""Tokens that no model says at once; what asks for more is taken to ask for this."""

OVERHEAD = 2048
"""Tokens for what providers put around a request's content, such as their own words on how tools are called."""


@dataclass
class Wish:
    """A request that may be let through. `body` is what is sent, and is changed while it is prepared.

    `output` is how many tokens its answer may have, `least` how many it needs to make sense. `images` have
    `image_bytes` in the body, and are at most `image_tokens` to the model, however small they were packed.
    """

    body: Json
    model: str
    stream: bool
    output: int
    least: int
    image_bytes: int = 0
    image_tokens: int = 0
    strips_usage: bool = False
    encoded: bytes = b""

    def encode(self) -> None:
        """What is sent is what was judged, and nothing that another reader could read otherwise.

        Raises Refused for what is nested too deeply.
        """
        self.encoded = packed(self.body)

    @property
    def content(self) -> int:
        """The most tokens that the model can be said to have read: none is shorter than a byte."""
        return len(self.encoded) - self.image_bytes + self.image_tokens + OVERHEAD

    @property
    def writes_1h(self) -> bool:
        """Whether something may be kept in the provider's cache for an hour, which costs more."""
        return b'"1h"' in self.encoded


class Watch(ABC):
    """Reads the events of one stream for what was used."""

    @abstractmethod
    def see(self, event: Any) -> None:
        """An event that TELLS found something in. ValueError for numbers that no provider would tell."""

    @abstractmethod
    def used(self, *, whole: bool) -> Usage | None:
        """What was used in all; None as long as that has not been told. `whole`: the stream came to its end."""


class Shape(ABC):
    """One API. It keeps nothing, so one of each serves all calls."""

    endpoint: ClassVar[str]
    """Its name in the ledger."""
    provider: ClassVar[str]
    """Whose key it takes, by the name of the settings: anthropic, openai or gemini."""
    prices: ClassVar[str]
    """Whose prices are asked for."""
    free: ClassVar[bool] = False
    """Whether its calls cost nothing."""
    tells: ClassVar[re.Pattern[bytes]] = re.compile(rb'"usage"\s*:\s*\{')
    """What an event has in it that tells of usage."""

    @abstractmethod
    def matches(self, path: str) -> str | None:
        """Whether a path below `/models/` is this API's: the model that it names, or nothing; None where it is not."""

    @abstractmethod
    def read(self, body: Json, model: str, output: int) -> Wish:
        """What a request wishes; `output` is how long its answer may be where it does not say.

        Raises Refused with 400 for what cannot be bounded, in a sentence that names the field.
        """

    @abstractmethod
    def lower(self, wish: Wish, output: int) -> None:
        """Let the answer have at most so many tokens, at least those that make sense."""

    @abstractmethod
    def used(self, answer: Any) -> Usage | None:
        """What an answer that is no stream says it used. ValueError for numbers that no provider would tell."""

    @abstractmethod
    def watch(self) -> Watch: ...

    @abstractmethod
    def refusal(self, status: int, message: str) -> Json:
        """An error as this API's clients read it."""

    @abstractmethod
    def listing(self, model: str) -> Json:
        """The one model that there is, as this API lists models."""

    def target(self, path: str, query: Mapping[str, str]) -> str:
        """Where a call is passed on to, behind the provider's own name, with what of its query is passed on."""
        return path.partition("/")[2]

    def is_out_of_credit(self, status: int, error: Json) -> bool:
        """Whether an error means that the account there is not paid; `error` is what it tells under that name."""
        return status == 402

    def charges(self, status: int) -> bool:
        """Whether an answer with this status may have cost something although it tells no usage.

        A request that was refused (4xx), or turned away for want of room, was not worked on. Of other errors
        neither Anthropic nor OpenAI says so.
        """
        return status == 408 or (status >= 500 and status not in (503, 529))


def judged(shape: Shape, body: Json, model: str, output: int) -> Wish:
    """What a request wishes, ready to be sent. Raises Refused for any JSON that is no request which can be bounded."""
    try:
        wish = shape.read(body, model, output)
    except RecursionError as error:
        raise Refused(400, _TOO_DEEP) from error
    wish.encode()
    return wish


_TOO_DEEP = "the body is nested too deeply, or holds what JSON has no place for"


def packed(value: Any) -> bytes:
    """JSON as it is sent. Raises Refused for what is nested too deeply."""
    try:
        return orjson.dumps(value)
    except (TypeError, RecursionError) as error:
        raise Refused(400, _TOO_DEEP) from error


def only(given: Mapping[str, Any], allowed: frozenset[str], where: str = "") -> None:
    """Raises Refused where something is asked for that is not in the list; null asks for nothing."""
    for name, value in given.items():
        if name not in allowed and value is not None:
            raise unbounded(f"{where}{name}")


def unbounded(field: str) -> Refused:
    return Refused(400, f"{field[:200]} is not let through: what it may cost is not known beforehand")


def malformed(field: str, expected: str) -> Refused:
    return Refused(400, f"{field[:200]}: {expected} is expected")


def objects(given: Any, where: str) -> list[Json]:
    """A list of objects; empty for null. Raises Refused for anything else."""
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
        raise malformed(where, "a list of objects")
    return given


def an_object(given: Any, where: str) -> Json:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise malformed(where, "an object")
    return given


def text(given: Any, where: str) -> str:
    if not isinstance(given, str):
        raise malformed(where, "a text")
    return given


def kind_of(given: Json, where: str) -> str:
    """What an object says that it is; empty where it does not. Raises Refused for what is no text."""
    kind = given.get("type")
    return "" if kind is None else text(kind, f"{where}.type")


def flag(body: Json, name: str) -> bool:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise malformed(name, "true or false")
    return bool(value)


def tokens(given: Any, where: str) -> int | None:
    """A number of tokens, at most MOST_OUTPUT; None for null."""
    if given is None:
        return None
    if type(given) is not int or given < 1:
        raise malformed(where, "a whole number of tokens above 0")
    return min(given, MOST_OUTPUT)


class Images:
    """Counts inline images: what a model makes of one is bounded by its provider, and not by its bytes."""

    def __init__(self, tokens_each: int) -> None:
        self._each = tokens_each
        self.bytes = 0
        self.tokens = 0

    def inline(self, data: Any, where: str) -> None:
        self.bytes += len(text(data, where))
        self.tokens += self._each

    def data_url(self, url: Any, where: str) -> None:
        """An image in the address itself. Raises Refused for one that lies elsewhere."""
        found = text(url, where)
        if not found[:11].lower().startswith("data:image/"):
            raise unbounded(f"{where} (an image that is not inline)")
        self.inline(found, where)


def listed_like_openai(model: str) -> Json:
    entry = {"id": model, "object": "model", "created": 1_767_225_600, "owned_by": "watchbill"}
    return {"object": "list", "data": [entry] if model else []}


def refused_like_openai(status: int, message: str) -> Json:
    kind = {
        401: ("invalid_request_error", "invalid_api_key"),
        402: ("insufficient_quota", "insufficient_quota"),
        403: ("permission_error", "permission_denied"),
        429: ("rate_limit_error", "rate_limit_exceeded"),
    }.get(status, ("invalid_request_error" if status < 500 else "server_error", None))
    return {"error": {"message": message, "type": kind[0], "param": None, "code": kind[1]}}
