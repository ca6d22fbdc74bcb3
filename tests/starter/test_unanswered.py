"""What a command does when nobody answers, and how it leaves."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from domain.errors import Unavailable
from domain.identity import plan_id
from runtimes.agent import PACKAGES
from starter.exits import Exit
from starter.nearby import require_temporal
from starter.settings import load
from store.database import migrate
from tests.starter.conftest import plan


def at(watchbill, address: str):
    watchbill.settings["WATCHBILL_TEMPORAL_ADDRESS"] = address
    return watchbill


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_fifty_commands_leave_with_the_code_that_they_mean(watchbill, idle_temporal):
    """A process that used Temporal's client may abort at its exit (temporalio/sdk-python#300)."""
    command = at(watchbill, idle_temporal)
    with ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda _: command("status").returncode, range(50))
    assert list(done) == [Exit.DONE] * 50


def test_a_namespace_that_is_not_there_is_named(watchbill, idle_temporal, write):
    command = at(watchbill, idle_temporal)
    path = write("faster.md", plan("faster"))
    for arguments in (["status"], ["status", "faster"], ["submit", path], ["pause", "faster"]):
        done = command(*arguments, WATCHBILL_TEMPORAL_NAMESPACE="attic")
        assert (done.returncode, done.stderr.count("\n")) == (Exit.UNREACHABLE, 1), done.stderr
        assert "has no namespace attic" in done.stderr


def test_without_a_worker_a_submission_says_so_and_does_not_hang(watchbill, idle_temporal, write):
    done = at(watchbill, idle_temporal)("submit", write("faster.md", plan("faster")))
    assert (done.returncode, done.stdout) == (Exit.UNREACHABLE, "")
    assert "no worker does" in done.stderr
    assert "watchbill worker" in done.stderr


def test_without_worker_and_store_a_status_names_both(watchbill, idle_temporal, write):
    command = at(watchbill, idle_temporal)
    command("submit", write("waiting.md", plan("waiting")))
    done = command("status", "waiting")
    assert done.returncode == Exit.UNREACHABLE
    assert "no worker does" in done.stderr
    assert "there is no store at" in done.stderr


def test_without_a_worker_the_store_is_asked(watchbill, idle_temporal, tmp_path, published_graph):
    command = at(watchbill, idle_temporal)
    done = command("status", "faster", "--json", WATCHBILL_STORE_URL=published_graph)
    assert done.returncode == Exit.DONE, done.stderr
    assert json.loads(done.stdout)["plan_id"] == plan_id("local", "faster")


def test_without_temporal_the_store_is_asked_and_that_is_said(watchbill, published_graph):
    done = watchbill("status", "faster", WATCHBILL_STORE_URL=published_graph)
    assert done.returncode == Exit.DONE, done.stderr
    assert "faster" in done.stdout
    assert "This is what the store says" in done.stderr


@pytest.mark.parametrize("arguments", [["status"], ["status", "faster"], ["report", "faster"]])
def test_where_nobody_listens_neither_temporals_client_nor_the_other_stores_dialect_is_loaded(
    watchbill, published_graph, arguments
):
    script = (
        "import json, sys\n"
        "from starter.__main__ import run\n"
        "code = run(sys.argv[1:])\n"
        "print(json.dumps([code, *sorted(sys.modules)]), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *arguments], capture_output=True, text=True, check=True,
        env={**watchbill.environment, "WATCHBILL_STORE_URL": published_graph}, cwd=watchbill.folder,
    )  # fmt: skip
    assert plan_id("local", "faster") in done.stdout or "# faster" in done.stdout
    code, *modules = json.loads(done.stderr.splitlines()[-1])
    assert code == Exit.DONE
    assert "sqlalchemy.dialects.sqlite" in modules
    assert {"temporalio", "sqlalchemy.dialects.postgresql", "store.revision"}.isdisjoint(modules)


def test_a_temporal_elsewhere_or_with_a_profile_is_asked_by_its_client_alone(tmp_path):
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        named = {"WATCHBILL_HOME": str(tmp_path), "WATCHBILL_TEMPORAL_ADDRESS": f"127.0.0.1:{port}"}
        # It is bound and nobody listens.
        with pytest.raises(Unavailable, match=f"Temporal does not answer at 127.0.0.1:{port}; start it"):
            require_temporal(load(named))
        require_temporal(load({**named, "TEMPORAL_TLS": "true"}))
        require_temporal(load({**named, "WATCHBILL_TEMPORAL_ADDRESS": "temporal.invalid:7233"}))
        listening.listen()
        require_temporal(load(named))


