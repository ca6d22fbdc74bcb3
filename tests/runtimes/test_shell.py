"""The runtimes without a model, through the supervisor."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from domain import document
from domain.errors import WatchbillError
from domain.run import EndKind, Outcome
from runtimes.port import Job, Launch, RunResult, Runtime
from runtimes.registry import RUNTIMES
from runtimes.shell import unfinished

SHELL, CHECK = RUNTIMES["shell"], RUNTIMES["check"]


def job(home: Path, **changes: Any) -> Job:
    (home / "work").mkdir(exist_ok=True)
    facts: dict[str, Any] = {
        "run_id": "plan-0a1b2c3d-1-author-1",
        "task_id": "plan-0a1b2c3d-1",
        "task_title": "Do it",
        "task_body": "",
        "workspace": home / "work",
        "folder": home / "runs" / "run",
        "timeout": 60,
    }
    return Job(**{**facts, **changes})


@pytest.fixture
def perform(bench):
    """Take a job through its runtime and the supervisor to its verdict and output."""

    def run(runtime: Runtime, todo: Job):
        folder = bench.folder()
        folder.spawn(runtime.launch(todo), datetime.now(UTC) + timedelta(seconds=600))
        return runtime.judge(bench.end_of(folder), folder), folder.text()

    return run


def test_the_script_in_a_task_works_in_the_workspace(perform, tmp_path):
    body = "Rename it.\n\n```sh\necho hello > greeting\n```\n"
    verdict, _ = perform(SHELL, job(tmp_path, task_body=body))
    assert (verdict.outcome, verdict.exit_code) == (Outcome.DONE, 0)
    assert (tmp_path / "work" / "greeting").read_text() == "hello\n"


def test_a_script_ends_at_its_first_failing_command(perform, tmp_path):
    verdict, text = perform(SHELL, job(tmp_path, task_body="```sh\nfalse\necho on\n```\n"))
    assert (verdict.outcome, verdict.exit_code, text) == (Outcome.CRASHED, 1, "")
    assert verdict.reason == "it exited with 1"


def test_a_script_for_bash_is_run_by_bash(perform, tmp_path):
    _, text = perform(SHELL, job(tmp_path, task_body="```bash\na=(x y); echo ${a[1]}\n```\n"))
    assert text == "y\n"


def test_a_script_sees_its_own_home_its_task_and_its_note(perform, tmp_path):
    body = '```sh\necho $WATCHBILL_TASK $HOME $TMPDIR; cat "$WATCHBILL_NOTE"; touch $HOME/x $TMPDIR/x\n```\n'
    _, text = perform(SHELL, job(tmp_path, task_body=body, note="the tests failed\n"))
    folder = tmp_path / "runs" / "run"
    assert text == f"plan-0a1b2c3d-1 {folder}/home {folder}/tmp\nthe tests failed\n"


def test_a_task_without_a_script_is_refused(tmp_path):
    with pytest.raises(WatchbillError, match="no fenced sh block"):
        SHELL.launch(job(tmp_path, task_body="Just words."))


def test_launching_the_same_job_again_is_the_same_launch(tmp_path):
    todo = job(tmp_path, task_body="```sh\ntrue\n```\n")
    first = SHELL.launch(todo)
    assert isinstance(first, Launch)
    assert SHELL.launch(todo) == first


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("exit 3", 3), ("no-such-command", 127)])
def test_a_check_is_finished_whatever_it_found(perform, tmp_path, command, code):
    verdict, _ = perform(CHECK, job(tmp_path, command=command))
    assert (verdict.outcome, verdict.exit_code) == (Outcome.DONE, code)


def test_a_check_that_was_killed_found_nothing(perform, tmp_path):
    verdict, _ = perform(CHECK, job(tmp_path, command="kill -9 $$"))
    assert verdict.outcome is Outcome.CRASHED


def test_a_check_that_takes_too_long_found_nothing(perform, tmp_path):
    verdict, _ = perform(CHECK, job(tmp_path, command="sleep 1000", timeout=1))
    assert verdict.outcome is Outcome.CRASHED
    assert "longer than 1 s" in verdict.reason


def test_a_check_that_could_not_be_run_found_nothing(perform, tmp_path):
    verdict, _ = perform(CHECK, job(tmp_path, command="true", workspace=tmp_path / "gone"))
    assert verdict.outcome is Outcome.CRASHED


@pytest.mark.parametrize("kind", EndKind)
def test_only_the_graphs_own_stop_is_a_stop(kind):
    at = datetime(2026, 1, 1, tzinfo=UTC)
    expected = Outcome.STOPPED if kind is EndKind.STOPPED else Outcome.CRASHED
    assert unfinished(RunResult(kind, None, "", at, at)).outcome is expected


def test_every_runtime_is_registered_under_its_own_name():
    assert all(runtime.name == name for name, runtime in RUNTIMES.items())


def test_every_runtime_that_a_plan_may_name_is_there_and_no_plan_can_name_the_checks():
    assert set(document.RUNTIMES) <= set(RUNTIMES)
    assert "check" not in document.RUNTIMES
