"""What a confined run can do, which is its work, and what it cannot, whatever it tries."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from pwd import getpwnam
from urllib.parse import urlsplit

import pytest

import domain
from domain.confinement import Confine, Confinement, Network
from domain.errors import NotFound, WatchbillError
from domain.run import EndKind
from runtimes import confiner
from runtimes.confiner import Confiner
from runtimes.folder import Dead
from runtimes.hooks import EVENTS_FILE, TOLD
from runtimes.passage import Carrier, hand_out
from runtimes.port import Door
from runtimes.sandbox import SHUT, Sandbox, find_sandbox
from tests.runtimes.celled import NO_SANDBOX, Cells, Relay, needs_sandbox, serving

CONNECT = "import socket, sys; socket.create_connection((%r, %d), 5); print('reached')"
FETCH = (
    "import socket; s = socket.create_connection((%r, %d), 30); s.sendall(b'GET / HTTP/1.0\\r\\nHost: %s\\r\\n\\r\\n')"
)
READ = f"""{FETCH}
f = s.makefile('rb')
for line in f:
    if line.startswith((b'first', b'second')): print(line.decode().strip(), flush=True)
"""


@pytest.fixture
def cells(bench, tmp_path: Path) -> Cells:
    return Cells(bench, tmp_path)


@pytest.fixture
def relay() -> Iterator[Relay]:
    yield from serving()


# Its work.


@needs_sandbox
def test_a_confined_run_works_in_its_workspace_and_its_own_folders(cells):
    run = cells.run(
        'pwd; echo made > made; echo mine > "$HOME/mine"; echo tmp > "$TMPDIR/tmp"; echo x > /tmp/x; exit 3'
    )
    result = cells.bench.end_of(run)
    assert (result.kind, result.exit_code, result.reason) == (EndKind.EXITED, 3, "")
    assert run.text() == f"{cells.work}\n"
    assert (cells.work / "made").read_text() == "made\n"
    assert (run.path / "home" / "mine").read_text() == "mine\n"
    assert not Path("/tmp/x").exists()


@needs_sandbox
def test_a_confined_run_is_told_its_environment_and_nothing_else(cells):
    run = cells.run("", argv=("/usr/bin/env",), env={"ONLY": "this", "PATH": "/usr/bin"})
    names = {line.partition("=")[0] for line in cells.said(run).splitlines()}
    assert names == {"ONLY", "PATH", "PWD", "WATCHBILL_RUN", "WATCHBILL_MARKER"}


@needs_sandbox
def test_a_confined_agent_gets_default_signals_no_privilege_and_no_file_of_ours(cells):
    script = "grep -E '^(Sig(Blk|Ign)|Cap(Eff|Bnd)|NoNewPrivs)' /proc/self/status; ls -l /proc/self/fd"
    said = cells.said(cells.run(script)).splitlines()
    values = {line.split()[0]: int(line.split()[1], 16) for line in said[:5]}
    # The C library keeps two signals for itself, lets nobody set them, and leaves one ignored in what `make` starts.
    values["SigIgn:"] &= ~(0b11 << 31)
    assert values == {"SigBlk:": 0, "SigIgn:": 0, "CapEff:": 0, "CapBnd:": 0, "NoNewPrivs:": 1}
    targets = [line.rpartition(" -> ")[2].partition(":")[0] for line in said if " -> " in line]
    assert targets[:3] == ["/dev/null", "pipe", "pipe"]
    assert len(targets) == 4


@needs_sandbox
@pytest.mark.parametrize(("script", "code"), [("kill -9 $$", -9), ("kill $$", -15), ("exit 137", 137)])
def test_how_a_confined_agent_ended_is_told_as_of_any_other(cells, script, code):
    result = cells.bench.end_of(cells.run(script))
    assert (result.kind, result.exit_code) == (EndKind.KILLED if code < 0 else EndKind.EXITED, code)


@needs_sandbox
def test_a_command_that_is_not_in_the_cell_says_so(cells, tmp_path):
    (tmp_path / "agent").write_text("#!/bin/sh\n")
    (tmp_path / "agent").chmod(0o755)
    result = cells.bench.end_of(cells.run("", argv=(str(tmp_path / "agent"),)))
    assert (result.kind, result.exit_code) == (EndKind.EXITED, 127)
    assert str(tmp_path / "agent") in result.reason


@needs_sandbox
def test_a_cell_that_cannot_be_made_is_no_agents_exit(cells, tmp_path):
    cells.confiner = Confiner(Confine.AUTO, find=lambda: Sandbox("/bin/false"))
    result = cells.bench.end_of(cells.run("true"))
    assert (result.kind, result.exit_code) == (EndKind.EXITED, 1)
    assert "its cell could not be made" in result.reason


@needs_sandbox
def test_programs_on_the_path_of_a_hidden_place_run_with_what_they_are_part_of(cells, tmp_path):
    prefix = tmp_path / "prefix"
    package = prefix / "lib" / "node_modules" / "@maker" / "cli"
    for folder in (prefix / "bin", package / "vendor", tmp_path / "home" / "bin"):
        folder.mkdir(parents=True)
    (package / "vendor" / "word").write_text("here\n")
    (package / "cli.sh").write_text('#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/vendor/word"\n')
    (package / "cli.sh").chmod(0o755)
    (prefix / "bin" / "cli").symlink_to("../lib/node_modules/@maker/cli/cli.sh")
    (prefix / "credentials").write_text("secret")
    (tmp_path / "shown").symlink_to(prefix)
    # Watchbill's own home is elsewhere here: what lies in it is never shown.
    cells.confiner = Confiner(Confine.REQUIRED)
    job = cells.job(path=f"{tmp_path / 'shown' / 'bin'}:/usr/bin:/bin")
    said = cells.said(cells.run(f"cli; ls {prefix}; touch {prefix}/bin/x || echo kept", job))
    assert said.splitlines()[:1] == ["here"]
    assert "credentials" not in said
    assert "kept" in said


@needs_sandbox
@pytest.mark.parametrize(
    "place", [".bin", "shims", ".local/shims", ".local/share/shims", ".config/shims", "bin", "", ".manager/shims"]
)
def test_a_place_on_the_path_shows_no_home(cells, tmp_path, monkeypatch, place):
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for folder in (".ssh", ".local/share/keyrings", ".config/gh", place):
        (home / folder).mkdir(parents=True, exist_ok=True)
    for secret in (".ssh/key", ".local/share/keyrings/key", ".config/gh/token"):
        (home / secret).write_text("a secret of a person")
    (home / place / "word").write_text("#!/bin/sh\necho here\n")
    (home / place / "word").chmod(0o755)
    # A link to a folder is no program.
    (home / place / "all").symlink_to(home)
    # Watchbill's own home is elsewhere here: what lies in it is never shown.
    cells.confiner = Confiner(Confine.REQUIRED)
    said = cells.said(cells.run(f"word; grep -rs secret {home}; true", cells.job(path=f"{home / place}:/usr/bin:/bin")))
    assert "secret" not in said
    assert ("here" in said) is bool(place)


@needs_sandbox
def test_programs_of_a_project_run_with_the_packages_beside_them(cells, tmp_path):
    packages = tmp_path / "project" / "node_modules"
    (packages / ".bin").mkdir(parents=True)
    (packages / "word").write_text("here")
    cells.confiner = Confiner(Confine.REQUIRED)
    assert cells.said(cells.run(f"cat {packages}/word", cells.job(path=f"{packages}/.bin:/usr/bin:/bin"))) == "here"


@needs_sandbox
def test_what_a_setting_names_may_be_read_and_not_written(cells, tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    (data / "set").write_text("numbers\n")
    cells.confiner = Confiner(Confine.REQUIRED, hidden=(cells.home,), shown=(data,))
    assert cells.said(cells.run(f"cat {data}/set; touch {data}/x 2> /dev/null || echo kept")) == "numbers\nkept"


# What it cannot do.


@needs_sandbox
def test_what_must_not_be_seen_is_not_there(cells, tmp_path_factory):
    other = cells.home / "runs" / "other"
    places = (cells.home / "graph.db", cells.home / "keys" / "seal.pem", other / "token", cells.home / "mirrors" / "m")
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "token"
    for place in (*places, elsewhere):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("a secret of ours")
    # Even where somebody lets all of it be read.
    cells.confiner = Confiner(Confine.REQUIRED, hidden=(cells.home, elsewhere), shown=(cells.home.parent, elsewhere))
    tried = " ".join(map(str, (*places, elsewhere)))
    run = cells.run(f"cat {tried}; ls {cells.home} {cells.home}/runs; ls -A /run /home /var/tmp; cat /etc/shadow")
    said = cells.said(run)
    assert "a secret of ours" not in said
    assert "other" not in said.replace("other/token", "")
    assert "root:" not in said


@needs_sandbox
@pytest.mark.skipif(os.getuid() != 0, reason="whoever is not root reads nothing of it anyhow")
def test_what_is_not_for_everybody_in_the_systems_settings_is_not_there_though_we_could_read_it(cells):
    closed = [
        Path(folder, name)
        for folder, _, names in os.walk("/etc")
        for name in names
        if not Path(folder, name).is_symlink() and not Path(folder, name).stat().st_mode & 0o004
    ]
    assert any(file.stat().st_size for file in closed if file.name not in ("shadow", "gshadow"))
    tried = " ".join(map(str, closed))
    said = cells.said(cells.run(f"for f in {tried}; do test -s $f && echo $f; done; test -s /etc/passwd && echo seen"))
    assert said == "seen"


@needs_sandbox
@pytest.mark.skipif(find_sandbox().shut == SHUT, reason="this bubblewrap is older than 0.8")
def test_nobody_in_a_cell_makes_a_namespace_in_which_it_has_every_privilege(cells):
    said = cells.said(cells.run("unshare --user --map-root-user grep CapEff /proc/self/status || echo refused"))
    assert said.endswith("refused")
    assert "CapEff" not in said
    # Root is refused it for another reason; users are by this.
    assert "--disable-userns" in cells.launch("true").cell.argv


@needs_sandbox
@pytest.mark.parametrize("place", ["/", "/etc", "/usr/bin", "/dev", "{home}", "{folder}", "{home}/workspaces"])
def test_nothing_is_written_outside_of_the_workspace(cells, place):
    place = place.format(home=cells.home, folder=cells.job().folder)
    cells.said(
        cells.run(f"echo x > {place}/planted; ln -s /etc/passwd {place}/link; mv {place}/home {place}/moved; true")
    )
    assert not Path(place, "planted").exists()
    assert not Path(place, "link").is_symlink()
    assert not Path(place, "moved").exists()


@needs_sandbox
def test_the_files_of_the_control_plane_cannot_be_changed_from_inside(cells):
    job = cells.job(memory=cells.home / "memory")
    job.folder.mkdir(parents=True)
    job.memory.mkdir()
    for file in (job.folder / "policy.json", job.folder / "token", job.memory / "config.toml"):
        file.write_text("ours")
    script = (
        'for f in "$F/policy.json" "$F/token" "$M/config.toml"; do echo theirs > $f; rm -f $f; mv /tmp/x $f; done; true'
    )
    fixed = (job.memory / "config.toml",)
    env = {"PATH": job.path, "F": str(job.folder), "M": str(job.memory)}
    cells.said(cells.run(f"echo > /tmp/x; touch $M/session; {script}", job, fixed=fixed, env=env))
    assert [file.read_text() for file in (job.folder / "policy.json", job.folder / "token", fixed[0])] == ["ours"] * 3
    assert (job.memory / "session").exists()


@needs_sandbox
def test_a_link_planted_where_the_hook_writes_leads_nobody_astray(cells, tmp_path_factory):
    secret = tmp_path_factory.mktemp("outside") / "secret"
    secret.write_text('{"at": 1, "event": "used", "what": "hunter2"}\n')
    told = cells.job().folder / TOLD
    run = cells.run(f"ln -s {secret} {told}/hook-events.jsonl")
    cells.bench.end_of(run)
    assert (run.path / EVENTS_FILE).is_symlink()
    assert run.uses() == []


@needs_sandbox
def test_a_pipe_planted_where_the_hook_writes_holds_nobody_up(cells):
    run = cells.run(f"mkfifo {cells.job().folder / TOLD}/hook-events.jsonl")
    cells.bench.end_of(run)
    assert run.uses() == []


@needs_sandbox
def test_no_process_of_the_host_is_seen_or_signalled(cells):
    stranger = cells.bench.stranger("/bin/sleep", "1000")
    said = cells.said(cells.run(f"ls -d /proc/[0-9]* | wc -l; kill -9 {stranger} -1; ls /proc/{stranger}"))
    assert int(said.split()[0]) < 10
    assert cells.bench.until(lambda: cells.bench.strangers[-1].poll() is None)


@needs_sandbox
def test_no_address_of_the_host_is_reached_without_a_door(cells, relay):
    said = cells.said(cells.python(CONNECT % ("127.0.0.1", relay.port)))
    assert "reached" not in said
    assert "ConnectionRefusedError" in said


@needs_sandbox
def test_a_socket_in_the_file_system_is_not_reached(cells, tmp_path_factory):
    folder = tmp_path_factory.mktemp("s")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "postgres"))
        server.listen()
        cells.confiner = Confiner(Confine.REQUIRED, hidden=(cells.home,), shown=(folder,))
        program = (
            f"import socket; socket.socket(socket.AF_UNIX).connect({str(folder / 'postgres')!r}); print('reached')"
        )
        assert "reached" not in cells.said(cells.python(program))


@needs_sandbox
def test_our_own_commands_start_inside_and_reach_no_store_and_no_plan(cells, sqlite_store):
    watchbill = Path(sys.executable).with_name("watchbill")
    cells.confiner = Confiner(Confine.REQUIRED, hidden=(cells.home,), shown=(Path(domain.__file__).parents[1],))
    with socket.create_server(("127.0.0.1", 0)) as temporal:
        env = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(cells.home),
            "WATCHBILL_HOME": str(cells.home),
            "WATCHBILL_STORE_URL": str(sqlite_store.url),
            "TEMPORAL_ADDRESS": f"127.0.0.1:{temporal.getsockname()[1]}",
        }
        tried = "; ".join(f"{watchbill} {what}; echo exit $?" for what in ("--version", "status", "confirm a-plan"))
        said = cells.said(cells.run(tried, cells.job(path=f"{watchbill.parent}:/usr/bin:/bin"), env=env))
        temporal.setblocking(False)
        with pytest.raises(BlockingIOError):
            temporal.accept()
    assert said.startswith(f"watchbill {version('watchbill')}\nexit 0\n")
    assert said.count("Temporal does not answer") == 2
    assert "there is no store" in said


# Its door.


@needs_sandbox
@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "relay.test"])
def test_the_relay_is_reached_by_its_address_and_nothing_else_is(cells, relay, host):
    with socket.create_server(("127.0.0.1", 0)) as other:
        door = relay.door(host)
        job = cells.job(door=door)
        parts = urlsplit(cells.confiner.job(job, Confinement.CONFINED).door.models)
        relay.go_on.set()
        if host == "127.9.9.9":
            # Out there nobody listens at this address, so nothing is there.
            said = cells.said(cells.python(FETCH % (parts.hostname, parts.port, host) + "; print(s.recv(1))", job))
            assert said == "b''" or "Error" in said
            return
        program = READ % (parts.hostname, parts.port, parts.hostname)
        if host == "relay.test":
            # Its name leads to nobody out there, which the cell cannot know.
            assert "first" not in cells.said(cells.python(program, job))
            return
        assert cells.said(cells.python(program, job)) == f"first for {parts.hostname}\nsecond"
        said = cells.said(cells.python(CONNECT % ("127.0.0.1", other.getsockname()[1]), cells.job("again", door=door)))
        assert "reached" not in said


@needs_sandbox
def test_what_the_relay_streams_arrives_as_it_comes(cells, relay):
    run = cells.python(READ % ("127.0.0.1", relay.port, "x"), cells.job(door=relay.door()))
    cells.bench.until(lambda: run.text().startswith("first"))
    assert "second" not in run.text()
    relay.go_on.set()
    assert cells.said(run).endswith("second")


@needs_sandbox
def test_a_relay_that_is_not_there_is_a_connection_that_ends(cells, relay):
    door = relay.door()
    relay.server_close()
    said = cells.said(cells.python(READ % ("127.0.0.1", relay.port, "x"), cells.job(door=door)))
    assert "first" not in said


@pytest.mark.parametrize(
    ("relay", "models"),
    [
        ("http://127.0.0.1:8271/models", "http://127.0.0.1:8271/models"),
        ("http://[::1]:8271/models", "http://[::1]:8271/models"),
        ("http://localhost:8271/models", "http://127.0.0.1:8271/models"),
        ("http://10.0.0.7:8271/models", "http://127.0.0.1:8271/models"),
        ("http://relay:8271/models", "http://relay:8271/models"),
        ("https://relay.example.com/models", "https://relay.example.com:20443/models"),
    ],
)
def test_the_door_has_an_address_that_a_cell_can_have(cells, relay, models):
    job = cells.job(door=Door(relay, "", "token"))
    assert cells.confiner.job(job, Confinement.CONFINED).door == Door(models, "", "token")
    assert cells.confiner.job(job, Confinement.UNCONFINED).door == job.door


# Its end.


@needs_sandbox
def test_a_confined_agent_is_asked_to_end_before_it_is_made_to(cells):
    run = cells.run('trap "echo goodbye; exit 7" TERM; echo ready; while :; do sleep 0.05; done', grace=60.0)
    cells.bench.until(lambda: "ready" in run.text())
    run.stop("enough")
    result = cells.bench.end_of(run)
    assert (result.kind, result.exit_code) == (EndKind.STOPPED, 7)
    assert run.text().endswith("goodbye\n")


@needs_sandbox
def test_a_confined_agent_that_will_not_end_is_made_to(cells):
    run = cells.run('trap "" TERM; echo ready; while :; do sleep 0.05; done', grace=0.2)
    cells.bench.until(lambda: "ready" in run.text())
    run.stop("enough")
    result = cells.bench.end_of(run)
    assert (result.kind, result.exit_code) == (EndKind.STOPPED, -signal.SIGKILL)
    assert cells.bench.left_of(run) == set()


@needs_sandbox
def test_a_confined_run_whose_lease_lapses_ends(cells):
    result = cells.bench.end_of(cells.run("exec sleep 1000", lease=0.5))
    assert result.kind is EndKind.LEASE_LAPSED


@needs_sandbox
def test_what_a_confined_agent_leaves_behind_ends_with_it_and_is_counted(cells):
    run = cells.run("setsid sleep 1000 & setsid sleep 1000 & exit 0")
    result = cells.bench.end_of(run)
    assert (result.kind, result.exit_code, result.leftovers) == (EndKind.EXITED, 0, 2)
    assert cells.bench.left_of(run) == set()


@needs_sandbox
@pytest.mark.parametrize("with_door", [False, True])
def test_a_supervisor_that_is_killed_takes_its_cell_with_it(cells, relay, with_door):
    job = cells.job(door=relay.door() if with_door else None)
    run = cells.run("setsid sleep 1000 & echo ready; exec sleep 1000", job)
    cells.bench.until(lambda: "ready" in run.text())
    assert cells.bench.left_of(run)
    cells.bench.kill_supervisor(run)
    assert run.status() == Dead(begun=True)
    cells.bench.until(lambda: not cells.bench.left_of(run))
    result = run.bury()
    assert result is not None
    assert result.kind is EndKind.SUPERVISOR_DIED


def test_a_cell_whose_supervisor_died_while_it_was_made_starts_nobody(tmp_path):
    reader, report = os.pipe()
    own = [str(report), "-1", "-", "0", "/bin/sh", "sh", "-c", f"touch {tmp_path}/begun"]
    command = [sys.executable, "-I", "-S", str(Path(confiner.__file__).with_name("inside.py")), *own]
    subprocess.run(command, pass_fds=[report], check=True)
    assert (tmp_path / "begun").exists()
    (tmp_path / "begun").unlink()
    os.close(reader)
    subprocess.run(command, pass_fds=[report], check=False)
    os.close(report)
    assert not (tmp_path / "begun").exists()


def test_a_door_stays_open_when_there_was_no_thread_for_a_caller(relay, monkeypatch):
    short = [True]

    class Scarce(threading.Thread):
        def start(self) -> None:
            if self._target.__name__ == "_carry" and short:
                short.pop()
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr("runtimes.passage.Thread", Scarce)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = taken.getsockname()
    carrier = Carrier(("127.0.0.1", relay.port))
    hand_out(os.dup(carrier.theirs), address)
    carrier.begin()
    with socket.create_connection(address) as first:
        assert first.recv(1) == b""
    with socket.create_connection(address) as second:
        second.sendall(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n")
        assert second.recv(1)
    assert not short


@needs_sandbox
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_user_without_privileges_has_cells_too():
    nobody = getpwnam("nobody").pw_uid
    found = find_sandbox()
    tried = "id -u; unshare --user --map-root-user grep CapEff /proc/self/status"
    command = [found.program, *found.shut, "--ro-bind", "/", "/", "--", "/bin/sh", "-c", tried]
    done = subprocess.run(command, user=nobody, group=nobody, capture_output=True, text=True, check=False, cwd="/")
    if not done.stdout:
        pytest.skip(f"this host denies it to users: {done.stderr}")
    assert done.stdout.split("\n")[0] == str(nobody)
    assert ("CapEff" in done.stdout) is (found.shut == SHUT)


# Whether it is confined.


def choose(wish: Confine, plan: Confine = Confine.AUTO, *, network=Network.NONE, has_door=False, can=True):
    confiner = Confiner(wish, find=lambda: Sandbox("/usr/bin/bwrap") if can else NO_SANDBOX)
    return confiner.choose(plan, network, has_door=has_door)


def test_a_run_is_confined_where_the_host_can_unless_told_otherwise():
    assert choose(Confine.AUTO) is Confinement.CONFINED
    assert choose(Confine.AUTO, can=False) is Confinement.UNCONFINED
    assert choose(Confine.OFF) is Confinement.UNCONFINED
    assert choose(Confine.OFF, Confine.REQUIRED) is Confinement.CONFINED


def test_the_open_network_is_for_what_has_no_door_and_is_told():
    assert choose(Confine.AUTO, network=Network.OPEN) is Confinement.NETWORKED
    assert choose(Confine.AUTO, network=Network.OPEN, has_door=True) is Confinement.CONFINED


@pytest.mark.parametrize(("wish", "plan"), [(Confine.REQUIRED, Confine.AUTO), (Confine.OFF, Confine.REQUIRED)])
def test_what_has_to_be_confined_and_cannot_be_is_refused_in_one_sentence_that_helps(wish, plan):
    with pytest.raises(
        NotFound, match=r"not installed; mend it on this host with: apt-get install bubblewrap"
    ) as refusal:
        choose(wish, plan, can=False)
    assert not refusal.value.retryable


def test_what_has_to_be_confined_gets_no_open_network():
    with pytest.raises(WatchbillError, match="network: open"):
        choose(Confine.REQUIRED, network=Network.OPEN)


@needs_sandbox
def test_what_has_the_hosts_network_finds_its_door_where_it_is(cells):
    job = cells.job(door=Door("http://relay.example:80/models", "http://relay.example:80/mcp", "t"))
    assert cells.confiner.job(job, Confinement.NETWORKED) == replace(job, confined=True)
    launch = cells.launch("true", job, Confinement.NETWORKED)
    assert launch.cell.passage is None
    assert "--share-net" in launch.cell.argv
    assert "/etc/hosts" not in launch.cell.argv
    assert cells.launch("true", job).cell.passage is not None
