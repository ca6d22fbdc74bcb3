"""What the model of a rehearsal says, told from conversations alone."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from rehearsal.models import actor
from rehearsal.models.conversation import Conversation, Entry, Person, Reply, Result, Said, Tool, person
from rehearsal.models.filling import fill
from tests.rehearsal.models.provider import APIS, BRIEF, RESULT, SHELL, Provider, request

BASH = Tool("Bash", SHELL)
SUBMIT = Tool("mcp__watchbill__submit_result", RESULT)
QUESTION = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
ASK = Tool("mcp__watchbill__ask_person", QUESTION)
SEARCH = Tool("tool_search", {"type": "object", "properties": {"query": {"type": "string"}}}, searches=True)
ASKING = "Decide:\n\n```ask\nWhich colour?\n```\n\n```sh\necho red > colour\n```\n"


def said(*entries: Entry, tools: tuple[Tool, ...] = (BASH, SUBMIT), **more: Any) -> Reply:
    return actor.reply(Conversation("rehearsal", "", entries, tools, **more))


def called(reply: Reply) -> list[tuple[str, Any]]:
    return [(call.tool.name, call.input) for call in reply.calls]


def ran(*tools: Tool, number: int = 0) -> list[Entry]:
    """One turn of the model for each tool, with what it answered."""
    entries: list[Entry] = []
    for tool in tools:
        number += 1
        entries += [Said("", {str(number): tool.name}), Result(str(number), f"{tool.name} says so")]
    return entries


def test_a_script_is_run_then_a_result_handed_in_then_it_ends() -> None:
    brief = Person(BRIEF)
    assert called(said(brief)) == [("Bash", {"command": "echo hi > hi.txt"})]
    [(name, result)] = called(said(brief, *ran(BASH)))
    assert name == SUBMIT.name
    assert result == {"summary": "The task's script was run. The shell answered: Bash says so", "status": "done"}
    end = said(brief, *ran(BASH, SUBMIT))
    assert (end.calls, end.text) == ((), result["summary"])


def test_what_a_cli_adds_to_an_answer_for_its_model_is_not_told_of_the_work() -> None:
    added = "done\n\n<system-reminder>\n<total_tokens>7 tokens left</total_tokens>\n</system-reminder>"
    entries = [Said("", {"1": BASH.name}), Result("1", added)]
    [(_, result)] = called(said(Person(BRIEF), *entries))
    assert result["summary"] == "The task's script was run. The shell answered: done"


def test_without_our_tools_it_runs_the_script_and_ends() -> None:
    assert called(said(Person(BRIEF), tools=(BASH,))) != []
    assert said(Person(BRIEF), *ran(BASH), tools=(BASH,)).calls == ()


def test_a_task_without_a_script_says_that_there_was_none() -> None:
    [(name, result)] = called(said(Person("Think about it.")))
    assert (name, result["summary"]) == (SUBMIT.name, "The task's text has no sh block: there was nothing to run.")
    assert "not run" in said(Person(BRIEF), tools=(Tool("Read"),)).text


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"command": {"type": "string"}}, {"command": "echo hi > hi.txt"}),
        ({"command": {"type": "array"}}, {"command": ["bash", "-lc", "echo hi > hi.txt"]}),
        (
            {"cmd": {"type": "string"}, "yield_time_ms": {"type": "number"}, "tty": {"type": "boolean"}},
            {"cmd": "echo hi > hi.txt", "yield_time_ms": 30_000},
        ),
        (
            {"command": {"type": "string"}, "description": {"type": "string"}},
            {"command": "echo hi > hi.txt", "description": "Run the task's script"},
        ),
    ],
)
def test_each_clis_shell_is_called_by_its_own_schema(properties: dict[str, Any], expected: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": properties, "required": [name for name in properties if name != "tty"]}
    [(_, given)] = called(said(Person(BRIEF), tools=(Tool("shell", schema),)))
    assert given == expected


def test_a_new_message_runs_the_brief_once_more_and_what_a_cli_adds_does_not() -> None:
    before = [Person(BRIEF), *ran(BASH, SUBMIT), Said("Done.")]
    assert called(said(*before, person("CI failed: try again."))) == called(said(Person(BRIEF)))
    for added in ("Stop hook feedback: hand in your result", "<system-reminder>\nhello\n</system-reminder>"):
        assert said(*before, person(added)).calls == ()


def test_the_newest_brief_counts() -> None:
    other = Person(BRIEF.replace("hi", "ho"))
    assert called(said(Person(BRIEF), *ran(BASH), other)) == [("Bash", {"command": "echo ho > ho.txt"})]


def test_instructions_of_a_repository_are_not_run() -> None:
    for added in ("<system-reminder>\n# CLAUDE.md\n```sh\nrm x\n```\n", "# AGENTS.md instructions\n```sh\nrm x\n```\n"):
        assert [name for name, _ in called(said(person(added), Person("Think about it.")))] == [SUBMIT.name]


def test_a_question_is_asked_first_and_ends_the_turn() -> None:
    tools = (BASH, SUBMIT, ASK)
    brief = Person(ASKING)
    assert called(said(brief, tools=tools)) == [(ASK.name, {"question": "Which colour?"})]
    asked = ran(ASK)
    assert said(brief, *asked, tools=tools).calls == ()
    work = [("Bash", {"command": "echo red > colour"})]
    answer = [*asked, Said("I have asked."), Person("Red.")]
    assert called(said(brief, *answer, tools=tools)) == work
    later = [*answer, *ran(BASH, SUBMIT, number=5), Person("Once more.")]
    assert called(said(brief, *later, tools=tools)) == work


def test_a_question_is_not_asked_where_nobody_can_be_or_the_brief_has_the_answer() -> None:
    work = [("Bash", {"command": "echo red > colour"})]
    assert called(said(Person(ASKING))) == work
    answered = f"{ASKING}\nYou asked:\n\n> Which\n> colour?\n\nThe answer: red.\n"
    assert called(said(Person(answered), tools=(BASH, SUBMIT, ASK))) == work


def test_tools_that_are_held_back_are_looked_for() -> None:
    held_back = (BASH, SEARCH)
    [(name, query)] = called(said(Person(BRIEF), *ran(BASH), tools=held_back))
    assert (name, query) == ("tool_search", {"query": "submit_result"})
    after = [Person(BRIEF), *ran(BASH, SEARCH)]
    assert [name for name, _ in called(said(*after, tools=(*held_back, SUBMIT)))] == [SUBMIT.name]
    assert said(*after, tools=held_back).calls == ()


def test_an_answers_schema_is_met_by_claudes_tool_and_by_a_text() -> None:
    structured = Tool("StructuredOutput", RESULT)
    [(name, given)] = called(said(Person(BRIEF), *ran(BASH, SUBMIT), tools=(BASH, SUBMIT, structured)))
    assert name == "StructuredOutput"
    jsonschema.validate(given, RESULT)
    text = said(Person(BRIEF), *ran(BASH, SUBMIT), schema=RESULT).text
    jsonschema.validate(json.loads(text), RESULT)
    beside = said(Person("A title?"), tools=(), schema=RESULT).text
    jsonschema.validate(json.loads(beside), RESULT)


def test_a_result_that_may_be_anything_follows_the_schema_that_the_brief_shows() -> None:
    anything = {"type": "object", "properties": {"result": {"type": "object"}}, "required": ["result"]}
    submit = Tool("watchbill_submit_result", anything)
    shown = Person(f"{BRIEF}\nHand in:\n\n```json\n{json.dumps(RESULT)}\n```\n")
    [(_, given)] = called(said(shown, *ran(BASH), tools=(BASH, submit)))
    jsonschema.validate(given["result"], RESULT)
    [(_, given)] = called(said(Person(BRIEF), *ran(BASH), tools=(BASH, submit)))
    assert given["result"].keys() == {"summary"}


def test_what_opencode_puts_into_quotes_is_read_without_them() -> None:
    quoted = person('"Do:\n\n```sh\necho \\"hi\\"\n```"')
    assert called(said(quoted)) == [("Bash", {"command": 'echo "hi"'})]
    assert person('"one" and "two"').text == '"one" and "two"'


TEXT = {"type": "string"}


def an_object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


@pytest.mark.parametrize(
    "schema",
    [
        {**an_object(["a"], a={"$ref": "#/$defs/a"}), "$defs": {"a": {"type": "integer", "minimum": 3}}},
        {"anyOf": [{"type": "null"}, {"type": "array", "minItems": 2, "items": {**TEXT, "maxLength": 4}}]},
        {"allOf": [an_object(["a"], a={"const": 7}), an_object(["b"], b={"type": "boolean"})]},
        {"type": ["null", "string"], "minLength": 50},
        an_object(["a"], a={"oneOf": [{"enum": ["x", "y"]}, {"type": "null"}]}),
        an_object(["c"], c={"type": "number", "exclusiveMinimum": 0}),
        {**an_object([], summary=TEXT), "additionalProperties": False},
        an_object(["a"], a=an_object(["b"], b={"type": "array", "items": TEXT})),
    ],
)
def test_what_is_filled_in_fits_its_schema(schema: dict[str, Any]) -> None:
    jsonschema.validate(fill(schema, {"": "So it is.", "summary": "All of it."}), schema)


def test_a_schema_without_an_end_is_told_apart() -> None:
    endless = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    with pytest.raises(ValueError, match="requires itself"):
        fill(endless, {"": "x"})


@pytest.mark.parametrize("api", APIS)
def test_a_whole_task_in_each_api(provider: Provider, api: str) -> None:
    body = request(api)
    messages: list[Any] = body["input" if api == "responses" else "messages"]
    names, sizes = [], []
    for _ in range(3):
        answer = provider.answer(api, body)
        names.append(continued(api, messages, answer))
        sizes.append(answer["usage"].get("prompt_tokens") or answer["usage"]["input_tokens"])
    assert names == [["bash"], ["watchbill_submit_result"], []]
    assert sizes == sorted(set(sizes))


@pytest.mark.parametrize("api", APIS)
def test_steps_follow_the_turns_of_the_model(provider: Provider, api: str) -> None:
    one = {"tool": "bash", "input": {"command": "1"}}
    provider.script({"tools": [one, one]}, {"tool": "watchbill_submit_result", "input": {}}, {"text": "The end."})
    body = request(api)
    messages: list[Any] = body["input" if api == "responses" else "messages"]
    said = [continued(api, messages, provider.answer(api, body)) for _ in range(4)]
    assert said == [["bash", "bash"], ["watchbill_submit_result"], [], []]
    messages.append({"role": "user", "content": "Go on."})
    assert continued(api, messages, provider.answer(api, body)) == ["bash", "bash"]


def test_what_was_sent_before_counts_as_cached(provider: Provider) -> None:
    body = request("chat")
    first = provider.answer("chat", body)
    continued("chat", body["messages"], first)
    second = provider.answer("chat", body)
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
    # Brackets and commas are all that the two differ in.
    assert abs(cached - first["usage"]["prompt_tokens"]) <= 1


def continued(api: str, messages: list[Any], answer: Any) -> list[str]:
    """Put the reply and what its tools answer at the end, as a CLI would; the names of the tools."""
    if api == "anthropic":
        messages.append({"role": "assistant", "content": answer["content"]})
        calls = [(each["id"], each["name"]) for each in answer["content"] if each["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": id, "content": "ok"} for id, _ in calls]
        messages += [{"role": "user", "content": results}] if calls else []
    elif api == "responses":
        messages += answer["output"]
        calls = [(each["call_id"], each["name"]) for each in answer["output"] if each["type"] == "function_call"]
        messages += [{"type": "function_call_output", "call_id": id, "output": "ok"} for id, _ in calls]
    else:
        message = answer["choices"][0]["message"]
        messages.append(message)
        calls = [(each["id"], each["function"]["name"]) for each in message.get("tool_calls", [])]
        messages += [{"role": "tool", "tool_call_id": id, "content": "ok"} for id, _ in calls]
    return [name for _, name in calls]
