"""The tools, as an agent's client calls them: over real HTTP, with the SDK's own client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from relay import topics
from relay.tools import ASKED_ALREADY, ASKED_ENOUGH, RECORDED
from relay.topics import TOPICS
from store import notes
from store.audit import audit
from store.words import result_of
from tests.relay.conftest import MODEL, SCHEMA, Relay


@asynccontextmanager
async def client(relay: Relay, mode: str = "auto", token: str | None = None) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers=relay.headers(token), timeout=30) as http:
        transport = streamable_http_client(f"{relay.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as connected:
            yield connected


async def call(relay: Relay, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    async with client(relay) as connected:
        answer = await connected.call_tool(tool, arguments)
        return answer.content[0].text, answer.is_error


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_tools_are_offered_and_called_by_old_and_new_clients(relay_on_both: Relay, mode: str) -> None:
    async with client(relay_on_both, mode) as connected:
        offered = {tool.name: tool for tool in (await connected.list_tools()).tools}
        assert list(offered) == ["read_brief", "record_decision", "ask_person", "submit_result"]
        wanted = offered["submit_result"].input_schema
        assert wanted["properties"]["result"]["properties"] == SCHEMA["properties"]
        assert wanted["$defs"] == SCHEMA["$defs"]
        answer = await connected.call_tool("submit_result", {"result": {"summary": "Made it.", "parts": [1]}})
        assert "accepted for revision 1" in answer.content[0].text
        assert not answer.is_error
    (row,) = relay_on_both.words()
    assert (row.kind, row.body["result"]["summary"], row.refused) == ("result", "Made it.", "")


async def test_a_brief_is_read_by_its_topics_and_unknown_ones_are_told(relay_on_both: Relay) -> None:
    said = {}
    assert await call(relay_on_both, "record_decision", {"title": "Keep it", "text": "It is read."}) == (
        "recorded",
        False,
    )
    for topic in TOPICS:
        said[topic], failed = await call(relay_on_both, "read_brief", {"topic": topic})
        assert not failed
    assert said["task"] == "# Make it\n"
    assert said["text"].startswith("# Task 1: Make it\n\nCloses #7, says @ada.")
    assert "### n1.1 Keep it" in said["context"]
    assert (said["predecessors"], said["attempts"]) == (
        "This task follows no other.",
        "Nobody worked on this task before you.",
    )
    assert json.loads(said["answer"]) == SCHEMA
    assert "1. Make it — **working**" in said["plan"]
    assert "- `test -e made`" in said["rules"]
    assert "submit_result" in said["watchbill"]
    text, failed = await call(relay_on_both, "read_brief", {"topic": "weather"})
    assert failed
    assert "task, text, plan, rules, context, predecessors, attempts, answer, watchbill" in text


async def test_a_long_topic_is_read_page_by_page(relay_on_both: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "PAGE", 100)
    pages: list[str] = []
    for number in range(1, 100):
        text, failed = await call(relay_on_both, "read_brief", {"topic": "watchbill", "page": number})
        if failed:
            assert f"the topic watchbill has {len(pages)} pages" in text
            break
        shown, _, onward = text.rpartition("\n\n[Page ")
        assert onward.startswith(f"{number} of ")
        pages.append(shown)
    assert (
        "`read_brief` with topic `watchbill` and page 2 goes on"
        in (await call(relay_on_both, "read_brief", {"topic": "watchbill"}))[0]
    )
    monkeypatch.undo()
    assert "".join(pages) == (await call(relay_on_both, "read_brief", {"topic": "watchbill"}))[0]


async def test_a_decision_is_a_note_of_the_plan_without_what_looks_like_a_secret(relay_on_both: Relay) -> None:
    relay = relay_on_both
    body = {"title": "Use ghp_" + "a1B2" * 9, "text": "Because."}
    assert await call(relay, "record_decision", body) == ("recorded", False)
    with relay.graph.store.read() as connection:
        (note,) = notes.current(connection, relay.graph.plan)
        assert audit(connection) == ()
    assert (note.title, note.run_id, note.epoch) == ("Use [redacted]", relay.run.id, relay.run.epoch)


async def test_decisions_and_questions_are_kept_once(relay_on_both: Relay) -> None:
    for _ in range(2):
        decision = {"title": "Keep the cache", "text": "It is read at start."}
        assert await call(relay_on_both, "record_decision", decision) == ("recorded", False)
        assert await call(relay_on_both, "ask_person", {"question": "Which?"}) == (RECORDED, False)
    assert [(row.kind, row.body) for row in relay_on_both.words()] == [
        ("decision", {"title": "Keep the cache", "text": "It is read at start."}),
        ("question", {"question": "Which?"}),
    ]


async def test_a_result_that_does_not_fit_is_told_what_is_wrong_and_mended(relay_on_both: Relay) -> None:
    relay = relay_on_both
    text, failed = await call(relay, "submit_result", {"result": {"summary": "x", "parts": ["a"], "more": 1}})
    assert failed
    for told in ("'x' is too short", "parts[0]: 'a' is not of type 'integer'", "'more' was unexpected", "mend it"):
        assert told in text
    with relay.graph.store.read() as connection:
        assert result_of(connection, relay.run.id) is None
    text, failed = await call(relay, "submit_result", {"result": {"summary": "All done."}})
    assert not failed
    with relay.graph.store.read() as connection:
        result = result_of(connection, relay.run.id)
    assert result is not None
    assert (result.body, result.revision) == ({"summary": "All done."}, 1)
    assert result.brief[:12] in text
    assert [bool(row.refused) for row in relay.words()] == [True, False]


async def test_an_agent_that_asks_without_end_is_told_that_it_has_asked_enough(relay_on_both: Relay) -> None:
    said = [await call(relay_on_both, "ask_person", {"question": f"{n}" + "\U0001f600" * 7900}) for n in range(4)]
    assert said == [(RECORDED, False)] * 2 + [(ASKED_ENOUGH, True)] * 2
    assert len(relay_on_both.words()) == 2


async def test_a_result_is_refused_while_the_runs_question_is_open_and_its_agent_is_told_what_to_do(
    relay_on_both: Relay,
) -> None:
    relay = relay_on_both
    assert await call(relay, "ask_person", {"question": "Which of the two?"}) == (RECORDED, False)
    text, failed = await call(relay, "submit_result", {"result": {"summary": "Made one of them."}})
    assert (text, failed) == (f"not accepted: {ASKED_ALREADY}", True)
    with relay.graph.store.read() as connection:
        assert result_of(connection, relay.run.id) is None
    assert [(row.kind, row.refused) for row in relay.words()] == [("question", ""), ("result", ASKED_ALREADY)]


async def test_a_result_of_a_run_that_is_over_is_kept_and_refused(relay_on_both: Relay) -> None:
    relay = relay_on_both
    relay.end()
    text, failed = await call_without_list(relay, "submit_result", {"result": {"summary": "Too late."}})
    assert failed
    assert "nothing that it says counts any more" in text
    (row,) = relay.words()
    assert "counts any more" in row.refused
    for tool, arguments in (
        ("read_brief", {"topic": "task"}),
        ("record_decision", {"title": "t", "text": "x"}),
        ("ask_person", {"question": "?"}),
    ):
        text, failed = await call_without_list(relay, tool, arguments)
        assert (failed, "counts any more" in text) == (True, True)
    assert len(relay.words()) == 1


async def test_a_result_for_a_text_that_a_revision_has_changed_is_kept_and_refused(relay_on_both: Relay) -> None:
    relay = relay_on_both
    relay.graph.pause()
    relay.graph.revise("echo another", runtime="claude", model=MODEL)
    text, failed = await call_without_list(relay, "submit_result", {"result": {"summary": "Made it as it was."}})
    assert failed
    assert f"not accepted: revision 2 of the plan has changed task {relay.run.task_id} since" in text
    assert "mend it" not in text
    (row,) = relay.words()
    assert (row.kind, row.refused.startswith("revision 2 of the plan has changed")) == ("result", True)
    with relay.graph.store.read() as connection:
        assert result_of(connection, relay.run.id) is None
    text, failed = await call_without_list(relay, "read_brief", {"topic": "task"})
    assert (failed, "the text before" in text) == (True, True)


async def test_a_result_for_a_task_that_a_revision_left_alone_is_accepted(relay_on_both: Relay) -> None:
    relay = relay_on_both
    relay.graph.revise("true", runtime="claude", model=MODEL, concurrency="2")
    text, failed = await call(relay, "submit_result", {"result": {"summary": "Made it."}})
    assert (failed, "accepted for revision 1" in text) == (False, True)


async def call_without_list(relay: Relay, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    """A call alone, as a client makes it that has been connected for long."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {**relay.headers(), "Accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient() as http:
        answer = (await http.post(f"{relay.url}/mcp", json=message, headers=headers)).json()["result"]
    return answer["content"][0]["text"], answer["isError"]


