"""`watchbill watch TASK --screen`: what an agent is doing, from wherever the store can be read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from domain.decision import Decision, DecisionKind
from domain.errors import Unavailable
from domain.heartbeat import HeartbeatPolicy
from domain.identity import digest, plan_id, task_id
from domain.publication import Beat, BeginRun
from domain.run import EndKind, Outcome, Role, RunEnd, RunFacts, RunState
from domain.task import TaskState
from runtimes.folder import RunFolder
from runtimes.port import Launch
from runtimes.terminal import Terminal
from starter.exits import Exit
from starter.screens import Frame, Here, _head, follow
from starter.settings import load
from store import runs
from store.database import Store, open_store
from store.decisions import decide
from store.dispatch import beat
from store.runs import Keeper
from store.screens import Seen, put_screen
from store.tables import tasks
from tests.starter.conftest import WATCHBILL, plan

PLAN = plan_id("local", "faster")
TASK = task_id(PLAN, 1)
KEEPER = Keeper("worker-1", "a" * 12, "boot-1", timedelta(seconds=60))


class Graph:
    """A store with a run at work, as a worker on another host would write it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store: Store = open_store(url)
        now = datetime.now(UTC)
        with self.store.write() as connection:
            named = digest(plan("faster", "One", "Two"))
            decide(connection, Decision(DecisionKind.CONFIRM, PLAN, names=named, by="local"), now, 1)
        beat(self.store, Beat("local", now), HeartbeatPolicy(), 1)
        with self.store.write() as connection:
            self.run: RunFacts = runs.begin(connection, BeginRun(TASK, Role.AUTHOR, now, 0, ""), KEEPER, 1)

    def show(self, text: str) -> None:
        with self.store.write() as connection:
            put_screen(connection, self.run.id, text, datetime.now(UTC))

    def end(self, state: RunState, reason: str = "") -> None:
        now = datetime.now(UTC)
        outcome = Outcome.DONE if state is RunState.FINISHED else Outcome.CRASHED
        how = RunEnd(self.run.id, state, EndKind.EXITED, 0, reason, "", outcome)
        with self.store.write() as connection:
            runs.end(connection, self.run, how, (), "worker-1", now, 1)


@pytest.fixture
def graph(published_graph: str) -> Iterator[Graph]:
    made = Graph(published_graph)
    yield made
    made.store.close()


def test_a_run_at_work_is_shown_once_to_machines(watchbill, graph):
    graph.show("> Bash make test\n  3 passed\n\x1b[31mred")
    done = watchbill("watch", "faster#1", "--screen", "--json", WATCHBILL_STORE_URL=graph.url)
    assert done.returncode == Exit.DONE, done.stderr
    told = json.loads(done.stdout)
    assert told["screen"] == "> Bash make test\n  3 passed\n\x1b[31mred"
    assert (told["run_id"], told["task_id"], told["state"], told["role"], told["host"]) == (
        graph.run.id, TASK, "starting", "author", "a" * 12,
    )  # fmt: skip
    assert told["confinement"] == ""
    by_id = watchbill("watch", TASK, "--screen", "--json", WATCHBILL_STORE_URL=graph.url)
    assert json.loads(by_id.stdout) == told


def test_how_a_run_ended_is_shown_and_its_exit_code_says_so(watchbill, graph):
    graph.show("the last \x1b[31mthere was")
    graph.end(RunState.CRASHED, "it exited with 3")
    done = watchbill("watch", "faster#1", "--screen", WATCHBILL_STORE_URL=graph.url)
    assert done.returncode == Exit.UNFINISHED
    assert "crashed (it exited with 3)" in done.stdout
    assert "the last \ufffd[31mthere was" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_run_is_followed_to_its_end_and_printed_when_it_has_changed(watchbill, graph):
    process = subprocess.Popen(
        [WATCHBILL, "watch", "faster#1", "--screen"],
        stdout=subprocess.PIPE, text=True, env={**watchbill.environment, "WATCHBILL_STORE_URL": graph.url},
    )  # fmt: skip
    assert process.stdout is not None
    assert "nothing to be seen yet" in process.stdout.readline()
    graph.show("one step")
    while "one step" not in process.stdout.readline():
        pass
    graph.show("another step")
    graph.end(RunState.FINISHED)
    rest = process.stdout.read()
    assert (process.wait(), "another step" in rest, "finished" in rest) == (Exit.DONE, True, True)
    assert "one step" not in rest


def test_on_a_terminal_the_screen_is_drawn_in_its_place(watchbill, graph, tmp_path):
    graph.show("\n".join(f"line {number}" for number in range(100)))
    env = {**watchbill.environment, "WATCHBILL_STORE_URL": graph.url}
    folder = RunFolder(tmp_path / "watching")
    argv = (WATCHBILL, "watch", "faster#1", "--screen")
    launch = Launch("watching-0a1b2c3d-1-author-1", argv, tmp_path, env, 100.0, pty=True)
    folder.spawn(launch, datetime.now(UTC) + timedelta(seconds=100))

    def shown() -> list[str]:
        terminal = Terminal()
        terminal.feed(folder.tail())
        return terminal.text().split("\n")

    while "line 99" not in shown():
        time.sleep(0.1)
    assert "line 50" not in shown()
    graph.show("the end of it")
    graph.end(RunState.FINISHED)
    while not hasattr(folder.status(), "result"):
        time.sleep(0.1)
    assert folder.status().result.exit_code == Exit.DONE, folder.text()
    assert "the end of it" in shown()
    assert "line 99" not in shown()


