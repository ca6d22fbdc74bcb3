"""The model that a rehearsal works with: it does what a task's text says in so many words, and no more.

A task's `sh` block is carried out with the CLI's own shell tool, an `ask` block is put to a person
first. Then the result is handed in. A reviewer carries out the `review` block, and answers what that
printed. Each decision looks at the conversation alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from domain.script import shell_block
from rehearsal.models import reviewing
from rehearsal.models.conversation import Conversation, Reply, Schema, Tool, ToolCall, answered, block
from rehearsal.models.filling import fill

SHELLS = ("Bash", "bash", "exec_command", "shell", "shell_command", "local_shell", "run_shell_command")
"""What CLIs call their shell tool; the first that is offered is used."""

_ASK, _SUBMIT, _STRUCTURED = "ask_person", "submit_result", "StructuredOutput"
_LONGEST_QUOTE = 300


def reply(conversation: Conversation) -> Reply:
    """What the model says next.

    A new message of a person begins a new turn: the script is run again, as another run of the task
    would. Within a turn every step is taken once, however often the CLI itself asks for more.
    """
    if not conversation.main:
        return _closing(conversation, "A task that is rehearsed")
    brief = _brief(conversation)
    done = answered(conversation.turn)
    question = _open_question(conversation, brief)
    if question:
        if _called(_ASK, done) is not None:
            return Reply("I have asked, and end here until the answer comes.")
        if _offered(conversation, _ASK):
            return _call(conversation, _ASK, {"": question})
    reviews = reviewing.is_asked(brief)
    script = reviewing.script(brief) if reviews else _script(brief)
    shell = next((tool for name in SHELLS for tool in conversation.tools if tool.name == name), None)
    if script and shell and shell.name not in done:
        return Reply("I run the task's script.", (ToolCall(shell, _command(shell, script)),))
    says: dict[str, Any] = {"": "This was rehearsed, without a model."}
    if reviews:
        says |= reviewing.verdict(done.get(shell.name, "") if shell and script else "")
    else:
        says["summary"] = _summary(bool(script), shell, done)
    if _called(_SUBMIT, done) is None and _offered(conversation, _SUBMIT):
        return _call(conversation, _SUBMIT, says, _promised(conversation))
    if _STRUCTURED not in done and any(tool.name == _STRUCTURED for tool in conversation.tools):
        return _call(conversation, _STRUCTURED, says)
    return _closing(conversation, says["summary"], says)


def _script(brief: str) -> str:
    found = shell_block(brief)
    return found[1].rstrip("\n") if found else ""


def _brief(conversation: Conversation) -> str:
    """The newest message of a person with something to do in it.

    What CLIs add by themselves is not looked at: instructions of a repository have blocks too, which nobody
    asked us to run.
    """
    newest = reversed(conversation.persons)
    with_work = (text for text in newest if shell_block(text) or block(text, "ask") or reviewing.script(text))
    return next(with_work, conversation.persons[-1] if conversation.persons else "")


def _open_question(conversation: Conversation, brief: str) -> str:
    """The question in the brief, until it is answered, or nothing.

    It is when a person spoke after it was asked, or when it is quoted beside its block: that is how a run
    that begins afresh gets to know the answer.
    """
    question = block(brief, "ask")
    if not question or _plain("\n".join(conversation.persons)).count(_plain(question)) > 1:
        return ""
    asked = _called(_ASK, answered(conversation.since(lambda entry: entry.text == brief))) is not None
    asked_now = _called(_ASK, answered(conversation.turn)) is not None
    return question if asked_now or not asked else ""


def _plain(text: str) -> str:
    return " ".join(re.sub(r"^[\s>]+", " ", text, flags=re.MULTILINE).split())


def _is(name: str, wanted: str) -> bool:
    """Whether this is our tool `wanted`, by any prefix that a CLI puts before the names of a server's tools."""
    return name == wanted or re.search(rf"[_./:-]{wanted}$", name) is not None


def _called(wanted: str, done: Mapping[str, str]) -> str | None:
    return next((text for name, text in done.items() if _is(name, wanted)), None)


def _tool(conversation: Conversation, wanted: str) -> Tool | None:
    return next((tool for tool in conversation.tools if _is(tool.name, wanted)), None)


def _search(conversation: Conversation) -> Tool | None:
    """The tool that finds more tools, as long as it has not been asked in this turn."""
    done = answered(conversation.turn)
    return next((tool for tool in conversation.tools if tool.searches and tool.name not in done), None)


def _offered(conversation: Conversation, wanted: str) -> bool:
    return _tool(conversation, wanted) is not None or _search(conversation) is not None


def _call(conversation: Conversation, wanted: str, says: Mapping[str, Any], open_schema: Schema | None = None) -> Reply:
    """A call of this tool; or of the one that finds it, where a CLI holds its tools back until they are looked for."""
    tool = _tool(conversation, wanted)
    if tool is None:
        search = _search(conversation)
        assert search is not None, "somebody looked whether it is offered"
        return Reply(calls=(ToolCall(search, fill(search.schema, {"": wanted, "query": wanted})),))
    return Reply(calls=(ToolCall(tool, _input(tool, says, open_schema)),))


def _input(tool: Tool, says: Mapping[str, Any], open_schema: Schema | None) -> Any:
    """The tool's input; an object in it that may hold anything is filled by the schema that was promised for it."""
    value = fill(tool.schema, says)
    for name, property_ in (tool.schema.get("properties") or {}).items():
        if open_schema and name in value and property_.get("type") == "object" and not property_.get("properties"):
            value[name] = fill(open_schema, says)
    return value


def _promised(conversation: Conversation) -> Schema | None:
    """The JSON Schema of a result that a brief shows in a `json` block."""
    for text in reversed(conversation.persons):
        try:
            shown = json.loads(block(text, "json") or "null")
        except ValueError:
            continue
        if isinstance(shown, dict) and "properties" in shown:
            return shown
    return None


def _command(shell: Tool, script: str) -> Any:
    """The script as this shell tool takes it; one that waits for output is told to wait as long as it may."""
    properties = shell.schema.get("properties") or {}
    as_list = properties.get("command", {}).get("type") == "array"
    known: dict[str, Any] = {
        "command": ["bash", "-lc", script] if as_list else script,
        "cmd": script,
        "yield_time_ms": 30_000,
    }
    return fill(shell.schema, {"": "Run the task's script"}, known)


def _summary(has_script: bool, shell: Tool | None, done: Mapping[str, str]) -> str:
    if not has_script:
        return "The task's text has no sh block: there was nothing to run."
    if shell is None:
        return "No shell was offered: the task's script was not run."
    # What a CLI adds to an answer for its model is no part of what was printed.
    printed = " ".join(re.sub(r"<system-reminder>.*?</system-reminder>", "", done[shell.name], flags=re.DOTALL).split())
    quote = printed[:_LONGEST_QUOTE] + ("…" if len(printed) > _LONGEST_QUOTE else "")
    return f"The task's script was run. The shell answered: {quote or 'nothing'}"


def _closing(conversation: Conversation, text: str, says: Mapping[str, Any] | None = None) -> Reply:
    """The last words of a turn: a text, or JSON where the API was told what it must fit."""
    if conversation.schema is None:
        return Reply(text)
    return Reply(json.dumps(fill(conversation.schema, {"": text, "summary": text, **(says or {})})))
