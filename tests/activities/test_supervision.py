"""Watching over real processes: started once, attached to ever after, stopped by the graph alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import update
from temporalio.service import RPCError, RPCStatusCode

from activities import screens
from activities.commissions import Commissions
from activities.supervision import Supervision, workspace_of
from domain.brief import Artifact
from domain.confinement import Confine, Confinement
from domain.errors import NotFound, RateLimited, Unauthorized, WatchbillError
from domain.identity import plan_workflow_id
from domain.metering import Metering
from domain.run import EvidenceKind, Role, RunFacts, RunState
from domain.task import TaskFacts, TaskState
from domain.told import ToldUsage
from runtimes import logins
from runtimes.claude import Claude
from runtimes.confiner import Confiner
from runtimes.folder import Live, RunFolder
from runtimes.hooks import EVENTS_FILE
from runtimes.logins import Logins
from runtimes.opencode import OpenCode
from runtimes.port import DEFAULT_PATH, Job, Launch
from runtimes.registry import RUNTIMES
from runtimes.sandbox import Sandbox
from runtimes.shell import Shell
from runtimes.story import MOST_EVENTS
from signing.capabilities import Grant
from signing.keys import Signer
from signing.minting import mint
from store import contents, runs, tables
from store.audit import audit
from store.events import events_of
from store.evidence import evidence_of
from store.receipts import receipts_of
from store.screens import Seen, seen_of
from store.told import usage_told
from store.views import confinement_of, plan_view
from tests.activities.conftest import KEEPER, Graph
from tests.runtimes.celled import needs_sandbox
from tests.workflows.world import ScriptedForge, not_there
from worker.settings import WorkerSettings

UNTIL_TOLD = "touch started; while [ ! -e go ]; do sleep 0.05; done; echo done"


@pytest.fixture
def commissions(graph: Graph, forge: ScriptedForge, home: Path, signer: Signer) -> Commissions:
    return Commissions(graph.store, forge, home, "", signer, Logins(home / "logins"))


@pytest.fixture
def woken() -> list[str]:
    """The workflows that were hinted to look again."""
    return []


@pytest.fixture
def supervision(graph: Graph, home: Path, commissions: Commissions, woken: list[str]) -> Supervision:
    async def wake(workflow: str) -> None:
        woken.append(workflow)

    confiner = Confiner(Confine.OFF)
    return Supervision(graph.store, home, RUNTIMES, KEEPER, DEFAULT_PATH, 1, commissions, confiner, wake)


@pytest.fixture
async def nothing_is_left(home: Path) -> AsyncIterator[None]:
    yield
    for folder in (home / "runs").glob("*"):
        run = RunFolder(folder)
        run.stop("the test is over")
        while isinstance(run.status(), Live):
            await asyncio.sleep(0.05)


def begin(graph: Graph, home: Path, script: str, role: Role = Role.AUTHOR, **front: str) -> RunFacts:
    graph.confirm(script, **front)
    if role is Role.CHECK:
        graph.move("worked", head_sha="1" * 40, host="host-a")
    run = graph.begin(role, int(role is Role.CHECK), script if role is Role.CHECK else "")
    workspace_of(home, run).mkdir(parents=True)
    return run


async def appears(path: Path) -> None:
    async with asyncio.timeout(30):
        while not path.exists():
            await asyncio.sleep(0.02)


pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.mark.parametrize(("script", "hints"), [("sleep 1", 1), ("true", 0)])
async def test_a_run_that_lasts_has_its_plan_look_once_and_one_that_is_over_soon_costs_it_nothing(
    graph: Graph,
    home: Path,
    supervision: Supervision,
    woken: list[str],
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    hints: int,
) -> None:
    monkeypatch.setattr("activities.supervision.EVERY", 0.05 if hints else 60)
    await graph.call(supervision.supervise, begin(graph, home, script).id)
    assert woken == [plan_workflow_id(graph.plan)] * hints


async def test_a_plan_that_cannot_be_hinted_to_keeps_no_run_from_going_on(
    graph: Graph, home: Path, supervision: Supervision, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    async def away(workflow: str) -> None:
        tried.append(workflow)
        raise RPCError("Temporal is away", RPCStatusCode.UNAVAILABLE, b"")

    monkeypatch.setattr("activities.supervision.EVERY", 0.05)
    end = await graph.call(replace(supervision, wake=away).supervise, begin(graph, home, "sleep 1").id)
    assert end.state is RunState.FINISHED
    assert len(tried) > 1


async def test_a_script_is_run_in_its_workspace_and_its_end_is_recorded(
    graph: Graph, home: Path, supervision: Supervision
) -> None:
    run = begin(graph, home, 'echo "$WATCHBILL_TASK" > made')
    end = await graph.call(supervision.supervise, run.id)
    assert (end.state, end.exit_code) == (RunState.FINISHED, 0)
    assert (workspace_of(home, run) / "made").read_text() == f"{graph.task}\n"
    assert graph.run(run.id).state is RunState.FINISHED
    with graph.store.read() as connection:
        assert events_of(connection, run.id)
    assert await graph.call(supervision.supervise, run.id) == end


async def test_whatever_an_agent_writes_where_its_hook_does_its_end_is_recorded(
    graph: Graph, home: Path, supervision: Supervision
) -> None:
    written = [
        '{"at": 1e30, "event": "x"}',
        "[" * 9000,
        '{"at": 1, "event": "n\\u0000\\ud800", "x": 1e999}',
        *('{"at": 2, "event": "many"}' for _ in range(MOST_EVENTS)),
    ]
    run = begin(graph, home, f"cat lines > {home}/runs/$WATCHBILL_RUN/{EVENTS_FILE}")
    (workspace_of(home, run) / "lines").write_text("".join(f"{line}\n" for line in written))
    assert (await graph.call(supervision.supervise, run.id)).state is RunState.FINISHED
    with graph.store.read() as connection:
        told = events_of(connection, run.id, limit=2 * MOST_EVENTS)
    assert len(told) == MOST_EVENTS
    assert [event.kind for event in told if event.kind != "many"] == ["n\ufffd?", "started", "ended"]


@pytest.mark.parametrize("put", ["mkdir", "mkfifo", "ln -s /etc/passwd", "ln -s /dev/zero"])
async def test_whatever_an_agent_puts_in_the_place_of_its_hooks_file_its_end_is_recorded(
    graph: Graph, home: Path, supervision: Supervision, monkeypatch: pytest.MonkeyPatch, put: str
) -> None:
    monkeypatch.setattr("activities.supervision.EVERY", 0.05)
    place = f"{home}/runs/$WATCHBILL_RUN/{EVENTS_FILE}"
    run = begin(graph, home, f"rm -f {place}; {put} {place}; sleep 0.3")
    assert (await graph.call(supervision.supervise, run.id)).state is RunState.FINISHED
    with graph.store.read() as connection:
        assert [event.kind for event in events_of(connection, run.id)] == ["started", "ended"]


@pytest.mark.parametrize("attached", [True, False])
async def test_a_run_whose_folder_was_deleted_is_a_crash_and_nobody_works_beside_it(
    graph: Graph, home: Path, supervision: Supervision, attached: bool
) -> None:
    # Whoever still writes there can keep a folder from being deleted at once.
    deletes = f"until rm -rf {home}/runs/$WATCHBILL_RUN; do :; done; touch {home}/gone; exec sleep 1000"
    run = begin(graph, home, f"echo $$ > {home}/pid; {UNTIL_TOLD}; {deletes}")
    watching = asyncio.create_task(graph.call(supervision.supervise, run.id))
    await appears(workspace_of(home, run) / "started")
    if not attached:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
    (workspace_of(home, run) / "go").touch()
    if not attached:
        await appears(home / "gone")
        watching = asyncio.create_task(graph.call(supervision.supervise, run.id))
    end = await watching
    assert (end.state, graph.run(run.id).state) == (RunState.CRASHED, RunState.CRASHED)
    assert not psutil.pid_exists(int((home / "pid").read_text()))


async def test_what_the_hook_recorded_is_in_the_store_before_an_agent_can_think_of_erasing_it(
    graph: Graph, home: Path, supervision: Supervision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("activities.supervision.EVERY", 0.05)
    line = '{"at": 5, "event": "refused", "tool": "%s", "why": "no"}\n'
    file = f"{home}/runs/$WATCHBILL_RUN/{EVENTS_FILE}"
    run = begin(graph, home, f"cat one > {file}; {UNTIL_TOLD}; cat two > {file}")
    for name, tool in (("one", "Write"), ("two", "Bash")):
        (workspace_of(home, run) / name).write_text((line % tool).replace("5", "5" if name == "one" else "6"))
    watch = asyncio.ensure_future(graph.call(supervision.supervise, run.id))

    def refused() -> list[str]:
        with graph.store.read() as connection:
            told = events_of(connection, run.id)
        return [event.data["tool"] for event in told if event.kind == "refused"]

    async with asyncio.timeout(30):
        while not refused():
            await asyncio.sleep(0.02)
    assert refused() == ["Write"]
    (workspace_of(home, run) / "go").touch()
    end = await watch
    assert refused() == ["Write", "Bash"]
    assert end.refused == "Bash was refused: no"
    assert (await graph.call(supervision.supervise, run.id)).refused == end.refused


@pytest.mark.parametrize(
    "said",
    [
        Unauthorized("the App's installation on acme/shop is suspended; its owner can lift that on GitHub"),
        not_there("acme/shop"),
        RateLimited("GitHub answered 429 to GET", retry_after=60),
    ],
)
async def test_no_agent_is_sent_out_and_no_capability_minted_before_the_forge_says_that_we_may_work_there(
    graph: Graph, home: Path, forge: ScriptedForge, supervision: Supervision, monkeypatch: pytest.MonkeyPatch,
    said: WatchbillError,
) -> None:  # fmt: skip
    minted: list[Grant] = []

    def counting(signer: Signer, grant: Grant, now: datetime, ttl: timedelta) -> str:
        minted.append(grant)
        return mint(signer, grant, now, ttl)

    monkeypatch.setattr("activities.commissions.mint", counting)
    run = begin(graph, home, "touch made", runtime="claude")
    sending = replace(
        supervision,
        runtimes={"claude": Shell()},
        commissions=replace(supervision.commissions, relay="http://127.0.0.1:1"),
    )
    forge.script.tell("acme/shop", "installation", said, said)
    for _ in range(2):
        with pytest.raises(type(said), match=str(said)):
            await graph.call(sending.supervise, run.id)
    assert (minted, (home / "runs" / run.id).exists()) == ([], False)
    assert (graph.run(run.id).live, graph.run(run.id).confinement) == (True, "")

    await graph.call(sending.supervise, run.id)
    assert (workspace_of(home, run) / "made").exists()
    assert [grant.run for grant in minted] == [run.id]
    assert graph.run(run.id).cap_nano_usd == minted[0].max_budget_nano_usd == 0
    assert forge.looks["acme/shop"] == 3
    await graph.call(sending.supervise, run.id)
    assert forge.looks["acme/shop"] == 3


async def test_a_script_needs_nobodys_leave_as_it_gets_no_capability(
    graph: Graph, home: Path, forge: ScriptedForge, supervision: Supervision
) -> None:
    run = begin(graph, home, "true")
    await graph.call(supervision.supervise, run.id)
    assert forge.looks["acme/shop"] == 0


async def test_a_watch_that_is_cancelled_leaves_its_agent_to_the_next_one(
    graph: Graph, home: Path, supervision: Supervision
) -> None:
    run = begin(graph, home, f"echo x >> count; {UNTIL_TOLD}")
    tree = workspace_of(home, run)
    watch = asyncio.ensure_future(graph.call(supervision.supervise, run.id))
    await appears(tree / "started")
    watch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watch
    assert isinstance(RunFolder(home / "runs" / run.id).status(), Live)
    watch = asyncio.ensure_future(graph.call(supervision.supervise, run.id))
    (tree / "go").touch()
    assert (await watch).state is RunState.FINISHED
    assert (tree / "count").read_text() == "x\n"


async def test_two_watches_at_once_start_one_agent(graph: Graph, home: Path, supervision: Supervision) -> None:
    run = begin(graph, home, f"echo x >> count; {UNTIL_TOLD}")
    tree = workspace_of(home, run)
    watches = [asyncio.ensure_future(graph.call(supervision.supervise, run.id)) for _ in range(3)]
    await appears(tree / "started")
    (tree / "go").touch()
    ends = await asyncio.gather(*watches)
    assert {end.state for end in ends} == {RunState.FINISHED}
    assert (tree / "count").read_text() == "x\n"


async def test_a_run_is_stopped_because_the_graph_says_so(graph: Graph, home: Path, supervision: Supervision) -> None:
    run = begin(graph, home, UNTIL_TOLD)
    watch = asyncio.ensure_future(graph.call(supervision.supervise, run.id))
    await appears(workspace_of(home, run) / "started")
    graph.pause()
    end = await watch
    assert end.state is RunState.STOPPED
    assert "paused" in end.reason


async def test_a_failing_script_is_a_crash_with_its_last_words(
    graph: Graph, home: Path, supervision: Supervision
) -> None:
    run = begin(graph, home, "echo what went wrong; exit 3")
    end = await graph.call(supervision.supervise, run.id)
    assert (end.state, end.exit_code) == (RunState.CRASHED, 3)
    assert end.tail == "what went wrong\n"
    with graph.store.read() as connection:
        (crash,) = evidence_of(connection, task_id=graph.task)
    assert (crash.kind, crash.run_id) == ("agent_crash", run.id)


async def test_a_failing_check_is_a_finding_about_the_commit(
    graph: Graph, home: Path, supervision: Supervision
) -> None:
    run = begin(graph, home, "echo 1 failed; exit 1", Role.CHECK)
    end = await graph.call(supervision.supervise, run.id)
    assert (end.state, end.exit_code) == (RunState.FINISHED, 1)
    with graph.store.read() as connection:
        (check,) = evidence_of(connection, task_id=graph.task)
    assert (check.kind, check.commit_sha, check.exit_code) == ("check", "1" * 40, 1)


async def test_a_runtime_that_this_host_lacks_is_named(graph: Graph, home: Path, supervision: Supervision) -> None:
    run = begin(graph, home, "true")
    bare = replace(supervision, runtimes={})
    with pytest.raises(NotFound, match="no runtime shell"):
        await graph.call(bare.supervise, run.id)


async def test_the_agents_environment_is_its_own(
    graph: Graph, home: Path, supervision: Supervision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHBILL_GITHUB_TOKEN_FILE", "/secrets/token")
    monkeypatch.setenv("SECRET_OF_THE_WORKER", "hunter2")
    run = begin(graph, home, "env > environment; tr '\\0' '\\n' < /proc/$PPID/environ > supervisor || true")
    await graph.call(supervision.supervise, run.id)
    for name in ("environment", "supervisor"):
        seen = (workspace_of(home, run) / name).read_text()
        assert "hunter2" not in seen
        assert "/secrets/token" not in seen


def seen(graph: Graph, run: RunFacts) -> Seen:
    with graph.store.read() as connection:
        return seen_of(connection, run.id)


async def test_a_run_at_work_is_seen_in_the_store_and_its_last_screen_stays(
    graph: Graph, home: Path, supervision: Supervision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("activities.supervision.EVERY", 0.05)
    run = begin(graph, home, f"printf '\\033[31mat work\\033[0m with ghp_{'a' * 36}\\n'; {UNTIL_TOLD}")
    watch = asyncio.ensure_future(graph.call(supervision.supervise, run.id))
    async with asyncio.timeout(30):
        while not seen(graph, run).text:
            await asyncio.sleep(0.02)
    assert seen(graph, run).text == "at work with [redacted]\n"
    (workspace_of(home, run) / "go").touch()
    await watch
    assert seen(graph, run).text == "at work with [redacted]\ndone\n"


async def test_what_changes_nothing_on_the_screen_writes_nothing(
    graph: Graph, home: Path, supervision: Supervision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("activities.supervision.EVERY", 0.01)
    put: list[str] = []
    monkeypatch.setattr(screens, "put_screen", lambda _connection, _run, text, _at: put.append(text))
    run = begin(graph, home, f"echo one; {UNTIL_TOLD}")
    watch = asyncio.ensure_future(graph.call(supervision.supervise, run.id))
    await appears(workspace_of(home, run) / "started")
    async with asyncio.timeout(30):
        while not put:
            await asyncio.sleep(0.02)
    (workspace_of(home, run) / "go").touch()
    await watch
    assert put in (["one\n"], ["one\n", "one\ndone\n"])


async def test_a_check_that_nobody_could_watch_leaves_no_screen(
    graph: Graph, home: Path, supervision: Supervision
) -> None:
    run = begin(graph, home, "echo 3 passed", Role.CHECK)
    end = await graph.call(supervision.supervise, run.id)
    assert end.tail == "3 passed\n"
    assert seen(graph, run) == Seen(graph.run(run.id), task_state=TaskState.CHECKING)


async def test_a_screen_that_cannot_be_read_keeps_no_run_from_its_end(
    graph: Graph, home: Path, supervision: Supervision, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> str:
        raise ValueError("no such picture")

    monkeypatch.setattr("runtimes.screen.Screen.look", broken)
    run = begin(graph, home, "echo done")
    assert (await graph.call(supervision.supervise, run.id)).state is RunState.FINISHED
    assert seen(graph, run).text == ""


async def test_the_last_words_of_an_agent_are_those_of_its_stream(
    graph: Graph, home: Path, supervision: Supervision
) -> None:
    run = begin(graph, home, "echo a warning >&2; cat said; exit 1")
    said = {"type": "text", "part": {"text": "I could not find the table, token=ghp_" + "b" * 36}}
    (workspace_of(home, run) / "said").write_text(json.dumps(said) + "\n")
    with graph.store.write() as connection:
        connection.execute(update(tables.runs).where(tables.runs.c.id == run.id).values(runtime="opencode"))
    spoken = replace(supervision, runtimes={"opencode": Spoken()})
    monkeyed = replace(spoken, commissions=NoAgents(**vars(supervision.commissions)))
    end = await graph.call(monkeyed.supervise, run.id)
    assert end.state is RunState.CRASHED
    assert end.tail == "I could not find the table, token=[redacted]\n\n\nbeside it, on standard error:\na warning"
    with graph.store.read() as connection:
        (crash,) = evidence_of(connection, task_id=graph.task)
    assert crash.kind == "agent_crash"


class Spoken(OpenCode):
    """OpenCode's stream, written by the task's script."""

    def launch(self, job: Job) -> Launch:
        return replace(Shell().launch(job), stream=True)


class NoAgents(Commissions):
    """Sends runs out with nothing."""

    def job(self, job: Job, run: RunFacts, task: TaskFacts, now: datetime, metering: str = "") -> Job:
        return job


def confined(supervision: Supervision, wish: Confine, *, can: bool = True) -> Supervision:
    """A supervision with this wish, on a host that can confine or cannot."""
    missing = Sandbox(missing="bubblewrap is not installed")
    confiner = Confiner(wish, (supervision.home,))
    return replace(supervision, confiner=confiner if can else replace(confiner, find=lambda: missing))


@needs_sandbox
async def test_a_confined_run_says_so_in_its_row_and_its_plan(
    graph: Graph, home: Path, supervision: Supervision
) -> None:
    run = begin(graph, home, f"echo $$ > pid; cat {home}/graph.db || echo done > made")
    (home / "graph.db").write_text("a secret of ours")
    end = await graph.call(confined(supervision, Confine.AUTO).supervise, run.id)
    assert (end.state, end.exit_code) == (RunState.FINISHED, 0)
    assert graph.run(run.id).confinement == Confinement.CONFINED
    assert (workspace_of(home, run) / "made").exists()
    with graph.store.read() as connection:
        view = plan_view(connection, graph.plan)
    assert view is not None
    assert view.confinement == "confined"


@needs_sandbox
async def test_a_confined_run_can_prove_what_it_is_given_and_cannot_change_it(
    graph: Graph, home: Path, supervision: Supervision, monkeypatch: pytest.MonkeyPatch
) -> None:
    with graph.store.write() as connection:
        given = Artifact("1/check-1", contents.keep(connection, b"2 passed\n"), "")
    monkeypatch.setattr("store.briefing.artifacts_for", lambda *_: (given,))
    script = """
        cd "$WATCHBILL_GIVEN"
        sha256sum --check SHA256SUMS > "$OLDPWD/checked"
        ! echo other > 1/check-1
        ! rm 1/check-1
    """
    run = begin(graph, home, script)
    end = await graph.call(confined(supervision, Confine.AUTO).supervise, run.id)
    assert (end.state, end.exit_code) == (RunState.FINISHED, 0)
    assert (workspace_of(home, run) / "checked").read_text() == "1/check-1: OK\n"
    assert (home / "runs" / run.id / "given" / "1" / "check-1").read_bytes() == b"2 passed\n"


async def test_a_run_that_cannot_be_confined_and_need_not_be_says_that_it_is_not(
    graph: Graph, home: Path, supervision: Supervision
) -> None:
    run = begin(graph, home, "true")
    with graph.store.read() as connection:
        assert not confinement_of(connection, plan_id=graph.plan)
    await graph.call(confined(supervision, Confine.AUTO, can=False).supervise, run.id)
    assert graph.run(run.id).confinement == Confinement.UNCONFINED
    with graph.store.read() as connection:
        assert confinement_of(connection, plan_id=graph.plan, task_id=graph.task) == "unconfined"


async def test_a_plan_may_require_what_the_worker_does_not(graph: Graph, home: Path, supervision: Supervision) -> None:
    run = begin(graph, home, "touch made", confine="required")
    with pytest.raises(NotFound, match="has to be confined, and bubblewrap is not installed"):
        await graph.call(confined(supervision, Confine.OFF, can=False).supervise, run.id)
    assert graph.run(run.id).state is RunState.STARTING
    assert not (workspace_of(home, run) / "made").exists()


@needs_sandbox
@pytest.mark.parametrize(("network", "how"), [("none", Confinement.CONFINED), ("open", Confinement.NETWORKED)])
async def test_a_check_has_the_network_that_its_plan_gives_it(
    graph: Graph, home: Path, supervision: Supervision, network: str, how: Confinement
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"/dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        script = f"bash -c 'exec 3<> {address}' && echo reached || exit 5"
        run = begin(graph, home, script, Role.CHECK, network=network)
        end = await graph.call(confined(supervision, Confine.AUTO).supervise, run.id)
    assert graph.run(run.id).confinement == how
    reached = network == "open"
    assert end.tail.endswith("reached\n") is reached
    assert (end.exit_code, end.reason) == ((0, "") if reached else (5, "exit 5, without a network"))


@needs_sandbox
async def test_how_a_run_was_to_be_confined_holds_when_its_spawn_is_repeated(
    graph: Graph, home: Path, supervision: Supervision
) -> None:
    run = begin(graph, home, "true")
    RunFolder(home / "runs" / run.id).make()
    with graph.store.write() as connection:
        runs.spawned(connection, run, KEEPER, Confinement.CONFINED, datetime.now(UTC), 1)
    with pytest.raises(NotFound, match="has to be confined"):
        await graph.call(confined(supervision, Confine.AUTO, can=False).supervise, run.id)
    await graph.call(confined(supervision, Confine.OFF).supervise, run.id)
    assert graph.run(run.id).confinement == Confinement.CONFINED


KEY = "sk-ant-api03-a-key-of-ones-own-0123456789"
SAYS = """echo '{"type": "result", "total_cost_usd": 0.5, "usage": {"output_tokens": 7}}'"""
UNMETERED = {"runtime": "claude", "network": "open", "metering": "off"}


class OnItsOwn(Shell):
    """Runs a task's script as if it were an agent, with a login in its memory where it is to have one."""

    def launch(self, job: Job) -> Launch:
        assert job.memory is not None
        job.memory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if job.login is not None:
            logins.give(job.memory, {logins.KEY: KEY})
        return replace(super().launch(job), stream=True)

    def usage(self, stream: Iterable[Mapping[str, Any]]) -> ToldUsage | None:
        return Claude().usage(stream)


