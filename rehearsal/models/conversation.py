"""A conversation with a model and its next reply, as no API in particular has them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt

Schema = Mapping[str, Any]

_MARKDOWN = MarkdownIt("commonmark", {"maxNesting": 100}).disable("inline")

_NOT_A_PERSON = (
    "<system-reminder>",
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "[structured-output-enforce]",
    "Stop hook feedback:",
)
"""How texts begin that a CLI puts into the user's mouth by itself (seen in claude 2.1.332, codex 0.171.0)."""


@dataclass(frozen=True)
class Tool:
    """A tool that the model may call. `schema` is the JSON Schema of its input, empty where it takes raw text.

    `namespace` is set where the API keeps the names of tools in groups. `searches` marks a tool that
    answers with further tools, which are offered from then on.
    """

    name: str
    schema: Schema = field(default_factory=dict)
    namespace: str = ""
    searches: bool = False


@dataclass(frozen=True)
class ToolCall:
    """A call of `tool`. `input` fits its schema, or is text where the tool takes raw text."""

    tool: Tool
    input: Mapping[str, Any] | str


@dataclass(frozen=True)
class Reply:
    """What the model says next: a text, calls, or first the one and then the others."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class Person:
    """What somebody told the model: a person, or (`by_cli`) the CLI in the person's place."""

    text: str
    by_cli: bool = False


@dataclass(frozen=True)
class Said:
    """One turn of the model. `calls` maps the ids of its calls to the names of the tools, without a namespace."""

    text: str = ""
    calls: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """What a tool answered to the call of this id."""

    call: str
    text: str


Entry = Person | Said | Result


@dataclass(frozen=True)
class Size:
    """A request's size in tokens; one is four bytes of JSON here.

    `cached` of them were a part of the request before, and `written` are kept for the next one.
    """

    tokens: int
    cached: int = 0
    written: int = 0


@dataclass(frozen=True)
class Conversation:
    """Everything that one request tells the model.

    `entries` are in order, beginning with the oldest. `schema` is the JSON Schema that the final text
    must fit, where the API was given one. `stream` and `stream_usage` say whether the reply is wanted as
    events, and whether these tell what was used. `size` is the request's in tokens.
    """

    model: str
    system: str
    entries: tuple[Entry, ...]
    tools: tuple[Tool, ...] = ()
    schema: Schema | None = None
    stream: bool = False
    stream_usage: bool = True
    size: Size = Size(0)

    @property
    def main(self) -> bool:
        """Whether this is the agent's own loop; what a CLI asks beside it (a title, say) brings no tools."""
        return bool(self.tools)

    @property
    def persons(self) -> tuple[str, ...]:
        """What persons said, oldest first."""
        return tuple(entry.text for entry in self.entries if isinstance(entry, Person) and not entry.by_cli)

    @property
    def turn(self) -> tuple[Entry, ...]:
        """What came after the last thing that a person said."""
        return self.since(lambda entry: not entry.by_cli)

    @property
    def rounds(self) -> int:
        """How often the model has had its say in this turn."""
        return sum(isinstance(entry, Said) for entry in self.turn)

    def since(self, wanted: Callable[[Person], bool]) -> tuple[Entry, ...]:
        """What came after the last Person that is wanted; everything when there is none."""
        for index in range(len(self.entries) - 1, -1, -1):
            entry = self.entries[index]
            if isinstance(entry, Person) and wanted(entry):
                return self.entries[index + 1 :]
        return self.entries


def person(text: str) -> Person:
    """A message in the user's name. One that opencode put into quotes, as it does with an argument, is unquoted."""
    quoted = re.fullmatch(r'"((?:[^"\\]|\\.)*)"\s*', text, re.DOTALL)
    if quoted:
        text = quoted[1].replace('\\"', '"')
    return Person(text, by_cli=text.lstrip().startswith(_NOT_A_PERSON))


def tokens(value: Any) -> int:
    """The tokens that a text, or anything else as JSON, counts for."""
    return -(-len((value if isinstance(value, str) else json.dumps(value)).encode()) // 4)


def size(body: Mapping[str, Any], messages: Sequence[dict[str, Any]], role: Callable[[dict[str, Any]], str]) -> Size:
    """The size of a request whose `messages` have these roles: up to the model's last turn it was sent before."""
    whole = tokens(body)
    new = len(messages)
    while new and role(messages[new - 1]) != "assistant":
        new -= 1
    while new and role(messages[new - 1]) == "assistant":
        new -= 1
    began = any(role(message) == "assistant" for message in messages)
    return Size(whole, cached=whole - tokens(messages[new:]) if began else 0)


def answered(entries: tuple[Entry, ...]) -> dict[str, str]:
    """The results among these entries by the name of the tool that was called; the last one counts."""
    names = {call: name for entry in entries if isinstance(entry, Said) for call, name in entry.calls.items()}
    return {names[entry.call]: entry.text for entry in entries if isinstance(entry, Result) and entry.call in names}


def block(text: str, language: str) -> str:
    """The content of the first block that is fenced as this language, or nothing."""
    for token in _MARKDOWN.parse(text):
        if token.type == "fence" and (token.info.split() or [""])[0].lower() == language:
            return token.content.strip()
    return ""