def test_on_the_runs_own_host_it_is_seen_at_once(watchbill, graph):
    graph.show("as the worker saw it")
    folder = watchbill.home / "runs" / graph.run.id
    folder.mkdir(parents=True)
    (folder / "spec.json").write_text("{}")
    (folder / "output.0").write_text(f"as it is now, with ghp_{'a' * 36}\n")
    done = watchbill("watch", "faster#1", "--screen", "--json", WATCHBILL_STORE_URL=graph.url)
    assert json.loads(done.stdout)["screen"] == "as it is now, with [redacted]\n"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["faster#2"], Exit.NOT_FOUND, "there is nothing to be seen of task 2 yet: it is pending"),
        (["faster#3"], Exit.NOT_FOUND, "faster has no task 3; it has 2"),
        (["slower#1"], Exit.NOT_FOUND, "local has no plan slower"),
        (["faster"], Exit.USAGE, "'faster' names a whole plan"),
        (["faster#1", "--from-start"], Exit.USAGE, "--screen shows a run until its end"),
        (["faster#1", "--until", "person"], Exit.USAGE, "--screen shows a run until its end"),
    ],
)
def test_what_cannot_be_shown_is_told_in_one_sentence(watchbill, graph, arguments, code, sentence):
    done = watchbill("watch", "--screen", *arguments, WATCHBILL_STORE_URL=graph.url)
    assert (done.returncode, done.stderr.startswith(sentence)) == (code, True), done.stderr


def test_without_a_store_it_is_said_where_one_would_be(watchbill):
    done = watchbill("watch", "faster#1", "--screen")
    assert done.returncode == Exit.UNREACHABLE
    assert "there is no store at" in done.stderr


def test_a_store_that_is_away_is_told_once_and_waited_for(graph, tmp_path):
    live = Seen(graph.run, datetime.now(UTC), "one")
    answers: list[Seen | Exception] = [
        live,
        Unavailable("the store is away"),
        Unavailable("the store is away"),
        live,
        live,
    ]
    graph.end(RunState.FINISHED)
    with graph.store.read() as connection:
        ended = runs.load_run(connection, graph.run.id)
    answers.append(Seen(ended, datetime.now(UTC), "two"))

    def look() -> Seen:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    here = Here(load({"WATCHBILL_HOME": str(tmp_path / "elsewhere")}), graph.run)
    told = list(follow(look, here, lambda _: None))
    assert [frame.text if isinstance(frame, Frame) else str(frame) for frame in told] == [
        "one", "the store is away", "two",
    ]  # fmt: skip


def test_a_run_that_no_worker_looks_after_is_not_said_to_be_at_work(graph, tmp_path):
    now = datetime.now(UTC)
    at_work = Seen(graph.run, now, "one", now + timedelta(minutes=1))
    deserted = Seen(graph.run, now, "one", now - timedelta(seconds=1))
    graph.end(RunState.FINISHED)
    with graph.store.read() as connection:
        ended = Seen(runs.load_run(connection, graph.run.id), now, "one")
    answers = [at_work, at_work, deserted, deserted, ended]
    here = Here(load({"WATCHBILL_HOME": str(tmp_path / "elsewhere")}), graph.run)
    frames = list(follow(lambda: answers.pop(0), here, lambda _: None))
    assert [(frame.run.state, frame.deserted) for frame in frames] == [
        ("starting", False), ("starting", True), ("finished", False),
    ]  # fmt: skip
    assert "starting when last heard of; no worker looks after it. `watchbill up`" in _head(frames[1])


def test_watching_a_run_elsewhere_loads_no_temporal_and_no_agents(watchbill, graph):
    graph.show("something")
    script = (
        "import sys\nfrom starter.__main__ import run\nrun(sys.argv[1:])\n"
        "print(sorted({'temporalio', 'activities', 'runtimes', 'rich', 'pyte'} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, "watch", "faster#1", "--screen", "--json"],
        capture_output=True, text=True, check=True, cwd=Path(os.devnull).parent,
        env={**watchbill.environment, "WATCHBILL_STORE_URL": graph.url},
    )  # fmt: skip
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_run_that_could_not_begin_is_not_waited_for(watchbill, graph, more):
    with graph.store.write() as connection:
        connection.execute(update(tasks).where(tasks.c.id == TASK).values(state=TaskState.PAUSED))
    done = watchbill("watch", "faster#1", "--screen", *more, WATCHBILL_STORE_URL=graph.url)
    assert done.returncode == Exit.NOT_FOUND
    assert "it could not begin, and its task is paused" in done.stdout + done.stderr
