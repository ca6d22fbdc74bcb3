"""The real agent CLIs, from a plan to a merged pull request. Only their model is a stand-in."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from runtimes.files import read_object
from tests.end_to_end.plans import PROVEN, Box, Gate
from tests.end_to_end.rig import Rig

pytestmark = [pytest.mark.agents, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(params=["claude", "codex", "opencode"])
def cli(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed; `watchbill doctor` says how to install it")
    return name


def front(cli: str, **more: str) -> dict[str, str]:
    return {"runtime": cli, "model": "rehearsal", **PROVEN, **more}


def runs(rig: Rig, slug: str) -> list[Any]:
    """The author's runs in their order."""
    return rig.rows(
        "SELECT r.state, r.outcome, r.reason, r.session, r.id FROM runs r JOIN plans p ON p.id = r.plan_id "
        "WHERE p.slug = :slug AND r.role = 'author' ORDER BY r.epoch",
        slug=slug,
    )


def lose(folder: Path) -> bool:
    """Take `folder` away, whatever is written into it meanwhile; whether nothing of it is left."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def agent_of(rig: Rig, slug: str) -> psutil.Process:
    """The CLI's own process. What it says of pids may be those of a namespace of its own."""
    (run,) = [each.id for each in runs(rig, slug)]
    state = rig.until(lambda: read_object(f"{rig.home}/runs/{run}/state.json"), "the run has an agent")
    return psutil.Process(state["pid"])


def test_an_agent_takes_a_task_to_a_merged_pull_request(rig: Rig, cli: str) -> None:
    slug = f"by-{cli}"
    rig.submit(slug, Box("Write it down", f"echo written by an agent > {slug}.txt"), **front(cli))
    assert [(task.state, task.proof) for task in rig.until_completed(slug).tasks] == [("merged", "proven")]
    assert rig.file(f"{slug}.txt") == "written by an agent\n"
    assert len(rig.pulls(slug)) == 1
    (run,) = runs(rig, slug)
    assert (run.state, run.outcome) == ("finished", "done")
    assert run.session
    said = rig.rows("SELECT kind, refused FROM words WHERE run_id = :run", run=run.id)
    assert ("result", "") in [tuple(word) for word in said]
    seen = json.loads(rig.command("watch", f"{slug}#1", "--screen", "--json").out)
    assert (seen["run_id"], seen["state"]) == (run.id, "finished")
    assert f"echo written by an agent > {slug}.txt" in seen["screen"]
    assert seen["screen"].rstrip().endswith("-- ended")
    assert "## What the agent says of its work" in rig.pulls(slug)[0]["body"]
    assert "What the agent says of its work" in rig.command("report", slug).out


def test_a_task_whose_text_was_revised_is_begun_anew_in_a_session_that_knows_nothing(rig: Rig, cli: str) -> None:
    slug = f"revised-{cli}"
    box = Box("Paint it", f"echo painted > {slug}.txt", ask="Which colour shall it be?")
    path = rig.submit(slug, box, **front(cli))
    rig.until_asked(slug, "agent_asks")
    rig.write(slug, Box("Paint it", f"echo varnished > {slug}.txt"), **front(cli))
    rig.command("revise", path, "--yes")
    question = rig.until_asked(slug, "revised")
    assert "Which colour shall it be?" in rig.task(slug).question
    rig.command("resume", f"{slug}#1", "--question", question)
    assert rig.until_completed(slug).tasks[0].state == "merged"
    assert rig.file(f"{slug}.txt") == "varnished\n"
    first, second = runs(rig, slug)
    assert first.session != second.session
    briefs = rig.rows("SELECT text, revision FROM briefs WHERE run_id = :run", run=second.id)
    assert [brief.revision for brief in briefs] == [2]
    assert "The plan was revised (revision 2), and this task with it: text." in briefs[0].text


