"""The real CLIs, through the supervisor, against a stand-in for their models."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from domain.rules import Policy
from domain.run import EndKind, Outcome
from rehearsal.server import Rehearsal
from runtimes.agent import PACKAGES
from runtimes.folder import Ended, Live, RunFolder
from runtimes.hooks import RESULT_FILE
from runtimes.port import Door, Job, RunResult, Verdict
from runtimes.registry import RUNTIMES
from tests.rehearsal.models.provider import Provider
from tests.runtimes.mcp_server import RESULT, serving

pytestmark = [pytest.mark.agents, pytest.mark.slow, pytest.mark.timeout(300)]

TOKEN = "eyJ0eXAi.a-secret-of-the-run.c2lnbmVk"
MODELS = {"claude": "claude-sonnet-4-6", "codex": "gpt-5.5", "opencode": "rehearsal"}
SHELLS = {"claude": ("Bash", "command"), "codex": ("exec_command", "cmd"), "opencode": ("bash", "command")}


class Agents:
    """Sends one CLI out on jobs, in a repository of its own."""

    def __init__(self, cli: str, home: Path, provider: Provider, bench: Any) -> None:
        self.cli, self.home, self.provider, self.bench = cli, home, provider, bench
        self.runtime = RUNTIMES[cli]
        self.work = home / "work"
        self.runs = 0
        subprocess.run(["git", "init", "--quiet", str(self.work)], check=True)
        self.folder: RunFolder = bench.folder("none")

    def job(self, script: str = "echo hi > hi.txt", **changes: Any) -> Job:
        self.runs += 1
        facts: dict[str, Any] = {
            "run_id": f"plan-0a1b2c3d-1-author-{self.runs}",
            "task_id": "plan-0a1b2c3d-1",
            "task_title": "Do it",
            "task_body": "",
            "workspace": self.work,
            "folder": self.home / "runs" / f"run-{self.runs}",
            "timeout": 240,
            "path": os.environ["PATH"],
            "brief": f"# The task in hand\n\n```sh\n{script}\n```\n",
            "model": MODELS[self.cli],
            "memory": self.home / "memory",
            "door": Door(self.provider.url, "", TOKEN),
        }
        return Job(**{**facts, **changes})

    def send(self, job: Job) -> RunFolder:
        self.folder = self.bench.folder(job.folder.name)
        self.folder.spawn(self.runtime.launch(job), datetime.now(UTC) + timedelta(seconds=600))
        return self.folder

    def end(self) -> tuple[Verdict, RunResult]:
        while isinstance(status := self.folder.status(), Live):
            time.sleep(0.05)
        assert isinstance(status, Ended)
        result = status.result
        return self.runtime.judge(result, self.folder), result

    def perform(self, job: Job) -> Verdict:
        self.send(job)
        return self.end()[0]

    def shell(self, command: str) -> dict[str, Any]:
        """A step in which the model uses the CLI's shell tool."""
        name, argument = SHELLS[self.cli]
        more = {} if self.cli == "codex" else {"description": "what the task says"}
        return {"tool": name, "input": {argument: command, **more}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    with Rehearsal(tmp_path_factory.mktemp("standin") / "folder") as rehearsal:
        yield rehearsal


@pytest.fixture
def provider(served: Rehearsal) -> Iterator[Provider]:
    made = Provider(served)
    yield made
    made.script()
    made.http.delete(f"{made.url}/requests", headers=made.setup)
    made.http.close()


@pytest.fixture(params=sorted(MODELS))
def agents(request: pytest.FixtureRequest, tmp_path: Path, provider: Provider, bench: Any) -> Agents:
    if shutil.which(request.param) is None:
        pytest.skip(f"there is no {request.param} on PATH")
    return Agents(request.param, tmp_path, provider, bench)


def test_a_file_is_changed_by_the_agents_own_tool(agents):
    verdict = agents.perform(agents.job())
    assert (verdict.outcome, verdict.exit_code, verdict.reason) == (Outcome.DONE, 0, "")
    assert (agents.work / "hi.txt").read_text() == "hi\n"
    assert verdict.session
    asked = agents.provider.asked()
    assert {request["model"] for request in asked} == {MODELS[agents.cli]}
    assert "The task in hand" in json.dumps(asked[-1]["messages"])


def test_a_session_is_gone_on_with_after_kill_9_and_knows_what_was(agents):
    agents.provider.script(agents.shell("touch started; exec sleep 1000"))
    run = agents.send(agents.job())
    agents.bench.until((agents.work / "started").exists)
    for pid, _ in agents.bench.left_of(run):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    broken, result = agents.end()
    assert (broken.outcome, result.kind) == (Outcome.CRASHED, EndKind.KILLED)
    agents.provider.script({"text": "I go on."})
    again = agents.perform(agents.job(session=broken.session, note="A person says: use tabs."))
    assert (again.outcome, again.session) == (Outcome.DONE, broken.session)
    last = json.dumps(agents.provider.asked()[-1]["messages"])
    assert all(said in last for said in ("The task in hand", "touch started", "A person says: use tabs."))


def test_a_session_that_is_not_there_is_begun_afresh(agents):
    verdict = agents.perform(agents.job(session="0199aaaa-bbbb-7ccc-8ddd-eeeeffff0000", note="unheard"))
    assert verdict.outcome is Outcome.DONE
    assert verdict.session != "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0000"
    assert "unheard" not in json.dumps(agents.provider.asked()[-1]["messages"])


def test_no_money_is_a_refusal_after_one_request(agents):
    agents.provider.fault("status", status=402, message="The budget of this run is used up.")
    verdict = agents.perform(agents.job())
    assert verdict.outcome is Outcome.REFUSED
    assert "The budget of this run is used up." in verdict.reason
    assert len([request for request in agents.provider.asked() if request["main"]]) == 1


def test_a_stream_that_breaks_off_for_good_is_a_dropped_run(agents):
    agents.provider.fault("drop", after=3)
    assert agents.perform(agents.job()).outcome is Outcome.DROPPED


def test_a_door_that_nobody_answers_at_is_a_dropped_run(agents):
    # Codex waits for its network for as long as it may.
    timeout = 10 if agents.cli == "codex" else 240
    job = agents.job(timeout=timeout, door=Door("http://127.0.0.1:9/models", "", TOKEN))
    assert agents.perform(job).outcome is Outcome.DROPPED


def test_a_refusal_ends_a_run_unless_the_agent_goes_on_otherwise(agents):
    refused, allowed = agents.shell("git push origin main"), agents.shell("echo other > other.txt")
    policy = Policy(commands=("git push*",))
    agents.provider.script(refused, {"text": "I cannot."})
    verdict = agents.perform(agents.job(policy=policy))
    assert verdict.outcome is Outcome.DENIED
    assert "was refused" in verdict.reason
    agents.provider.script(refused, allowed, {"text": "Done otherwise."})
    assert agents.perform(agents.job(policy=policy)).outcome is Outcome.DONE
    assert (agents.work / "other.txt").exists()


def test_stopping_ends_all_of_it_and_keeps_the_session(agents):
    agents.provider.script(agents.shell("touch started; exec sleep 1000"))
    run = agents.send(agents.job())
    agents.bench.until((agents.work / "started").exists)
    run.stop("a person cancelled the task")
    verdict, _ = agents.end()
    assert (verdict.outcome, verdict.reason) == (Outcome.STOPPED, "a person cancelled the task")
    assert verdict.session
    assert agents.bench.left_of(run) == set()


def test_a_result_comes_by_our_tool_under_the_runs_credential(agents):
    job = agents.job(schema=RESULT)
    with serving(job.folder / RESULT_FILE) as tools:
        verdict = agents.perform(replace(job, door=Door(agents.provider.url, tools.url, TOKEN)))
    assert verdict.outcome is Outcome.DONE
    assert [set(call) for call in tools.calls] == [{"summary"}]
    assert tools.authorizations == {f"Bearer {TOKEN}"}


def test_a_result_comes_by_the_clis_own_means_where_it_has_them(agents):
    verdict = agents.perform(agents.job(schema={**RESULT, "additionalProperties": False}))
    assert verdict.outcome is Outcome.DONE
    if agents.cli == "opencode":
        assert verdict.result is None
    else:
        assert set(verdict.result) == {"summary"}


def test_nothing_secret_is_where_tools_or_others_could_come_by_it(agents):
    job = agents.job("{ env; cat /proc/self/environ /proc/[0-9]*/cmdline; } > seen.txt 2>/dev/null", schema=RESULT)
    with serving(job.folder / RESULT_FILE) as tools:
        job = replace(job, door=Door(agents.provider.url, tools.url, TOKEN))
        assert agents.perform(job).outcome is Outcome.DONE
    seen = (agents.work / "seen.txt").read_text(errors="replace")
    assert "PATH=" in seen
    assert TOKEN not in seen
    assert TOKEN not in (job.folder / "spec.json").read_text()
    files = [path for path in agents.home.rglob("*") if path.is_file() and not path.is_symlink()]
    holding = [path for path in files if TOKEN.encode() in path.read_bytes()]
    assert holding
    assert {path: oct(path.stat().st_mode & 0o077) for path in holding} == dict.fromkeys(holding, "0o0")
    assert not [path for path in holding if path.is_relative_to(agents.work)]
    assert all(folder.stat().st_mode & 0o077 == 0 for folder in (job.folder, job.memory))
    kept = b"".join(path.read_bytes() for path in job.folder.glob("stream.*")) + RunFolder(job.folder).tail()
    assert TOKEN.encode() not in kept


def test_a_repositorys_own_settings_do_not_lead_an_agent_astray(agents):
    for path, text in {
        ".claude/settings.json": json.dumps({"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}}),
        ".codex/config.toml": 'model_provider = "nowhere"\n',
        "opencode.json": json.dumps({"model": "nowhere/none"}),
    }.items():
        (agents.work / path).parent.mkdir(exist_ok=True)
        (agents.work / path).write_text(text)
    assert agents.perform(agents.job()).outcome is Outcome.DONE


def test_the_installed_version_is_told(agents):
    found = agents.runtime.installed(os.environ["PATH"])
    assert (found.missing, found.version[0].isdecimal()) == ("", True)
    assert (found.mend == "") is (found.version == PACKAGES[agents.cli][1])