async def test_results_that_come_at_once_are_each_one_row_and_one_of_them_stands(relay_on_both: Relay) -> None:
    bodies = [{"summary": f"Done {n % 3}."} for n in range(12)]
    answers = await asyncio.gather(
        *(call_without_list(relay_on_both, "submit_result", {"result": body}) for body in bodies)
    )
    assert not any(failed for _, failed in answers)
    rows = relay_on_both.words()
    assert [row.n for row in rows] == list(range(1, len(rows) + 1))
    with relay_on_both.graph.store.read() as connection:
        assert result_of(connection, relay_on_both.run.id).body == rows[-1].body["result"]


async def test_who_waits_to_write_holds_up_nobody_who_reads(relay: Relay) -> None:
    decisions = [{"title": f"t{n}", "text": "x"} for n in range(12)]
    with relay.graph.store.write():
        waiting = [asyncio.create_task(call_without_list(relay, "record_decision", body)) for body in decisions]
        await asyncio.sleep(0.5)
        text, failed = await call_without_list(relay, "read_brief", {"topic": "task"})
        assert (text, failed) == ("# Make it\n", False)
        assert not any(one.done() for one in waiting)
    assert await asyncio.gather(*waiting) == [("recorded", False)] * 12
    assert len(relay.words()) == 12


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("submit_result", {}, "'result' is a required property"),
        ("submit_result", {"result": {"summary": "x" * 30_000}}, "say less"),
        ("ask_person", {"question": ""}, "non-empty"),
        ("ask_person", {"question": "x" * 8001}, "too long"),
        ("record_decision", {"title": "t"}, "'text' is a required property"),
        ("read_brief", {"topic": 3}, "is not of type 'string'"),
        ("drop_tables", {}, "there is no tool"),
    ],
)
async def test_a_call_that_is_not_right_is_told_how(
    relay: Relay, monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any], told: str
) -> None:
    monkeypatch.setattr("relay.tools.MAX_RESULT", 20_000)
    text, failed = await call_without_list(relay, tool, arguments)
    assert failed
    assert told in text
    assert len(text) < 500
    assert relay.words() == []


