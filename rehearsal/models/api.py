"""What the three APIs have in common: requests in, one reply out, as JSON or as events."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rehearsal.models.conversation import Conversation, Reply
from rehearsal.models.usage import Usage

Json = dict[str, Any]

_PIECE = 24


@dataclass(frozen=True)
class Event:
    """One server-sent event. `name` is empty where the API sends none; `data` is text or becomes JSON."""

    data: Json | str
    name: str = ""

    def encode(self) -> bytes:
        data = self.data if isinstance(self.data, str) else json.dumps(self.data, separators=(",", ":"))
        return (f"event: {self.name}\n" if self.name else "").encode() + f"data: {data}\n\n".encode()


@dataclass(frozen=True)
class Api:
    """One API of a provider.

    `read` raises Unreadable. `answer` is the body of a reply that is not streamed, `events` the stream of
    one that is; usage None leaves it out, as a provider should not but does. `refusal` is the body of an
    answer with that status, `failure` the events that tell of an error after the stream has begun.
    `request_id` names the header that carries a request's id.
    """

    name: str
    read: Callable[[Json], Conversation]
    answer: Callable[[Conversation, Reply, Usage | None], Json]
    events: Callable[[Conversation, Reply, Usage | None], Iterator[Event]]
    refusal: Callable[[int, str, str], Json]
    failure: Callable[[str], Sequence[Event]]
    request_id: str


class Unreadable(ValueError):
    """A request that the provider would refuse with 400; the message says what is wrong with it."""


def fresh(prefix: str) -> str:
    """A new id as providers make them."""
    return f"{prefix}_{uuid.uuid4().hex[:24]}"


def pieces(text: str) -> list[str]:
    """A text as it arrives in a stream: never in one piece, and cut without regard to words."""
    return [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]


def listed(body: Mapping[str, Any], name: str) -> list[Json]:
    """A list of objects in a request; empty when it is not there. Raises Unreadable for anything else."""
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Unreadable(f"{name}: a list of objects is expected")
    return value


def text_of(content: Any, *kinds: str) -> str:
    """The text of a message's content: a text already, or parts, of which those of these kinds have one."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(
        str(part.get("text", "")) for part in parts if isinstance(part, dict) and part.get("type") in kinds
    )


def required(body: Mapping[str, Any], *names: str) -> None:
    """Raises Unreadable where one of these is missing."""
    for name in names:
        if body.get(name) in (None, ""):
            raise Unreadable(f"{name}: Field required")


def as_json(value: Mapping[str, Any] | str) -> str:
    return value if isinstance(value, str) else json.dumps(value)