@pytest.fixture
def around(supervision: Supervision) -> Supervision:
    commissions = replace(supervision.commissions, relay="http://127.0.0.1:1")
    return replace(supervision, runtimes={**RUNTIMES, "claude": OnItsOwn()}, commissions=commissions)


async def test_an_unmetered_run_says_so_wherever_it_is_told_of_and_its_login_goes_with_it(
    graph: Graph, home: Path, around: Supervision
) -> None:
    run = begin(graph, home, SAYS, **UNMETERED)
    copy = around.commissions.memory(run, Metering.UNMETERED) / logins.KEY
    await graph.call(around.supervise, run.id)
    told = graph.run(run.id)
    assert (told.live, told.metering, told.cap_nano_usd) == (False, Metering.UNMETERED, None)
    assert copy.parent.is_dir()
    assert not copy.exists()
    with graph.store.read() as connection:
        view = plan_view(connection, graph.plan)
        (spawn,) = [each for each in receipts_of(connection, graph.plan, 0, 1000) if each.event == "spawn"]
        assert audit(connection) == ()
    assert view is not None
    assert (view.metering, view.spent_nano_usd) == ("unmetered", None)
    assert spawn.facts == {"confinement": "unconfined", "metering": "unmetered", "brief": told.brief}
    assert told.brief
    with graph.store.read() as connection:
        assert usage_told(connection, [graph.plan]) == {run.id: ToldUsage("claude", {"output": 7}, 500_000_000)}
        (heard,) = [each for each in evidence_of(connection, task_id=graph.task) if each.kind == EvidenceKind.USAGE]
        assert (heard.run_id, heard.epoch, heard.command, heard.seen_by) == (run.id, 1, "claude", "worker-1")
    assert spawn.cause == "on host host-a, unconfined, unmetered"


