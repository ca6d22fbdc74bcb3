"""Plans whose agents are on logins of their own: merged, shown as such everywhere, and nothing asked of the relay."""

from __future__ import annotations

import hashlib
import shutil

import pytest

from tests.end_to_end.plans import PROVEN, Box
from tests.end_to_end.rig import Rig
from tests.end_to_end.test_agents import runs
from tests.runtimes.test_logins import with_key

pytestmark = [pytest.mark.agents, pytest.mark.slow, pytest.mark.timeout(300)]

KEY = "sk-ant-api03-a-key-of-ones-own-0123456789"
SAID = "Agents are unmetered: they call their models on logins of their own, and what that costs is not known."
FRONT = {"model": "rehearsal", "network": "open", "metering": "off", **PROVEN}


@pytest.fixture(params=["claude", "codex", "opencode"])
def cli(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed; `watchbill doctor` says how to install it")
    return name


def test_an_agent_on_a_key_of_its_own_takes_a_task_to_a_merged_pull_request(rig: Rig, cli: str) -> None:
    slug = f"unmetered-{cli}"
    with_key(cli, rig.home / "logins" / cli, KEY)
    rig.model()
    path = rig.write(slug, Box("Write it down", f"echo written > {slug}.txt"), runtime=cli, **FRONT)
    # Before anybody says yes.
    assert SAID in rig.command("check", path).out
    assert SAID in rig.command("submit", path).out
    assert SAID in rig.command("status", slug).out
    assert SAID in rig.command("confirm", path).out
    assert [(task.state, task.proof) for task in rig.until_completed(slug).tasks] == [("merged", "proven")]
    assert rig.file(f"{slug}.txt") == "written\n"
    (run,) = runs(rig, slug)
    assert (run.state, run.outcome) == ("finished", "done")
    # What it handed in came by our tools, through the relay.
    said = rig.rows("SELECT kind FROM words WHERE run_id = :run AND refused = ''", run=run.id)
    assert ("result",) in [tuple(word) for word in said]

    # The model was asked with the key alone, and the relay was asked nothing that costs.
    assert {each["token"] for each in rig.asked_of_model() if each["main"]} == {
        hashlib.sha256(KEY.encode()).hexdigest()
    }
    log = (rig.home / "logs" / "relay.log").read_text()
    assert not [line for line in log.splitlines() if run.id in line and '"a model call"' in line]
    assert not rig.rows("SELECT id FROM reservations WHERE run_id = :run", run=run.id)

    # Wherever it is looked at.
    row = rig.rows("SELECT metering, cap_nano_usd FROM runs WHERE id = :run", run=run.id)
    assert [tuple(each) for each in row] == [("unmetered", None)]
    status = rig.command("status", slug, "--json").json
    assert (status["metering"], status["spent_nano_usd"]) == ("unmetered", None)
    assert SAID in rig.command("status", slug).out
    report = rig.command("report", slug, "--json").json
    assert (report["metering"], report["spent_nano_usd"], report["tasks"][0]["metering"]) == (
        "unmetered", None, "unmetered",
    )  # fmt: skip
    assert SAID in rig.command("report", slug).out
    assert SAID in rig.pulls(slug)[0]["body"]
    screen = rig.command("watch", f"{slug}#1", "--screen", "--json").json
    assert screen["metering"] == "unmetered"
    assert ", unconfined, unmetered: finished" in rig.command("watch", f"{slug}#1", "--screen").out
    costs = rig.command("costs", slug, "--json").json
    assert (costs["money"]["spent_nano_usd"], costs["money"]["unmetered_runs"]) == (None, 1)
    words = rig.command("costs", slug).out
    assert "author-1: unmetered, and what it cost is not known" in words
    assert "0.00 USD spent" not in words
    # What the CLI itself says, as no more than that.
    word = f"unverified: {cli} says of itself that it took "
    shown = (words, rig.command("show", slug).out, rig.command("report", slug).out)
    assert [each.count(word) for each in shown] == [1] * 3
    told = costs["tasks"][0]["runs"][0]["told"]
    assert (told["standing"], told["by"], told["tokens"]["output"] > 0) == ("unverified", cli, True)
    view = rig.view(slug)
    for workflow in (f"plan-{view.plan_id}", f"task-{view.tasks[0].id}"):
        assert SAID in rig.temporal("workflow", "metadata", "--workflow-id", workflow)

    # Of the key there is nothing left but in the person's own folder.
    rig.until(lambda: not (rig.home / "memory" / rig.view(slug).tasks[0].id).exists(), "its memory is cleared away")
    for path in rig.home.rglob("*"):
        if path.is_file() and not path.is_relative_to(rig.home / "logins"):
            assert KEY.encode() not in path.read_bytes(), path


def test_without_a_login_the_task_waits_for_a_person_and_goes_on_once_there_is_one(rig: Rig, cli: str) -> None:
    slug = f"loginless-{cli}"
    shutil.rmtree(rig.home / "logins" / cli, ignore_errors=True)
    rig.submit(slug, Box("Write it down", f"echo written > {slug}.txt"), runtime=cli, **FRONT)
    question = rig.until_asked(slug, "cannot_go_on")
    assert "make one with: " in rig.task(slug).question
    assert str(rig.home / "logins" / cli) in rig.task(slug).question
    with_key(cli, rig.home / "logins" / cli, KEY)
    rig.command("resume", f"{slug}#1", "--question", question)
    assert rig.until_completed(slug).tasks[0].state == "merged"
