"""The real CLIs at the relay: their models, their tools and their credential, as they come by them in a run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from domain.brief import RESULT_SCHEMA
from rehearsal.server import Rehearsal
from runtimes.port import Door, Job
from runtimes.registry import RUNTIMES
from store.database import Store
from tests.rehearsal.models.provider import Provider as Models
from tests.relay.conftest import Provider, Relay, opened

pytestmark = [pytest.mark.agents, pytest.mark.slow, pytest.mark.timeout(300)]

MODELS = {"claude": "claude-sonnet-4-6", "codex": "gpt-5.5", "opencode": "rehearsal"}
BRIEF = "# Make it\n\n```sh\necho hi > hi.txt\n```\n"


@dataclass
class Agent:
    """One CLI, sent out with a capability for the relay and nothing else."""

    cli: str
    relay: Relay
    models: Models
    home: Path

    def perform(self, brief: str = BRIEF, token: str = "") -> subprocess.CompletedProcess[str]:
        work = self.home / "work"
        subprocess.run(["git", "init", "--quiet", str(work)], check=True)
        run, url = self.relay.run, self.relay.url
        job = Job(
            run_id=run.id,
            task_id=run.task_id,
            task_title="Make it",
            task_body="",
            workspace=work,
            folder=self.home / "run",
            timeout=240,
            path=os.environ["PATH"],
            brief=brief,
            model=MODELS[self.cli],
            memory=self.home / "memory",
            schema=RESULT_SCHEMA,
            door=Door(f"{url}/models", f"{url}/mcp", token or self.relay.token(model_id=MODELS[self.cli])),
        )
        job.folder.mkdir(mode=0o700)
        launch = RUNTIMES[self.cli].launch(job)
        with (launch.stdin or Path(os.devnull)).open() as prompt:
            return subprocess.run(
                launch.argv,
                cwd=launch.cwd,
                env=dict(launch.env),
                stdin=prompt,
                capture_output=True,
                text=True,
                check=False,
                timeout=270,
            )


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    with Rehearsal(tmp_path_factory.mktemp("standin") / "folder") as running:
        yield running


@pytest.fixture(params=list(MODELS))
def agent(
    request: pytest.FixtureRequest, tmp_path: Path, sqlite_store: Store, signer, rehearsal: Rehearsal
) -> Iterator[Agent]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not on PATH")
    models = Models(rehearsal)
    models.script()
    models.forget()
    home = tmp_path / "agent"
    home.mkdir(mode=0o700)
    model = MODELS[request.param]
    for relay in opened(sqlite_store, signer, Provider(), rehearsal.models_url, RESULT_SCHEMA, model=model):
        yield Agent(request.param, relay, models, home)


def test_a_task_is_done_and_its_result_handed_in_through_the_relay_alone(agent: Agent) -> None:
    done = agent.perform()
    assert (agent.home / "work" / "hi.txt").exists(), done.stdout + done.stderr
    (row,) = [row for row in agent.relay.words() if row.kind == "result"]
    assert row.refused == ""
    assert row.body["result"]["summary"]
    tools = {tool for asked in agent.models.asked() for tool in asked["tools"]}
    for name in ("read_brief", "record_decision", "ask_person", "submit_result"):
        assert any(tool.endswith(name) for tool in tools), tools


def test_a_question_is_kept_for_a_person(agent: Agent) -> None:
    agent.perform("# Make it\n\n```ask\nWhich of the two?\n```\n")
    assert [row.body["question"] for row in agent.relay.words() if row.kind == "question"] == ["Which of the two?"]


def test_a_run_that_has_ended_is_refused_and_stops(agent: Agent) -> None:
    agent.relay.end()
    done = agent.perform()
    assert agent.models.asked() == []
    assert agent.relay.words() == []
    assert "gets no money any more" in done.stdout + done.stderr