async def test_a_metered_agent_and_what_is_no_agent_say_what_they_are(
    graph: Graph, home: Path, around: Supervision
) -> None:
    run = begin(graph, home, SAYS, runtime="claude")
    await graph.call(around.supervise, run.id)
    assert (graph.run(run.id).metering, graph.run(run.id).cap_nano_usd) == (Metering.METERED, 0)
    with graph.store.read() as connection:
        # The ledger has it.
        kinds = {each.kind for each in evidence_of(connection, task_id=graph.task)}
        assert EvidenceKind.USAGE not in kinds
    graph.move("worked", head_sha="1" * 40, host="host-a")
    check = graph.begin(Role.CHECK, 1, "true")
    workspace_of(home, check).mkdir(parents=True)
    await graph.call(around.supervise, check.id)
    assert graph.run(check.id).metering == ""


async def test_a_run_whose_cli_has_no_login_is_not_begun_and_says_how_to_make_one(
    graph: Graph, home: Path, around: Supervision, tmp_path: Path
) -> None:
    run = begin(graph, home, "true", **UNMETERED)
    (tmp_path / "claude").touch(mode=0o755)
    real = replace(around, runtimes=RUNTIMES, agent_path=f"{tmp_path}:{DEFAULT_PATH}")
    with pytest.raises(Unauthorized, match=r"make one with: CLAUDE_CONFIG_DIR=.*/logins/claude claude /login"):
        await graph.call(real.supervise, run.id)
    assert graph.run(run.id).state is RunState.STARTING