async def test_what_json_has_no_place_for_is_refused(relay: Relay) -> None:
    for value in ("NaN", "[" * 5000 + "]" * 5000):
        message = (
            '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", '
            f'"params": {{"name": "submit_result", "arguments": {{"result": {value}}}}}}}'
        )
        headers = {**relay.headers(), "Accept": "application/json, text/event-stream"}
        headers["Content-Type"] = "application/json"
        answer = relay.post("/mcp", content=message, headers=headers)
        assert "accepted for" not in answer.text
        assert answer.status_code in {200, 400}
    assert relay.words() == []


def test_nothing_is_waited_for_at_the_tools_address(relay: Relay) -> None:
    for method in ("GET", "DELETE"):
        assert httpx.request(method, f"{relay.url}/mcp", headers=relay.headers()).status_code == 405


def test_whatever_waits_for_the_store_holds_no_model_call_up(metered: Relay) -> None:
    with ThreadPoolExecutor(24) as pool:
        with metered.graph.store.write():
            # Nobody else can write now, and more ask to than there are writers.
            said = [
                pool.submit(metered.post, "/events", json={"events": [{"id": f"e{n}", "kind": "k"}]}) for n in range(24)
            ]
            answers = [metered.ask().status_code for _ in range(5)]
            assert not any(event.done() for event in said)
        assert answers == [200] * 5
        assert [event.result().status_code for event in said] == [202] * 24
