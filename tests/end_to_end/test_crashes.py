"""What is killed in the middle of a run, and how the task goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import psutil
import pytest

from tests.end_to_end.plans import PROVEN, Box
from tests.end_to_end.rig import Rig


@pytest.fixture
def rig(battered: Rig) -> Iterator[Rig]:
    yield battered
    battered.assert_sound()


def test_an_agent_outlives_its_worker_and_stays_the_only_one(rig: Rig, gate):
    rig.submit("worker-dies", Box("Write it", gate.script("worker-dies.txt")), **PROVEN)
    agent = gate.agent(rig)
    rig.kill("worker")
    crash = rig.until(lambda: rig.evidence("worker-dies", "worker_crash"), "the crash is recorded")
    assert "serving" in crash[0][1], "the tail of what the worker wrote"
    assert len(crash[0][1].encode()) <= 64 * 1024
    assert agent.is_running()
    gate.open()
    view = rig.until_completed("worker-dies")
    assert gate.agents() == [agent.pid]
    assert (view.tasks[0].state, view.tasks[0].runs) == ("merged", 1)
    assert rig.file("worker-dies.txt") == f"begun by {agent.pid}\nended\n"
    assert len(rig.pulls("worker-dies")) == 1


def test_when_worker_supervisor_and_agent_die_the_crash_is_recorded_and_the_work_goes_on(rig: Rig, gate):
    rig.submit("all-die", Box("Write it", gate.script("all-die.txt")), **PROVEN)
    first = gate.agent(rig).pid
    worker, supervisor = rig.pid("worker"), rig.supervisor("all-die")
    for pid in (worker, supervisor, first):
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGKILL)
    second = gate.agent(rig, 2).pid
    crash = rig.until(lambda: rig.evidence("all-die", "agent_crash"), "the crash is recorded")
    assert "a last word" in crash[0][1]
    assert rig.evidence("all-die", "worker_crash")
    gate.open()
    assert rig.until_completed("all-die").tasks[0].state == "merged"
    assert rig.file("all-die.txt") == f"begun by {first}\nbegun by {second}\nended\n"
    assert len(rig.pulls("all-die")) == 1


def test_when_only_the_agent_is_killed_the_crash_is_recorded_and_the_work_goes_on(rig: Rig, gate):
    rig.submit("agent-dies", Box("Write it", gate.script("agent-dies.txt")), **PROVEN)
    first = gate.agent(rig).pid
    os.kill(first, signal.SIGKILL)
    second = gate.agent(rig, 2).pid
    [(_, tail)] = rig.evidence("agent-dies", "agent_crash")
    assert "a last word" in tail
    gate.open()
    assert rig.until_completed("agent-dies").tasks[0].state == "merged"
    assert rig.file("agent-dies.txt") == f"begun by {first}\nbegun by {second}\nended\n"


def test_nothing_outlives_a_killed_supervisor_not_even_a_process_in_a_session_of_its_own(rig: Rig, gate, tmp_path):
    daemon = f"setsid sh -c 'echo $$ > {tmp_path}/daemon; sleep 600' > /dev/null 2>&1 &"
    rig.submit("supervisor-dies", Box("Write it", gate.script("supervisor-dies.txt", before=daemon)), **PROVEN)
    first = gate.agent(rig)
    told = tmp_path / "daemon"
    daemons = psutil.Process(int(rig.until(lambda: told.exists() and told.read_text().strip(), "it tells its pid")))
    os.kill(rig.supervisor("supervisor-dies"), signal.SIGKILL)
    rig.until_ended("supervisor-dies", (first, daemons))
    gate.agent(rig, 2)
    gate.open()
    assert rig.until_completed("supervisor-dies").tasks[0].state == "merged"


def test_a_supervisor_killed_while_no_worker_lives_leaves_nothing_once_there_is_one(rig: Rig, gate, tmp_path):
    daemon = f"setsid sh -c 'echo $$ > {tmp_path}/daemon; sleep 600' > /dev/null 2>&1 &"
    rig.submit("both-die", Box("Write it", gate.script("both-die.txt", before=daemon)), **PROVEN)
    gate.agent(rig)
    told = tmp_path / "daemon"
    daemons = psutil.Process(int(rig.until(lambda: told.exists() and told.read_text().strip(), "it tells its pid")))
    supervisor = rig.supervisor("both-die")
    os.kill(rig.pid("worker"), signal.SIGKILL)
    os.kill(supervisor, signal.SIGKILL)
    rig.until_ended("both-die", (daemons,))
    gate.open()
    assert rig.until_completed("both-die").tasks[0].state == "merged"


def test_a_run_that_takes_too_long_is_ended_with_all_that_it_started(rig: Rig, tmp_path):
    daemon = f"setsid sh -c 'echo $$ >> {tmp_path}/daemons; sleep 600' > /dev/null 2>&1 &"
    rig.submit(
        "too-long",
        Box("Never end", f"{daemon}\necho begun > too-long.txt\nsleep 600", "timeout=3s"),
        **PROVEN,
    )
    rig.until_asked("too-long", "no_progress")
    assert "longer than 3 s" in rig.task("too-long").question
    assert [seen.kind for seen, _ in rig.evidence("too-long", "agent_crash")] == ["agent_crash"] * 2
    daemons = [int(pid) for pid in (tmp_path / "daemons").read_text().split()]
    assert len(daemons) == 2
    assert not any(psutil.pid_exists(pid) for pid in daemons)
    rig.command("cancel", "too-long")
    rig.until_completed("too-long")


def test_a_worker_that_hung_and_comes_back_finds_its_run_taken_over_and_no_second_agent(rig: Rig, gate):
    """Temporal gives a hung worker's activity to another worker of the host, and then both watch one run."""
    rig.submit("hung", Box("Write it", gate.script("hung.txt")), **PROVEN)
    agent = gate.agent(rig).pid
    hung = psutil.Process(rig.pid("worker"))
    hung.suspend()
    second = rig.begin("worker", environment=hung.environ())
    try:
        lease = "SELECT worker FROM leases WHERE run_id LIKE 'hung-%'"
        before = rig.rows(lease)[0][0]
        rig.until(lambda: rig.rows(lease)[0][0] != before, "the run is taken over")
        hung.resume()
        gate.open()
        view = rig.until_completed("hung")
        assert gate.agents() == [agent]
        assert (view.tasks[0].state, view.tasks[0].runs) == ("merged", 1)
        assert len(rig.pulls("hung")) == 1
    finally:
        hung.resume()
        second.terminate()
        second.communicate()