async def test_what_was_written_down_of_a_runs_metering_holds_when_its_spawn_is_repeated(
    graph: Graph, home: Path, around: Supervision
) -> None:
    run = begin(graph, home, "true", **UNMETERED)
    RunFolder(home / "runs" / run.id).make()
    with graph.store.write() as connection:
        # As a worker did that knew of nothing but metered runs.
        runs.spawned(connection, run, KEEPER, Confinement.UNCONFINED, datetime.now(UTC), 1, 0)
    await graph.call(around.supervise, run.id)
    assert (graph.run(run.id).live, graph.run(run.id).metering) == (False, "")


async def test_a_worker_whose_runs_have_to_be_confined_makes_no_unmetered_one(
    graph: Graph, home: Path, around: Supervision
) -> None:
    run = begin(graph, home, "true", **UNMETERED)
    with pytest.raises(WatchbillError, match="`network: open` is no confinement"):
        await graph.call(confined(around, Confine.REQUIRED).supervise, run.id)
    assert graph.run(run.id).state is RunState.STARTING


@needs_sandbox
async def test_an_unmetered_run_in_a_cell_has_the_hosts_network_and_of_logins_its_own_copy_alone(
    graph: Graph, home: Path, around: Supervision
) -> None:
    (home / "logins" / "claude").mkdir(parents=True)
    (home / "logins" / "claude" / "api-key").write_text(KEY)
    copy = home / "memory" / graph.task / "author-claude-unmetered" / logins.KEY
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = "\n".join(
            (
                f"bash -c 'exec 3<> /dev/tcp/127.0.0.1/{server.getsockname()[1]}' && echo reached > made",
                f"cat {copy} >> made",
                f"cat {home}/logins/claude/api-key >> stolen || true",
            )
        )
        run = begin(graph, home, script, **UNMETERED)
        await graph.call(confined(around, Confine.AUTO).supervise, run.id)
    assert graph.run(run.id).confinement == Confinement.NETWORKED
    assert (workspace_of(home, run) / "made").read_text() == f"reached\n{KEY}"
    assert (workspace_of(home, run) / "stolen").read_text() == ""


