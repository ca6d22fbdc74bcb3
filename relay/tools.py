"""The four tools of an agent: read its brief, record a decision, ask a person, submit its result.

Whatever an agent can mend is answered in a sentence that says how; nothing that it calls for breaks
anything off. Calling twice says once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from anyio import to_thread
from sqlalchemy import Connection

from activities.redaction import publishable
from domain.errors import WatchbillError
from domain.lifecycle import canonical
from relay import topics
from relay.callers import Caller, require_live
from relay.graph import Graph
from relay.results import faults_of, tool_schema
from store.notes import record_decision
from store.words import MAX_ASKED, Word, WordKind, ask, brief_of, question_of, say

MAX_RESULT = 256 * 1024
"""Characters of the largest result, as JSON."""

RECORDED = "recorded; end your turn now; the answer will reach you in this session"


ASKED_ENOUGH = (
    f"not recorded: one run asks a person {MAX_ASKED} characters at the most, and you have asked that; end your turn "
    "now, and what you asked before will be answered in this session"
)

ASKED_ALREADY = (
    "you have asked a person something, and this run ends with that; end your turn now, and submit the result in the "
    "turn that brings you the answer"
)


@dataclass(frozen=True)
class Answer:
    """What a tool says to the agent; `is_error` where it did not do what it was called for."""

    text: str
    is_error: bool = False


@dataclass(frozen=True)
class Tool:
    """A tool as it is offered; `schema` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


def _arguments(**texts: tuple[str, int]) -> dict[str, Any]:
    """An object of required texts, each with what it is and its greatest length in characters."""
    properties = {
        name: {"type": "string", "minLength": 1, "maxLength": limit, "description": description}
        for name, (description, limit) in texts.items()
    }
    return {"type": "object", "properties": properties, "required": list(texts), "additionalProperties": False}


def _with_page(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, and with them which part of a long answer is wanted."""
    page = {"type": "integer", "minimum": 1, "description": "Which page of a long topic; the first when left out."}
    return {**arguments, "properties": {**arguments["properties"], "page": page}}


_READ_BRIEF = Tool(
    "read_brief",
    f"Read what Watchbill knows and you may have lost: one of the topics {', '.join(topics.TOPICS)}.",
    _with_page(_arguments(topic=("Which topic; `task` is what you were told at the start.", 100))),
)
_RECORD_DECISION = Tool(
    "record_decision",
    "Write down a decision that you made, and why, for whoever goes on with this task or works on one that follows.",
    _arguments(title=("What was decided, in a few words.", 200), text=("Why, and what follows from it.", 20_000)),
)
_ASK_PERSON = Tool(
    "ask_person",
    "Ask a person what is not yours to decide. End your turn afterwards: the answer comes into this session.",
    _arguments(question=("The question, with everything that is needed to answer it.", 8_000)),
)
_SUBMIT_RESULT = Tool(
    "submit_result",
    "Hand in the result when the task is done, then end your turn. The answer says what is wrong with it, if anything.",
    tool_schema(None),
)


async def offered(graph: Graph, caller: Caller) -> tuple[Tool, ...]:
    """The tools of a run. What it submits is described by its own schema. Raises as `require_live` does."""

    def ask(connection: Connection) -> Any:
        require_live(connection, caller)
        brief = brief_of(connection, caller.grant.run)
        return brief.schema if brief else None

    schema = await graph.read(ask)
    submit = Tool(_SUBMIT_RESULT.name, _SUBMIT_RESULT.description, tool_schema(schema))
    return (_READ_BRIEF, _RECORD_DECISION, _ASK_PERSON, submit)


async def call(graph: Graph, caller: Caller, name: str, arguments: Mapping[str, Any]) -> Answer:
    """Do what the tool does, and say in words how that went."""
    if name not in _CALLS:
        return Answer(f"there is no tool {name[:100]!r}; there are {', '.join(_CALLS)}", is_error=True)
    tool, act = _CALLS[name]
    faults = faults_of(dict(arguments), tool.schema)
    if faults:
        return Answer("the arguments are not right: " + "; ".join(faults), is_error=True)
    try:
        return await act(graph, caller, arguments)
    except WatchbillError as error:
        return Answer(str(error), is_error=True)
    except (ValueError, TypeError, RecursionError):
        return Answer("it holds what JSON has no place for, such as NaN, or is nested too deeply", is_error=True)


async def _read_brief(graph: Graph, caller: Caller, arguments: Mapping[str, Any]) -> Answer:
    def ask(connection: Connection) -> str:
        require_live(connection, caller)
        return topics.read(connection, caller, arguments["topic"], arguments.get("page", 1))

    return Answer(await graph.read(ask))


async def _record_decision(graph: Graph, caller: Caller, arguments: Mapping[str, Any]) -> Answer:
    # Before it is kept: a receipt is for ever, and others are told of it.
    title, text = publishable(arguments["title"]), publishable(arguments["text"])
    at = datetime.now(UTC)
    word = await graph.write(lambda connection: record_decision(connection, caller.speaker, title, text, at))
    return Answer(f"not recorded: {word.refused}", is_error=True) if word.refused else Answer("recorded")


async def _ask_person(graph: Graph, caller: Caller, arguments: Mapping[str, Any]) -> Answer:
    at = datetime.now(UTC)
    kept = await graph.write(lambda connection: ask(connection, caller.speaker, dict(arguments), at))
    return Answer(RECORDED) if kept else Answer(ASKED_ENOUGH, is_error=True)


async def _submit_result(graph: Graph, caller: Caller, arguments: Mapping[str, Any]) -> Answer:
    """Keep a result, accepted or refused. What it is measured by never changes, so it is read beforehand."""
    result = arguments["result"]
    if len(canonical(result)) > MAX_RESULT:
        return Answer(f"the result is longer than {MAX_RESULT} characters; say less", is_error=True)
    brief = await graph.read(lambda connection: brief_of(connection, caller.grant.run))
    if brief is None:
        return Answer("no brief is kept for this run, so there is nothing that a result could answer", is_error=True)
    faults = "; ".join(await to_thread.run_sync(faults_of, result, brief.schema))
    body = {"result": result, "revision": brief.revision, "brief": brief.digest}
    at = datetime.now(UTC)

    def keep(connection: Connection) -> Word:
        asked = ASKED_ALREADY if question_of(connection, caller.grant.run) else ""
        return say(connection, caller.speaker, WordKind.RESULT, body, at, refused=asked or faults)

    word = await graph.write(keep)
    if not word.refused:
        return Answer(f"accepted for revision {brief.revision} and brief {brief.digest[:12]}; end your turn now")
    mend = "; mend it and submit it again" if word.refused == faults else ""
    return Answer(f"not accepted: {word.refused}{mend}", is_error=True)


_Act = Callable[[Graph, Caller, Mapping[str, Any]], Awaitable[Answer]]
_CALLS: dict[str, tuple[Tool, _Act]] = {
    tool.name: (tool, act)
    for tool, act in (
        (_READ_BRIEF, _read_brief),
        (_RECORD_DECISION, _record_decision),
        (_ASK_PERSON, _ask_person),
        (_SUBMIT_RESULT, _submit_result),
    )
}
