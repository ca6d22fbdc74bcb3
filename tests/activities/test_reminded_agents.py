"""Real agent CLIs that sum up what they remember: what binds them is in front of them afterwards, from the graph."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from activities.commissions import Commissions
from activities.reminders import Reminder
from domain.notes import EditContext, NoteChange
from rehearsal.server import Rehearsal
from runtimes.folder import RunFolder
from runtimes.logins import Logins
from signing.keys import Signer
from store import notes
from tests.activities.conftest import OWNER, Graph
from tests.rehearsal.models.provider import Provider
from tests.runtimes.conftest import Bench
from tests.runtimes.test_hooked_agents import FULL, MODELS, REMINDER, Agent, wait_for
from tests.workflows.world import ScriptedForge

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with Rehearsal(tmp_path_factory.mktemp("standin") / "folder") as rehearsal:
        made = Provider(rehearsal)
        yield made
        made.http.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.clear()


def know(graph: Graph, title: str) -> None:
    order = EditContext(OWNER, graph.plan, changes=(NoteChange(title=title),), by="ada@host")
    with graph.store.write() as connection:
        notes.edit(connection, order, datetime.now(UTC), 1)


@pytest.mark.parametrize("cli", list(MODELS))
def test_a_rule_from_the_start_and_what_came_since_are_in_front_of_an_agent_that_summed_up(
    cli: str, graph: Graph, forge: ScriptedForge, signer: Signer, tmp_path: Path, bench: Bench, provider: Provider
) -> None:
    if shutil.which(cli) is None:
        pytest.skip(f"{cli} is not on PATH")
    provider.forget()
    home = tmp_path / "home"
    commissions = Commissions(graph.store, forge, home, "http://127.0.0.1:1", signer, Logins(home / "logins"))
    # Far more than is told again; what binds is not what gives way for it.
    graph.confirm("true\n" + "# one of many lines\n" * 600, runtime=cli, model=MODELS[cli], refuse_paths='["keys/**"]')
    know(graph, "Never touch prices.csv")
    run = graph.begin()
    agent = Agent(tmp_path / "agent", cli, bench, provider)
    given = commissions.job(replace(agent.job, timeout=200), run, graph.facts(), datetime.now(UTC))
    agent.job = replace(given, door=agent.job.door, schema=None, memory=None)
    reminder = Reminder(graph.store, commissions, RunFolder(agent.folder), run, graph.facts())

    # Asked for a summary it says the same again: there the text counts.
    step = {"text": "I look.", **agent.shell("true")}
    folder = agent.begin(step, usage={"input": FULL[cli], "output": 10})
    know(graph, "The staging server is down")
    reminder.take()

    def told_again() -> str:
        """What came with the last reminder."""
        return json.dumps(provider.asked()).rpartition(REMINDER)[2]

    wait_for(lambda: "compact" in [event.get("what") for event in agent.events()])
    wait_for(lambda: "The staging server is down" in told_again())
    told = told_again()
    for rule in ("Never touch prices.csv", "keys/**", "Do not commit, push, or open a pull request"):
        assert rule in told
    assert "Cut for want of room" in told
    folder.stop("seen")
