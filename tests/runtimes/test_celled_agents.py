"""The real CLIs in a cell: they do their work, under their policy, with no address but their door."""

from __future__ import annotations

import json
import shutil
import socket
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.confinement import Confine, Confinement
from domain.rules import Policy
from domain.run import Outcome
from runtimes.confiner import Confiner
from runtimes.folder import RunFolder
from runtimes.port import Job
from tests.runtimes.celled import needs_sandbox
from tests.runtimes.test_agents import MODELS, Agents, provider, served

__all__ = ["provider", "served"]

pytestmark = [pytest.mark.agents, pytest.mark.slow, pytest.mark.timeout(300), needs_sandbox]


class Celled(Agents):
    """Sends one CLI out on jobs, in cells."""

    def send(self, job: Job) -> RunFolder:
        confiner = Confiner(Confine.REQUIRED, hidden=(self.home,))
        launch = self.runtime.launch(confiner.job(job, Confinement.CONFINED))
        self.folder = self.bench.folder(job.folder.name)
        launch = confiner.confine(launch, job, Confinement.CONFINED)
        self.folder.spawn(launch, datetime.now(UTC) + timedelta(seconds=600))
        return self.folder


@pytest.fixture(params=sorted(MODELS))
def agents(request: pytest.FixtureRequest, tmp_path: Any, provider: Any, bench: Any) -> Celled:
    if shutil.which(request.param) is None:
        pytest.skip(f"there is no {request.param} on PATH")
    return Celled(request.param, tmp_path, provider, bench)


def test_an_agent_works_in_a_cell_and_reaches_its_door_alone(agents):
    (agents.home / "graph.db").write_text("a secret of ours")
    with socket.create_server(("127.0.0.1", 0)) as temporal:
        script = "\n".join(
            (
                "echo hi > hi.txt",
                f"cat {agents.home}/graph.db > stolen.txt 2> why.txt || true",
                f"bash -c 'exec 3<> /dev/tcp/127.0.0.1/{temporal.getsockname()[1]} && touch reached.txt' || true",
                "ls /proc | grep -c '^[0-9]' > processes.txt",
            )
        )
        verdict = agents.perform(agents.job(script))
    assert (verdict.outcome, verdict.exit_code, verdict.reason) == (Outcome.DONE, 0, "")
    assert (agents.work / "hi.txt").read_text() == "hi\n"
    assert (agents.work / "stolen.txt").read_text() == ""
    assert not (agents.work / "reached.txt").exists()
    assert int((agents.work / "processes.txt").read_text()) < 30
    assert verdict.session
    assert agents.bench.left_of(agents.folder) == set()


def test_the_hook_holds_in_a_cell_and_nothing_in_there_can_lift_it(agents):
    folder = agents.job().folder
    lifting = (
        f"echo '{{}}' > {folder}/policy.json; rm -f {folder}/policy.json; echo > {agents.home}/memory/config.toml; true"
    )
    policy = Policy(commands=("git push*",))
    agents.provider.script(agents.shell(lifting), agents.shell("git push origin main"), {"text": "I cannot."})
    agents.runs = 0
    assert agents.perform(agents.job(policy=policy)).outcome is Outcome.DENIED
    refused = [event for event in agents.folder.uses() if event["event"] == "refused"]
    assert ["git push" in event["what"] for event in refused] == [True]
    assert json.loads((folder / "policy.json").read_text())["commands"] == ["git push*"]


def test_a_session_is_gone_on_with_in_the_next_cell(agents):
    first = agents.perform(agents.job())
    agents.provider.script({"text": "I go on."})
    again = agents.perform(agents.job(session=first.session, note="A person says: use tabs."))
    assert (again.outcome, again.session) == (Outcome.DONE, first.session)
    last = json.dumps(agents.provider.asked()[-1]["messages"])
    assert "The task in hand" in last
    assert "A person says: use tabs." in last