def test_a_question_pauses_the_task_and_the_answer_goes_into_the_same_session(rig: Rig, cli: str) -> None:
    slug = f"asks-{cli}"
    box = Box("Paint it", f"echo painted > {slug}.txt", ask="Which colour shall it be?")
    rig.submit(slug, box, **front(cli))
    question = rig.until_asked(slug, "agent_asks")
    assert "Which colour shall it be?" in rig.command("status", slug).out
    waiting = f"WatchbillNeedsPerson = true AND WatchbillPlan = '{rig.view(slug).plan_id}'"
    rig.until(lambda: slug in rig.temporal("workflow", "list", "--query", waiting), "operators can filter for it")
    rig.command("answer", f"{slug}#1", "--question", question, "Blue, as the sea.")
    assert rig.until_completed(slug).tasks[0].state == "merged"
    assert rig.file(f"{slug}.txt") == "painted\n"
    first, second = runs(rig, slug)
    assert [first.outcome, second.outcome] == ["asked", "done"]
    assert first.session == second.session


def test_an_agent_that_was_killed_goes_on_in_its_session_and_none_works_beside_it(
    rig: Rig, cli: str, gate: Gate
) -> None:
    slug = f"killed-{cli}"
    rig.submit(slug, Box("Write it slowly", gate.script(f"{slug}.txt")), **front(cli))
    rig.until(gate.agents, "the agent's own tool runs")
    agent = agent_of(rig, slug)
    all_of_it = [agent, *agent.children(recursive=True)]
    agent.kill()
    gate.open()
    rig.until_ended(slug, all_of_it)
    assert rig.until_completed(slug).tasks[0].state == "merged"
    first, second = runs(rig, slug)
    assert (first.state, second.outcome) == ("crashed", "done")
    assert first.session == second.session
    assert rig.evidence(slug, "agent_crash")


def test_an_agent_that_was_killed_before_it_told_its_session_is_followed_by_one_that_does_the_work(
    rig: Rig, cli: str
) -> None:
    slug = f"untold-{cli}"
    rig.submit(slug, Box("Write it down", f"echo written > {slug}.txt"), **front(cli))
    rig.until(lambda: runs(rig, slug), "a run begins")
    agent_of(rig, slug).kill()
    assert rig.until_completed(slug).tasks[0].state == "merged"
    first, second = runs(rig, slug)
    assert (first.state, first.session) == ("crashed", "")
    assert (second.outcome, bool(second.session)) == ("done", True)


def test_an_agent_that_was_killed_with_its_result_handed_in_is_not_done_and_goes_on_in_its_session(
    rig: Rig, cli: str
) -> None:
    slug = f"handed-in-{cli}"
    # It takes seconds to say its last words, after its result.
    rig.model(faults=[{"kind": "delay", "seconds": 0.3}])
    try:
        rig.submit(slug, Box("Write it down", f"echo written >> {slug}.txt"), **front(cli))
        handed_in = "SELECT n FROM words WHERE run_id LIKE :run AND kind = 'result' AND refused = ''"
        rig.until(lambda: rig.rows(handed_in, run=f"{slug}-%"), "the result is handed in", slug=slug)
        agent = agent_of(rig, slug)
        all_of_it = [agent, *agent.children(recursive=True)]
        agent.kill()
    finally:
        rig.model()
    rig.until_ended(slug, all_of_it)
    assert rig.until_completed(slug).tasks[0].state == "merged"
    first, second = runs(rig, slug)
    assert (first.state, second.outcome) == ("crashed", "done")
    assert first.session == second.session


def test_an_agent_that_its_wall_clock_cut_goes_on_in_its_session_as_a_new_run(
    rig: Rig, cli: str, tmp_path: Path
) -> None:
    slug, been = f"cut-{cli}", tmp_path / "been"
    script = f"echo begun >> {slug}.txt\nif mkdir {been}; then sleep 600; fi\necho ended >> {slug}.txt"
    # Long enough to begin on a busy machine; codex has its tools give up after half a minute.
    seconds = 25 if cli == "codex" else 90
    rig.submit(slug, Box("Take too long once", script, f"timeout={seconds}s"), **front(cli))
    rig.until(lambda: len(runs(rig, slug)) > 1, "the first run is over", patience=200, slug=slug)
    assert rig.until_completed(slug).tasks[0].state == "merged"
    *cut, last = runs(rig, slug)
    assert {(run.state, run.reason) for run in cut} == {("crashed", f"it ran for longer than {seconds} s")}
    assert last.outcome == "done"
    assert {run.session for run in cut} == {last.session}
    assert (rig.file(f"{slug}.txt") or "").endswith("begun\nended\n")