@needs_sandbox
@pytest.mark.parametrize("runtime", ["shell", "claude"])
async def test_a_confined_run_sees_nothing_of_any_login(
    graph: Graph, home: Path, around: Supervision, tmp_path: Path, runtime: str
) -> None:
    data = tmp_path / "data"
    for folder in (home / "logins" / "claude", data / "logins" / "claude", home / "memory" / "other"):
        folder.mkdir(parents=True)
        (folder / "api-key").write_text(KEY)
    (data / "set").write_text("what may be read")
    # Even what a person has shown to runs shows none.
    settings = WorkerSettings(home=home, logins=data / "logins", confine_read=str(data))
    script = "\n".join(
        (
            f"cat {data}/set > made",
            *(f"cat {folder}/*/api-key >> stolen || true" for folder in (home / "logins", data / "logins")),
            f"cat {home}/memory/other/api-key >> stolen || true",
        )
    )
    run = begin(graph, home, script, runtime=runtime)
    shut = replace(around, confiner=Confiner(settings.confine, settings.hidden, settings.readable))
    await graph.call(shut.supervise, run.id)
    assert graph.run(run.id).confinement == Confinement.CONFINED
    assert (workspace_of(home, run) / "made").read_text() == "what may be read"
    assert (workspace_of(home, run) / "stolen").read_text() == ""
