"""The stand-in provider as tests use it: ask it something, set what it says, look at what was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from rehearsal.server import Rehearsal

PATHS = {
    "anthropic": "anthropic/v1/messages",
    "responses": "openai/v1/responses",
    "chat": "openai/v1/chat/completions",
}
APIS = tuple(PATHS)

SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
RESULT = {
    "type": "object",
    "properties": {"summary": {"type": "string"}, "status": {"enum": ["done", "failed"]}, "note": {"type": "string"}},
    "required": ["summary", "status"],
}
TOOLS = {"bash": SHELL, "watchbill_submit_result": RESULT}
BRIEF = "Do this:\n\n```sh\necho hi > hi.txt\n```\n"


@dataclass(frozen=True)
class Event:
    name: str
    data: Any


def request(api: str, text: str = BRIEF, tools: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A request as this API takes it."""
    said = {"role": "user", "content": text}
    offered = (TOOLS if tools is None else tools).items()
    match api:
        case "anthropic":
            listed = [{"name": name, "input_schema": schema} for name, schema in offered]
            return {"model": "rehearsal", "max_tokens": 100, "messages": [said], "tools": listed, **more}
        case "responses":
            listed = [{"type": "function", "name": name, "parameters": schema} for name, schema in offered]
            return {"model": "rehearsal", "input": [said], "tools": listed, **more}
        case _:
            functions = [{"name": name, "parameters": schema} for name, schema in offered]
            listed = [{"type": "function", "function": function} for function in functions]
            return {"model": "rehearsal", "messages": [said], "tools": listed, **more}


class Provider:
    TOKEN = "what-a-run-may"

    def __init__(self, rehearsal: Rehearsal) -> None:
        self.url = rehearsal.models_url
        self.setup = {"Authorization": f"Bearer {(rehearsal.folder / 'setup-token').read_text()}"}
        self.http = httpx.Client(trust_env=False, headers={"Authorization": f"Bearer {self.TOKEN}"})

    def ask(self, api: str, body: dict[str, Any], **more: Any) -> httpx.Response:
        return self.http.post(f"{self.url}/{PATHS[api]}", json=body, **more)

    def answer(self, api: str, body: dict[str, Any]) -> Any:
        answer = self.ask(api, body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    @contextmanager
    def streaming(self, api: str, body: dict[str, Any]) -> Iterator[Iterator[Event]]:
        with self.http.stream("POST", f"{self.url}/{PATHS[api]}", json={**body, "stream": True}) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield parsed(answer.iter_lines())

    def events(self, api: str, body: dict[str, Any]) -> list[Event]:
        with self.streaming(api, body) as events:
            return list(events)

    def script(self, *steps: dict[str, Any], **more: Any) -> None:
        answer = self.http.post(f"{self.url}/script", json={"steps": steps, **more}, headers=self.setup)
        assert answer.status_code == 200, answer.text

    def fault(self, kind: str, **more: Any) -> None:
        """A fault while the model acts as it always does."""
        self.script(faults=[{"kind": kind, **more}])

    def asked(self) -> list[Any]:
        answer = self.http.get(f"{self.url}/requests", headers=self.setup)
        assert answer.status_code == 200, answer.text
        found: list[Any] = answer.json()
        return found

    def forget(self) -> None:
        self.http.delete(f"{self.url}/requests", headers=self.setup)


def parsed(lines: Iterator[str]) -> Iterator[Event]:
    """Server-sent events; the data as JSON, or as text where it is none."""
    name, data = "", ""
    for line in lines:
        if not line:
            yield Event(name, data if data == "[DONE]" else json.loads(data))
            name, data = "", ""
        elif line.startswith("event: "):
            name = line.removeprefix("event: ")
        else:
            assert line.startswith("data: "), line
            data = line.removeprefix("data: ")