def test_an_agent_outlives_its_worker_and_is_the_only_one(battered: Rig, cli: str, gate: Gate) -> None:
    rig, slug = battered, f"outlives-{cli}"
    rig.submit(slug, Box("Write it slowly", gate.script(f"{slug}.txt")), **front(cli))
    rig.until(gate.agents, "the agent's own tool runs")
    agent = agent_of(rig, slug)
    rig.kill("worker")
    rig.until(lambda: rig.evidence(slug, "worker_crash"), "the crash is recorded")
    assert agent.is_running()
    gate.open()
    view = rig.until_completed(slug)
    assert (view.tasks[0].state, view.tasks[0].runs) == ("merged", 1)
    assert len(gate.agents()) == 1
    rig.assert_sound()


def test_nothing_outlives_a_killed_supervisor_and_the_session_is_gone_on_with(
    battered: Rig, cli: str, gate: Gate, tmp_path: Path
) -> None:
    rig, slug, told = battered, f"orphaned-{cli}", tmp_path / "daemon"
    daemon = f"setsid sh -c 'echo $$ > {told}; sleep 600' > /dev/null 2>&1 &"
    rig.submit(slug, Box("Write it slowly", gate.script(f"{slug}.txt", before=daemon)), **front(cli))
    rig.until(lambda: gate.agents() and told.exists(), "the agent's tool runs, and its daemon")
    all_of_it = rig.run_processes()
    os.kill(rig.supervisor(slug), signal.SIGKILL)
    rig.until_ended(slug, all_of_it)
    gate.open()
    assert rig.until_completed(slug).tasks[0].state == "merged"
    first, second = runs(rig, slug)
    assert (first.state, second.outcome) == ("crashed", "done")
    assert first.session == second.session
    rig.assert_sound()


def test_a_fresh_run_does_as_well_when_the_session_is_lost(battered: Rig, cli: str, gate: Gate) -> None:
    rig, slug = battered, f"forgets-{cli}"
    rig.submit(slug, Box("Write it slowly", gate.script(f"{slug}.txt")), **front(cli))
    rig.until(gate.agents, "the agent's own tool runs")
    supervisor = rig.supervisor(slug)
    worker = psutil.Process(rig.pid("worker"))
    worker.suspend()
    try:
        os.kill(supervisor, signal.SIGKILL)
        (task,) = [
            each.task_id for each in rig.rows("SELECT task_id FROM runs WHERE id = :id", id=runs(rig, slug)[0].id)
        ]
        memory = rig.home / "memory" / task
        # An agent that outlives its supervisor for a moment still makes files there, and takes some away.
        rig.until(lambda: lose(memory), "the session is lost")
    finally:
        worker.resume()
    rig.until(lambda: len(gate.agents()) > 1, "a fresh run's tool runs", slug=slug)
    assert (rig.home / "memory" / task).is_dir()
    gate.open()
    assert rig.until_completed(slug).tasks[0].state == "merged"
    *_, last = runs(rig, slug)
    assert last.outcome == "done"
    rig.assert_sound()


SESSIONS = {"claude": "projects/*/*.jsonl", "codex": "sessions/*/*/*/rollout-*", "opencode": "data/opencode/*.db*"}


def damage(memory: Path, which: str, left: bytes) -> None:
    """Leave nothing but this of the files of a memory that match a pattern."""
    files = [file for file in memory.glob(which) if file.is_file() and not file.is_symlink()]
    assert files
    for file in files:
        file.write_bytes(left)


