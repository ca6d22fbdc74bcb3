"""An installation whose runs are confined: they do their work, and reach nothing of what looks after them."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import domain
from runtimes.files import read_object
from tests.end_to_end.plans import PROVEN, Box
from tests.end_to_end.rig import Rig
from tests.runtimes.celled import needs_sandbox

ROOT = Path(domain.__file__).parents[1]
"""Our own programs, which are shown so that an agent could start them."""

WATCHBILL = Path(sys.executable).with_name("watchbill")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), needs_sandbox]


@pytest.fixture(scope="module")
def confined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One installation for the module, whose worker runs nothing that is not confined."""
    rig = Rig(tmp_path_factory.mktemp("confined"), WATCHBILL_CONFINE="required", WATCHBILL_CONFINE_READ=str(ROOT))
    try:
        rig.start()
        yield rig
    finally:
        rig.stop()


@pytest.fixture(params=["claude", "codex", "opencode"])
def cli(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed; `watchbill doctor` says how to install it")
    return name


def kinds(rig: Rig, slug: str) -> set[tuple[str, str]]:
    """The role and the confinement of each of a plan's runs."""
    told = rig.rows(
        "SELECT r.role, r.confinement FROM runs r JOIN plans p ON p.id = r.plan_id WHERE p.slug = :slug", slug=slug
    )
    return {(row.role, row.confinement) for row in told}


def test_a_confined_plan_is_merged_and_every_view_says_that_it_was_confined(confined: Rig) -> None:
    confined.submit("kept", "Write it down", **PROVEN)
    assert [(task.state, task.proof) for task in confined.until_completed("kept").tasks] == [("merged", "proven")]
    assert kinds(confined, "kept") == {("author", "confined"), ("check", "confined")}
    assert confined.view("kept").confinement == "confined"
    assert "Runs are confined." in confined.command("status", "kept").out
    assert "Runs are confined." in confined.command("report", "kept").out
    assert "Runs are confined." in confined.pulls("kept")[0]["body"]
    assert confined.command("audit", "kept").code == 0
    confined.assert_sound()


@pytest.mark.parametrize(
    "runtime", ["shell", *(pytest.param(cli, marks=pytest.mark.agents) for cli in ("claude", "codex", "opencode"))]
)
def test_a_confined_run_reaches_nothing_that_could_move_a_plan(confined: Rig, runtime: str) -> None:
    if runtime != "shell" and shutil.which(runtime) is None:
        pytest.skip(f"{runtime} is not installed; `watchbill doctor` says how to install it")
    addresses, tries, waits = confined.addresses, f"tries-{runtime}", f"waits-{runtime}"
    relay, ui = (urlsplit(url or "") for url in (addresses.relay, addresses.ui))
    ports = [addresses.temporal.rpartition(":")[2], str(ui.port)]
    if runtime == "shell":
        # The one door that an agent has.
        ports.append(str(relay.port))
    script = "\n".join(
        (
            f"exec > {tries}.txt 2>&1",
            *(f"bash -c 'exec 3<> /dev/tcp/127.0.0.1/{port}' && echo REACHED {port} || true" for port in ports),
            f"cat {confined.home}/graph.db && echo REACHED the store || true",
            f"ls {confined.home}/keys && echo REACHED the keys || true",
            f"ls {confined.home}/mirrors && echo REACHED the mirrors || true",
            f"export WATCHBILL_HOME={confined.home} WATCHBILL_TEMPORAL_ADDRESS={addresses.temporal}",
            f"{WATCHBILL} --version && echo STARTED",
            f"{WATCHBILL} confirm {waits} && echo REACHED the plan || true",
            "ls /proc | grep -c '^[0-9]'",
        )
    )
    confined.command("submit", confined.write(waits, "Wait"))
    front = {} if runtime == "shell" else {"runtime": runtime, "model": "rehearsal"}
    confined.submit(tries, Box("Try it", script), **PROVEN, **front)
    confined.until_completed(tries)
    tried = confined.file(f"{tries}.txt")
    assert tried is not None
    assert "REACHED" not in tried
    assert "STARTED" in tried
    assert int(tried.split()[-1]) < 15
    assert confined.view(waits).state == "awaiting_confirmation"


@pytest.mark.agents
def test_a_confined_agent_takes_a_task_to_a_merged_pull_request(confined: Rig, cli: str) -> None:
    slug = f"kept-{cli}"
    front = {"runtime": cli, "model": "rehearsal", **PROVEN, "confine": "required"}
    confined.submit(slug, Box("Write it down", f"echo written by an agent > {slug}.txt"), **front)
    assert [(task.state, task.proof) for task in confined.until_completed(slug).tasks] == [("merged", "proven")]
    assert confined.file(f"{slug}.txt") == "written by an agent\n"
    assert kinds(confined, slug) == {("author", "confined"), ("check", "confined")}
    said = confined.rows(
        "SELECT w.kind FROM words w JOIN runs r ON r.id = w.run_id WHERE r.task_id = :task",
        task=confined.view(slug).tasks[0].id,
    )
    assert ("result",) in [tuple(word) for word in said]


@pytest.mark.agents
def test_what_a_plan_refuses_is_refused_to_a_confined_agent(confined: Rig, cli: str) -> None:
    slug = f"refused-{cli}"
    front = {"runtime": cli, "model": "rehearsal", **PROVEN, "refuse_commands": '["touch *"]'}
    confined.submit(slug, Box("Touch it", f"touch {slug}.txt"), **front)
    confined.until_asked(slug, "cannot_go_on")
    assert "(refused: touch *)" in confined.task(slug).question
    told = confined.rows(
        "SELECT e.data FROM run_events e JOIN runs r ON r.id = e.run_id WHERE e.kind = 'refused' AND r.task_id = :task",
        task=confined.view(slug).tasks[0].id,
    )
    assert any("touch" in str(row.data) for row in told)


@pytest.mark.agents
@pytest.mark.parametrize("victim", ["agent", "supervisor"])
def test_what_kills_a_confined_agent_leaves_nothing_of_it_and_its_session_is_gone_on_with(
    confined: Rig, cli: str, victim: str
) -> None:
    slug = f"{victim}-killed-{cli}"
    # It cannot tell anybody outside where it is, and the next run finds what this one left.
    script = f"if [ ! -e {slug}.txt ]; then echo begun > {slug}.txt; sleep 600; fi\necho ended >> {slug}.txt"
    front = {"runtime": cli, "model": "rehearsal", **PROVEN}
    confined.submit(slug, Box("Write it slowly", script), **front)
    task = confined.view(slug).tasks[0].id
    confined.until((confined.home / "workspaces" / task / "author" / f"{slug}.txt").exists, "its tool runs", slug=slug)
    all_of_it = confined.run_processes()
    state = read_object(f"{confined.home}/runs/{task}-author-1/state.json")
    assert state is not None
    os.kill(state["pid"] if victim == "agent" else confined.supervisor(slug), signal.SIGKILL)
    confined.until_ended(slug, all_of_it)
    assert confined.until_completed(slug).tasks[0].state == "merged"
    assert confined.file(f"{slug}.txt") == "begun\nended\n"
    told = confined.rows(
        "SELECT state, outcome, session, confinement FROM runs "
        "WHERE task_id = :task AND role = 'author' ORDER BY epoch",
        task=task,
    )
    first, second = told
    assert (first.state, second.outcome) == ("crashed", "done")
    assert first.session == second.session
    assert {run.confinement for run in told} == {"confined"}


@pytest.mark.agents
def test_a_confined_reviewer_reads_the_commit_and_cannot_write_beside_it(confined: Rig, cli: str) -> None:
    slug = f"judged-{cli}"
    model = {"claude": "claude-sonnet-4-6", "codex": "gpt-5.5", "opencode": "gpt-5.5"}[cli]
    # What a hook does not see fails for want of a place to write to.
    meddle = "python3 -c \"open('meddled.txt', 'w').write('x')\" 2>&1 | grep -q -i 'read-only'"
    judge = f"if {meddle}; then echo approve; else echo reject it could be written to; fi"
    box = Box("Write it down", f"echo done > {slug}.txt", review=judge)
    confined.submit(slug, box, reviewers=f"['{cli}:{model}']", **PROVEN)
    assert [(task.state, task.proof) for task in confined.until_completed(slug).tasks] == [("merged", "proven")]
    assert kinds(confined, slug) == {("author", "confined"), ("check", "confined"), ("reviewer", "confined")}
    said = "SELECT r.state, r.summary FROM reviews r JOIN plans p ON p.id = r.plan_id WHERE p.slug = :slug"
    assert [tuple(row) for row in confined.rows(said, slug=slug)] == [("approved", "It does what was asked for.")]