def test_without_temporal_the_store_lists_the_plans_and_that_is_said(watchbill, published_graph):
    done = watchbill("status", WATCHBILL_STORE_URL=published_graph)
    assert done.returncode == Exit.DONE, done.stderr
    assert plan_id("local", "faster") in done.stdout
    assert "This is what the store says" in done.stderr
    [line] = json.loads(watchbill("status", "--json", WATCHBILL_STORE_URL=published_graph).stdout)
    assert (line["state"], line["needs_person"]) == ("awaiting_confirmation", True)
    assert datetime.fromisoformat(line["published"]).tzinfo is not None
    assert line["in_temporal_since"] == ""
    nobodys = watchbill("status", WATCHBILL_STORE_URL=published_graph, WATCHBILL_OWNER="ada")
    assert nobodys.stdout.startswith("ada has no plans in the store")


def test_a_temporal_that_lists_no_plans_leaves_the_word_to_the_store(watchbill, idle_temporal, published_graph):
    done = at(watchbill, idle_temporal)("status", WATCHBILL_STORE_URL=published_graph)
    assert (done.returncode, done.stderr) == (Exit.DONE, "")
    assert plan_id("local", "faster") in done.stdout


def test_without_temporal_and_store_a_list_names_both(watchbill):
    done = watchbill("status")
    assert done.returncode == Exit.UNREACHABLE
    assert "Temporal does not answer" in done.stderr
    assert "there is no store at" in done.stderr


def test_the_doctor_names_what_is_missing_and_what_mends_it(watchbill):
    done = watchbill("doctor", "--json")
    assert done.returncode == Exit.FAULTS
    findings = {each["what"]: each for each in json.loads(done.stdout)}
    assert (findings["Temporal"]["level"], findings["Temporal"]["mend"]) == ("missing", "watchbill up")
    assert findings["store"]["level"] == "warn"
    assert "WATCHBILL_GITHUB_TOKEN_FILE" in findings["forge"]["mend"]
    assert watchbill("doctor").returncode == Exit.FAULTS


def test_the_doctor_knows_which_agents_are_here_and_installs_the_others(watchbill, tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, version in (("claude", PACKAGES["claude"][1]), ("codex", "0.1.2")):
        (programs / name).write_text(f"#!/bin/sh\necho {name} {version}; touch {tmp_path}/started-{name}\n")
        (programs / name).chmod(0o700)
    done = watchbill("doctor", "--json", WATCHBILL_AGENT_PATH=f"{programs}:{os.defpath}")
    findings = {each["what"]: each for each in json.loads(done.stdout)}
    assert (findings["claude"]["level"], findings["claude"]["found"]) == ("ok", PACKAGES["claude"][1])
    assert findings["codex"]["level"] == "warn"
    assert findings["codex"]["found"].startswith("0.1.2")
    assert findings["codex"]["mend"] == f"npm install --global @openai/codex@{PACKAGES['codex'][1]}"
    assert "there is no opencode on" in findings["opencode"]["found"]
    assert findings["opencode"]["mend"].startswith("npm install --global opencode-ai@")
    assert {path.name for path in tmp_path.glob("started-*")} == {"started-claude", "started-codex"}


def test_the_doctor_never_shows_what_is_in_a_secret_or_a_url(watchbill, tmp_path):
    token = tmp_path / "token"
    token.write_text("made-up-token")
    done = watchbill(
        "doctor", "--json", WATCHBILL_GITHUB_TOKEN_FILE=str(token),
        WATCHBILL_STORE_URL="postgresql://ada:hunter2@127.0.0.1:1/shop",
    )  # fmt: skip
    assert "made-up-token" not in done.stdout + done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    findings = {each["what"]: each for each in json.loads(done.stdout)}
    assert findings["WATCHBILL_GITHUB_TOKEN_FILE"]["level"] == "warn"
    assert findings["forge"]["found"] == "a personal token"


def test_a_new_temporal_takes_over_the_graph_only_by_word(watchbill, idle_temporal, tmp_path):
    url = f"sqlite:///{tmp_path}/graph.db"
    migrate(url)
    command = at(watchbill, idle_temporal)
    first = command("rebuild", WATCHBILL_STORE_URL=url)
    assert (first.returncode, "number 1" in first.stdout) == (Exit.DONE, True)
    again = command("rebuild", WATCHBILL_STORE_URL=url)
    assert (again.returncode, "already" in again.stdout) == (Exit.DONE, True)
    _another_took_over(url)
    late = command("rebuild", WATCHBILL_STORE_URL=url)
    assert late.returncode == Exit.REFUSED
    assert "has taken over" in late.stderr


def _another_took_over(url: str) -> None:
    from store.database import open_store
    from store.workers import incarnation_of

    store = open_store(url)
    with store.write() as connection:
        incarnation_of(connection, "another", datetime.now(UTC))
    store.close()
