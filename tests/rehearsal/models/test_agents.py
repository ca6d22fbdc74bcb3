"""Real agent CLIs at work against the stand-in: they take what it says for a provider's word."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal.models.provider import BRIEF, Provider

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]
SCHEMA = {
    "type": "object",
    "properties": {"summary": {"type": "string"}},
    "required": ["summary"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Agent:
    """A CLI in a directory of its own. `run` answers the JSON that it printed, line by line."""

    name: str
    program: str
    home: Path
    workspace: Path
    provider: Provider

    def run(self, prompt: str, schema: dict[str, Any] | None = None) -> list[Any]:
        command, environment = COMMANDS[self.name](self, prompt, schema)
        scratch = self.home / "tmp"
        scratch.mkdir()
        done = subprocess.run(
            [self.program, *command],
            cwd=self.workspace,
            # codex makes no sandbox for a home that lies in the place for temporary files.
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(scratch), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=270,
        )
        lines = done.stdout.decode().splitlines()
        assert lines, done.stderr.decode()
        return [json.loads(line) for line in lines]


def claude(agent: Agent, prompt: str, schema: dict[str, Any] | None) -> tuple[list[str], dict[str, str]]:
    environment = {
        "CLAUDE_CONFIG_DIR": str(agent.home),
        "ANTHROPIC_API_KEY": Provider.TOKEN,
        "ANTHROPIC_BASE_URL": f"{agent.provider.url}/anthropic",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "ENABLE_TOOL_SEARCH": "false",
        "IS_SANDBOX": "1",
    }
    command = ["-p", prompt, "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"]
    command += ["--setting-sources", "", "--strict-mcp-config", "--tools", "Bash,Read"]
    return command + (["--json-schema", json.dumps(schema)] if schema else []), environment


def codex(agent: Agent, prompt: str, schema: dict[str, Any] | None) -> tuple[list[str], dict[str, str]]:
    (agent.home / "config.toml").write_text(f"""
        model = "gpt-5.5"
        model_provider = "stand-in"
        web_search = "disabled"
        check_for_update_on_startup = false
        [model_providers.stand-in]
        name = "stand-in"
        base_url = "{agent.provider.url}/openai/v1"
        env_key = "MODEL_TOKEN"
        wire_api = "responses"
        request_max_retries = 0
        stream_max_retries = 0
        [analytics]
        enabled = false
        [features]
        plugins = false
        apps = false
    """)
    command = ["exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write"]
    if schema:
        path = agent.home / "schema.json"
        path.write_text(json.dumps(schema))
        command += ["--output-schema", str(path)]
    return [*command, prompt], {"CODEX_HOME": str(agent.home), "MODEL_TOKEN": Provider.TOKEN}


def opencode(agent: Agent, prompt: str, schema: dict[str, Any] | None) -> tuple[list[str], dict[str, str]]:
    assert schema is None, "it takes no schema for its answer"
    model = {"limit": {"context": 100_000, "output": 4096}}
    options = {"baseURL": f"{agent.provider.url}/openai/v1", "apiKey": Provider.TOKEN}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"rehearsal": model}}
    off = ("MODELS_FETCH", "AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "PROJECT_CONFIG")
    environment = {f"OPENCODE_DISABLE_{name}": "1" for name in off}
    config = {"model": "stand-in/rehearsal", "provider": {"stand-in": provider}}
    environment["OPENCODE_CONFIG_CONTENT"] = json.dumps(config)
    return ["run", "--pure", "--format", "json", "--title", "rehearsal", prompt], environment


COMMANDS: dict[str, Callable[[Agent, str, dict[str, Any] | None], tuple[list[str], dict[str, str]]]] = {
    "claude": claude,
    "codex": codex,
    "opencode": opencode,
}

SHELLS = {"claude": ("Bash", "command"), "codex": ("exec_command", "cmd"), "opencode": ("bash", "command")}


@pytest.fixture(params=list(COMMANDS))
def agent(request: pytest.FixtureRequest, tmp_path: Path, provider: Provider) -> Agent:
    program = shutil.which(request.param)
    if program is None:
        pytest.skip(f"{request.param} is not on PATH")
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    workspace.mkdir()
    subprocess.run(["git", "init", "--quiet", str(workspace)], check=True)
    return Agent(request.param, program, home, workspace, provider)


def refusal(events: list[Any]) -> str:
    """How a CLI tells of the failure that ended it, as JSON."""
    failed = [
        event
        for event in events
        if event["type"] in ("error", "turn.failed") or (event["type"] == "result" and event["is_error"])
    ]
    assert failed, events
    return json.dumps(failed[-1])


def test_the_script_of_a_task_is_carried_out_with_the_clis_own_shell(agent: Agent) -> None:
    events = agent.run(BRIEF)
    assert (agent.workspace / "hi.txt").read_text() == "hi\n", events
    main = [asked for asked in agent.provider.asked() if asked["main"]]
    # codex holds the tools of others back, so the model looks once for one to hand its result in with.
    assert len(main) == (3 if agent.name == "codex" else 2)
    assert {asked["stream"] for asked in main} == {True}
    assert "The task's script was run." in json.dumps(events[-3:])


def test_a_script_is_followed_step_by_step_also_where_a_step_calls_two_tools(agent: Agent) -> None:
    shell, argument = SHELLS[agent.name]

    def step(script: str) -> dict[str, Any]:
        return {"tool": shell, "input": {argument: script}}

    agent.provider.script(
        {"text": "Two at once.", "tools": [step("echo 1 > one"), step("echo 2 > two")]},
        step("cat one two > three"),
        {"text": "The end of the script."},
    )
    events = agent.run("Go.")
    assert (agent.workspace / "three").read_text() == "1\n2\n"
    assert len([asked for asked in agent.provider.asked() if asked["main"]]) == 3
    assert "The end of the script." in json.dumps(events[-3:])


def test_a_refusal_for_want_of_money_ends_it_at_once(agent: Agent) -> None:
    agent.provider.fault("status", status=402, message="The budget is used up.", **{"from": 1})
    told = refusal(agent.run(BRIEF))
    assert "402" in told
    assert "The budget is used up." in told
    assert (agent.workspace / "hi.txt").exists()
    assert [asked["status"] for asked in agent.provider.asked() if asked["main"]] == [200, 402]


def test_a_dropped_stream_is_tried_again_or_told(agent: Agent) -> None:
    """codex with retries off tells of it; claude and opencode ask again by themselves and come to their end."""
    agent.provider.fault("drop", after=4, **{"from": 1, "count": 1})
    events = agent.run(BRIEF)
    faults = [asked["faults"] for asked in agent.provider.asked() if asked["main"]]
    assert (agent.workspace / "hi.txt").exists()
    if agent.name == "codex":
        assert faults == [[], ["drop"]]
        assert "stream disconnected" in refusal(events)
    else:
        assert faults == [[], ["drop"], []]
        assert "The task's script was run." in json.dumps(events[-3:])


def test_an_answer_fits_the_schema_that_the_cli_was_given(agent: Agent) -> None:
    if agent.name == "opencode":
        pytest.skip("opencode takes no schema for its answer")
    events = agent.run(BRIEF, SCHEMA)
    if agent.name == "claude":
        result = events[-1]["structured_output"]
    else:
        messages = [event["item"]["text"] for event in events if event.get("item", {}).get("type") == "agent_message"]
        result = json.loads(messages[-1])
    assert result.keys() == {"summary"}
    assert result["summary"].startswith("The task's script was run.")
