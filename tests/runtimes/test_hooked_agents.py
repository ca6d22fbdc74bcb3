"""Real agent CLIs under a policy: what is refused is refused by all of them, and stands in the record.

The model is the stand-in; what it wants to do is a script.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rehearsal.server import Rehearsal
from runtimes import hooks
from runtimes.folder import Ended, RunFolder
from runtimes.port import DEFAULT_PATH, Door, Launch, RunResult
from runtimes.registry import RUNTIMES
from tests.rehearsal.models.provider import Provider
from tests.runtimes.conftest import Bench
from tests.runtimes.hooking import Hooked

pytestmark = [pytest.mark.agents, pytest.mark.timeout(240)]

REMINDER = "This is the brief of the task that you are at work on:"
MODELS = {"claude": "claude-sonnet-4-6", "codex": "gpt-5.5", "opencode": "rehearsal"}
SHELLS = {"claude": ("Bash", "command"), "codex": ("exec_command", "cmd"), "opencode": ("bash", "command")}


class Agent(Hooked):
    """A CLI in a run's folder, with what its model is to say."""

    def __init__(self, home: Path, cli: str, bench: Bench, provider: Provider) -> None:
        door = Door(provider.url, "", Provider.TOKEN)
        program = shutil.which(cli)
        assert program is not None
        path = f"{Path(program).parent}:{DEFAULT_PATH}"
        super().__init__(home, cli, model=MODELS[cli], door=door, schema=None, timeout=200, path=path)
        subprocess.run(["git", "init", "--quiet", str(self.workspace)], check=True)
        self.bench, self.provider = bench, provider

    def shell(self, line: str) -> dict[str, Any]:
        tool, key = SHELLS[self.cli]
        return {"tool": tool, "input": {key: line, **({} if self.cli == "codex" else {"description": "d"})}}

    def writing(self, path: str) -> dict[str, Any]:
        match self.cli:
            case "claude":
                return {"tool": "Write", "input": {"file_path": path, "content": "x\n"}}
            case "codex":
                return {"tool": "apply_patch", "input": f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n"}
            case _:
                return {"tool": "write", "input": {"filePath": path, "content": "x\n"}}

    def launch(self) -> Launch:
        return RUNTIMES[self.cli].launch(self.job)

    def begin(self, *steps: dict[str, Any], launch: Launch | None = None, **script: Any) -> RunFolder:
        self.provider.script(*steps, {"text": "Done."}, **script)
        folder = RunFolder(self.folder)
        self.bench.folders.append(folder)
        folder.spawn(launch or self.launch(), datetime.now(UTC) + timedelta(seconds=220))
        return folder

    def run(self, *steps: dict[str, Any], launch: Launch | None = None) -> tuple[RunResult, RunFolder]:
        folder = self.begin(*steps, launch=launch)
        wait_for(lambda: isinstance(folder.status(), Ended))
        return self.bench.end_of(folder), folder

    def refusals(self) -> list[dict[str, Any]]:
        return [event for event in self.events() if event["event"] == "refused"]

    def told(self) -> str:
        """Everything that the model was told."""
        return str(self.provider.asked())


def wait_for(look: Callable[[], bool]) -> None:
    """Longer than for other runs: on a busy machine a CLI alone takes a minute to start."""
    deadline = time.monotonic() + 200
    while not look():
        assert time.monotonic() < deadline, "this never became true"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with Rehearsal(tmp_path_factory.mktemp("standin") / "folder") as rehearsal:
        made = Provider(rehearsal)
        yield made
        made.http.close()


@pytest.fixture(params=["claude", "codex", "opencode"])
def agent(request: pytest.FixtureRequest, tmp_path: Path, bench: Bench, served: Provider) -> Iterator[Agent]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not on PATH")
    served.forget()
    yield Agent(tmp_path / "agent", request.param, bench, served)
    served.script()


def test_a_refused_command_and_path_are_not_carried_out_and_stand_in_the_record(agent: Agent) -> None:
    marks = agent.workspace / "pushed", agent.workspace / ".github" / "ci.yml", agent.folder / "outside"
    agent.run(
        agent.shell("touch pushed; bash -c 'git push origin main'"),
        agent.writing(str(marks[1])),
        agent.writing(str(marks[2])),
        agent.writing(str(agent.workspace / "src" / "a.py")),
    )
    assert [mark for mark in marks if mark.exists()] == []
    refused = agent.refusals()
    assert ["git push*" in event["why"] for event in refused] == [True, False, False]
    assert [event["cli"] for event in refused] == [agent.cli] * 3
    assert [mark.name in event["what"] for mark, event in zip(marks, refused, strict=True)] == [True, True, True]
    # The model is told why, so that it can go another way.
    assert all(event["why"].split("(")[0].strip("'\"") in agent.told() for event in refused)
    assert (agent.workspace / "src" / "a.py").exists()


def test_what_is_not_refused_is_carried_out(agent: Agent) -> None:
    agent.run(agent.shell("echo hi > said"), agent.writing(str(agent.workspace / "src" / "a.py")))
    assert (agent.workspace / "said").read_text() == "hi\n"
    assert (agent.workspace / "src" / "a.py").exists()
    assert agent.refusals() == []
    assert [event["event"] for event in agent.events()].count("used") == 2


@pytest.mark.parametrize("broken", ["hook", "interpreter", "policy"])
def test_a_hook_that_cannot_answer_refuses(agent: Agent, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as breaking:
        if broken == "hook":
            script = agent.folder / "broken.py"
            script.write_text("raise SystemExit(1)\n")
            breaking.setattr(hooks, "_HOOK", script)
        elif broken == "interpreter":
            breaking.setattr(sys, "executable", "/nonexistent/python")
        launch = agent.launch()
    if broken == "policy":
        agent.policy_file.write_text("{")
    agent.run(agent.shell("touch done"), agent.writing(str(agent.workspace / "done")), launch=launch)
    assert not (agent.workspace / "done").exists()
    assert "refused" in agent.told()


def test_opencode_without_our_plugin_has_no_tool_at_all(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    if agent.cli != "opencode":
        pytest.skip("only opencode has its hook as a plugin")
    plugin = agent.folder / "broken.js"
    plugin.write_text("this is no JavaScript")
    monkeypatch.setattr(hooks, "_PLUGIN", plugin)
    agent.run(agent.shell("touch done"), agent.writing(str(agent.workspace / "done")))
    assert not (agent.workspace / "done").exists()
    assert agent.events() == []


def test_an_agent_that_ends_without_its_result_is_sent_back(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    if agent.cli == "opencode":
        pytest.skip("opencode has no event that can keep it from ending")
    original = hooks._common_files

    def with_result(job: Any) -> Any:
        return original(replace(job, schema={"type": "object"}, door=replace(job.door, mcp="http://127.0.0.1:9/mcp")))

    monkeypatch.setattr(hooks, "_common_files", with_result)
    agent.run(agent.shell("true"))
    assert [event["event"] for event in agent.events() if event["event"] in ("sent_back", "stopped")] == [
        "sent_back", "sent_back", "stopped",
    ]  # fmt: skip
    assert "Your result is missing" in agent.told()


def test_a_session_that_is_resumed_gets_its_brief_again(agent: Agent, tmp_path: Path) -> None:
    if agent.cli == "opencode":
        pytest.skip("opencode has no event for a session that is resumed")
    agent.job = replace(agent.job, memory=tmp_path / "memory")
    session = RUNTIMES[agent.cli].judge(*agent.run(agent.shell("true"))).session
    later = Agent(tmp_path / "later", agent.cli, agent.bench, agent.provider)
    shutil.rmtree(later.workspace)
    later.job = replace(agent.job, folder=later.folder, run_id="run-2", session=session, note="Go on.")
    later.write()
    assert REMINDER not in later.told()
    later.run(later.shell("true"))
    assert [event["what"] for event in later.events() if event["event"] == "session"] == ["resume"]
    assert f"{REMINDER}\\n\\n{later.job.brief}" in json.dumps(later.provider.asked())


FULL = {"claude": 199_000, "codex": 260_000, "opencode": 199_000}
"""Tokens of input after which each sums up what it remembers."""


def test_an_agent_that_sums_up_what_it_remembers_has_its_brief_at_hand(agent: Agent) -> None:
    # Asked for a summary it says the same again: there the text counts.
    step = {"text": "I look.", **agent.shell("true")}
    folder = agent.begin(step, usage={"input": FULL[agent.cli], "output": 10})
    # A model that is said to be full after every answer has it sum up again and again.
    wait_for(lambda: "compact" in [event.get("what") for event in agent.events()])
    wait_for(lambda: f"{REMINDER}\\n\\n{agent.job.brief}" in json.dumps(agent.provider.asked()))
    folder.stop("seen")