@pytest.mark.parametrize("lost", ["session", "all"])
def test_a_fresh_run_does_as_well_when_what_its_cli_remembers_is_damaged(
    battered: Rig, cli: str, gate: Gate, lost: str
) -> None:
    rig, slug = battered, f"damaged-{lost}-{cli}"
    rig.submit(slug, Box("Write it slowly", gate.script(f"{slug}.txt")), **front(cli))
    rig.until(gate.agents, "the agent's own tool runs")
    agent = agent_of(rig, slug)
    all_of_it = [agent, *agent.children(recursive=True)]
    worker = psutil.Process(rig.pid("worker"))
    worker.suspend()
    try:
        agent.kill()
        rig.until(lambda: not any(each.is_running() for each in all_of_it), "nothing of the run is left")
        (memory,) = (rig.home / "memory").glob(f"{runs(rig, slug)[0].id.removesuffix('-author-1')}/author-{cli}")
        if lost == "session":
            damage(memory, SESSIONS[cli], b"")
        else:
            damage(memory, "**/*", b"\xff\x00 no longer what it was" * 512)
    finally:
        worker.resume()
    rig.until(lambda: len(gate.agents()) > 1, "a fresh run's tool runs", slug=slug)
    gate.open()
    assert rig.until_completed(slug).tasks[0].state == "merged"
    first, *_, last = runs(rig, slug)
    assert last.outcome == "done"
    assert first.session != last.session
    rig.assert_sound()


def test_too_little_money_ends_a_run_at_its_first_call_and_a_raise_lets_the_task_go_on(rig: Rig, cli: str) -> None:
    slug = f"poor-{cli}"
    rig.submit(slug, Box("Write it down", f"echo paid > {slug}.txt"), **front(cli, budget="0.0001 USD"))
    rig.until_asked(slug, "out_of_budget")
    assert "watchbill approve" in rig.task(slug).question
    (run,) = runs(rig, slug)
    assert run.outcome == "refused"
    log = (rig.home / "logs" / "relay.log").read_text().splitlines()
    refused = [line for line in log if run.id in line and '"outcome": "short_' in line]
    assert len(refused) == 1, refused
    assert not rig.rows("SELECT id FROM reservations WHERE run_id = :run", run=run.id)
    rig.command("approve", f"{slug}#1", "--budget", "5 USD", "--plan-budget", "5 USD")
    assert rig.until_completed(slug).tasks[0].state == "merged"
    assert [each.outcome for each in runs(rig, slug)] == ["refused", "done"]
    assert rig.command("costs", slug, "--json").json["money"]["spent_nano_usd"] > 0


def test_money_that_ends_in_the_middle_shows_the_work_and_the_session_goes_on_after_a_raise(
    rig: Rig, cli: str, gate: Gate
) -> None:
    slug = f"halfway-{cli}"
    rig.submit(slug, Box("Write it slowly", gate.script(f"{slug}.txt")), **front(cli))
    rig.until(gate.agents, "the agent's own tool runs")
    rig.command("budget", "--day", "0.0001 USD")
    try:
        gate.open()
        question = rig.until_asked(slug, "out_of_budget")
    finally:
        rig.command("budget", "--day", "100 USD")
    (draft,) = rig.pulls(slug)
    assert (draft["draft"], draft["state"]) == (True, "open")
    assert "**Unfinished.**" in draft["body"]
    assert draft["html_url"] in rig.task(slug).question
    assert rig.file(f"{slug}.txt") is None
    rig.command("resume", f"{slug}#1", "--question", question)
    assert rig.until_completed(slug).tasks[0].state == "merged"
    assert rig.file(f"{slug}.txt") is not None
    (merged,) = rig.pulls(slug)
    assert (merged["number"], merged["draft"], "**Unfinished.**" in merged["body"]) == (draft["number"], False, False)
    first, second = runs(rig, slug)
    assert [first.outcome, second.outcome] == ["refused", "done"]
    assert first.session == second.session


def test_what_the_plan_refuses_is_refused_and_recorded(rig: Rig, cli: str) -> None:
    slug = f"refused-{cli}"
    rig.submit(slug, Box("Touch it", f"touch {slug}.txt"), **front(cli, refuse_commands='["touch *"]'))
    rig.until_asked(slug, "cannot_go_on")
    assert "(refused: touch *)" in rig.task(slug).question
    assert rig.file(f"{slug}.txt") is None
    run = runs(rig, slug)[0].id
    told = rig.rows("SELECT data FROM run_events WHERE run_id = :run AND kind = 'refused'", run=run)
    assert any("touch" in str(each.data) for each in told)
