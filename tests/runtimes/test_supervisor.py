"""What becomes of a run's processes, whatever they and others do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from domain.run import EndKind
from runtimes import linux
from runtimes.folder import Dead, Live

Alive = Callable[[int], bool]

DAEMON = """
    import os, sys
    if os.fork(): os._exit(0)
    os.setsid()
    if os.fork(): os._exit(0)
    open(sys.argv[1], "w").write(f"{os.getpid()}\\n")
    os.execve("/bin/sleep", ["sleep", "1000"], {})
"""


def daemon(home: Path, name: str) -> str:
    """A shell line that leaves a daemon: two forks, a session of its own, no environment."""
    script = home / "daemon.py"
    script.write_text("\n".join(line[4:] for line in DAEMON.splitlines()))
    return f'"{sys.executable}" -I -S "{script}" "{home / name}"'


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def test_a_run_that_exits_is_recorded_with_its_exit_code_and_output(bench):
    run = bench.run("echo out; echo err >&2; exit 3")
    result = bench.end_of(run)
    assert (result.kind, result.exit_code, result.reason) == (EndKind.EXITED, 3, "")
    assert run.tail() == b"out\nerr\n"
    assert (result.output_bytes, result.truncated, result.leftovers) == (8, False, 0)
    assert result.started_at <= result.ended_at
    assert [event["event"] for event in run.events()] == ["started", "ended"]


def test_an_agent_ended_by_a_signal_that_is_not_ours_was_killed(bench):
    result = bench.end_of(bench.run("kill -9 $$"))
    assert (result.kind, result.exit_code) == (EndKind.KILLED, -signal.SIGKILL)
    assert "signal 9" in result.reason


def test_a_command_that_is_not_there_says_so(bench):
    result = bench.end_of(bench.run("", argv=("no-such-agent", "--version")))
    assert (result.kind, result.exit_code) == (EndKind.EXITED, 127)
    assert "no-such-agent" in result.reason


def test_a_command_that_may_not_be_run_says_so(bench, tmp_path):
    (tmp_path / "agent").write_text("#!/bin/sh\n")
    result = bench.end_of(bench.run("", argv=(str(tmp_path / "agent"),)))
    assert (result.kind, result.exit_code) == (EndKind.EXITED, 126)
    assert "Permission denied" in result.reason


def test_a_workspace_that_is_not_there_says_so(bench, tmp_path):
    result = bench.end_of(bench.run("true", cwd=tmp_path / "gone"))
    assert (result.kind, result.exit_code) == (EndKind.EXITED, 126)
    assert str(tmp_path / "gone") in result.reason


def test_names_and_arguments_may_hold_any_text(bench, tmp_path):
    workspace = tmp_path / "päper 日本 $HOME 'x'"
    workspace.mkdir()
    run = bench.run("", argv=("/bin/sh", "-c", 'pwd; printf "%s" "$1"', "sh", '☃ "a"\n\tb\\'), cwd=workspace)
    bench.end_of(run)
    assert run.tail().decode() == f'{workspace}\n☃ "a"\n\tb\\'


def test_the_agent_gets_its_environment_and_nothing_else(bench, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "hunter2")
    run = bench.run("cat /proc/self/environ; cat", env={"PATH": "/usr/bin:/bin", "ONLY": "this"})
    bench.end_of(run)
    names = {entry.partition(b"=")[0] for entry in run.tail().split(b"\0") if entry}
    assert names <= {b"PATH", b"ONLY", b"PWD", b"WATCHBILL_RUN", b"WATCHBILL_MARKER"}
    assert b"ONLY" in names


def test_the_supervisor_itself_holds_none_of_the_workers_secrets(bench, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "hunter2")
    run = bench.run("exec sleep 1000")
    environ = Path(f"/proc/{bench.supervisor(run)}/environ").read_bytes()
    assert b"hunter2" not in environ


def test_the_agent_gets_no_open_file_of_the_worker_or_the_supervisor(bench, tmp_path):
    with (tmp_path / "private").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        run = bench.run("exec ls -l /proc/self/fd")
        bench.end_of(run)
    targets = [line.rpartition(" -> ")[2] for line in run.text().splitlines() if " -> " in line]
    assert [target.partition(":")[0] for target in targets[:3]] == ["/dev/null", "pipe", "pipe"]
    # The directory that ls itself reads.
    assert [target.rpartition("/")[2] for target in targets[3:]] == ["fd"]


def test_the_agent_has_a_session_keyring_of_its_own(bench):
    keyctl = linux.KEYCTL.get(os.uname().machine)
    if keyctl is None:
        pytest.skip("the number of the call is not known here")
    # KEYCTL_GET_KEYRING_ID of KEY_SPEC_SESSION_KEYRING.
    ask = f"import ctypes; print(ctypes.CDLL(None).syscall(ctypes.c_long({keyctl}), 0, -3, 0))"
    ours = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout
    if int(ours) <= 0:
        pytest.skip("there are no keyrings here")
    run = bench.run("", argv=(sys.executable, "-c", ask))
    bench.end_of(run)
    assert int(run.text()) > 0
    assert run.text() != ours


def test_a_story_that_cannot_be_told_keeps_no_run_from_its_beginning_or_end(bench):
    run = bench.folder()
    (run.path / "events.jsonl").mkdir(parents=True)
    result = bench.end_of(bench.run("echo done"))
    assert (result.kind, result.exit_code) == (EndKind.EXITED, 0)
    assert run.text() == "done\n"


def test_the_agent_starts_with_default_signals(bench):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run = bench.run("exec grep -E '^Sig(Blk|Ign)' /proc/self/status")
        bench.end_of(run)
    finally:
        signal.signal(signal.SIGINT, before)
    masks = [int(line.split()[1], 16) for line in run.text().splitlines()]
    # Two signals have no name and belong to the C library: whoever started us may have left them ignored.
    named = sum(1 << (number - 1) for number in signal.valid_signals())
    assert [mask & named for mask in masks] == [0, 0]


def test_a_background_process_is_ended_after_a_normal_exit(bench, alive: Alive):
    run = bench.run('sleep 1000 & echo $! > "$AT/pid"; exit 0')
    result = bench.end_of(run)
    assert (result.kind, result.exit_code, result.leftovers) == (EndKind.EXITED, 0, 1)
    assert not alive(bench.pid_in("pid"))


def test_a_daemon_without_session_or_environment_is_ended_after_a_normal_exit(bench, alive: Alive, tmp_path):
    result = bench.end_of(bench.run(f'{daemon(tmp_path, "pid")}; while [ ! -s "$AT/pid" ]; do sleep 0.01; done'))
    assert (result.kind, result.leftovers) == (EndKind.EXITED, 1)
    assert not alive(bench.pid_in("pid"))


def test_stop_ends_the_whole_tree(bench, alive: Alive, tmp_path):
    run = bench.run(f"sh -c 'sleep 1000 & echo $! > \"$AT/inner\"; wait' & {daemon(tmp_path, 'pid')}; wait")
    pids = [bench.agent(run), bench.pid_in("inner"), bench.pid_in("pid")]
    assert all(map(alive, pids))
    run.stop("a person cancelled the task")
    result = bench.end_of(run)
    assert (result.kind, result.reason) == (EndKind.STOPPED, "a person cancelled the task")
    assert not any(map(alive, pids))


def test_an_agent_may_take_its_leave_within_the_grace(bench):
    run = bench.run('trap "echo bye; exit 7" TERM; echo > "$AT/ready"; while :; do sleep 0.05; done', grace=60.0)
    bench.until(lambda: bench.read("ready"))
    run.stop("enough")
    result = bench.end_of(run)
    assert (result.kind, result.exit_code) == (EndKind.STOPPED, 7)
    assert run.text().endswith("bye\n")


def test_an_agent_that_ignores_sigterm_is_killed_after_the_grace(bench):
    run = bench.run("trap '' TERM; echo > \"$AT/ready\"; while :; do sleep 0.05; done", grace=0.2)
    bench.until(lambda: bench.read("ready"))
    run.stop("enough")
    result = bench.end_of(run)
    assert (result.kind, result.exit_code) == (EndKind.STOPPED, -signal.SIGKILL)


def test_a_stopped_process_is_ended_too(bench):
    run = bench.run('echo > "$AT/ready"; kill -STOP $$', grace=0.2)
    bench.until(lambda: bench.read("ready"))
    run.stop("enough")
    assert bench.end_of(run).exit_code == -signal.SIGKILL


def test_a_tree_that_goes_on_forking_is_ended(bench):
    run = bench.run("trap '' TERM; f() { while :; do (sleep 0.01; sleep 0.01) & sleep 0.01; done; }; f & f", grace=0.2)
    bench.agent(run)
    run.stop("enough")
    assert bench.end_of(run).kind is EndKind.STOPPED
    assert bench.left_of(run) == set()


def test_a_run_that_was_stopped_before_it_began_never_begins(bench):
    run = bench.folder()
    run.stop("cancelled meanwhile")
    run = bench.run('echo > "$AT/began"')
    result = bench.end_of(run)
    assert (result.kind, result.exit_code, result.reason) == (EndKind.STOPPED, None, "cancelled meanwhile")
    assert not (bench.home / "began").exists()


def test_the_wall_clock_ends_a_run(bench):
    result = bench.end_of(bench.run("while :; do echo; sleep 0.05; done", timeout=0.5))
    assert (result.kind, result.reason) == (EndKind.TIMED_OUT, "it ran for longer than 0.5 s")


def test_silence_ends_a_run_that_has_an_idle_limit(bench):
    result = bench.end_of(bench.run("echo; sleep 1000", idle=0.5))
    assert (result.kind, result.reason) == (EndKind.TIMED_OUT, "it wrote nothing for 0.5 s")


def test_a_run_whose_lease_nobody_renews_is_ended(bench, alive: Alive):
    run = bench.run("exec sleep 1000", lease=0.5)
    agent = bench.agent(run)
    assert bench.end_of(run).kind is EndKind.LEASE_LAPSED
    assert not alive(agent)


def test_the_supervisor_told_to_end_ends_its_agent_first(bench, alive: Alive):
    run = bench.run("exec sleep 1000")
    agent = bench.agent(run)
    os.kill(bench.supervisor(run), signal.SIGTERM)
    result = bench.end_of(run)
    assert result.kind is EndKind.KILLED
    assert "the supervisor was told to end" in result.reason
    assert not alive(agent)


def test_the_agent_dies_with_its_supervisor(bench, alive: Alive):
    run = bench.run("exec sleep 1000")
    agent = bench.agent(run)
    bench.kill_supervisor(run)
    bench.until(lambda: not alive(agent))


def test_nothing_is_left_after_the_supervisors_death_once_reaped(bench, alive: Alive, tmp_path):
    run = bench.run(f'setsid sleep 1000 & echo $! > "$AT/child"; {daemon(tmp_path, "daemon")}; wait')
    child, cleared = bench.pid_in("child"), bench.pid_in("daemon")
    bench.kill_supervisor(run)
    assert run.reap() >= 2
    assert not alive(child)
    assert not alive(cleared)


def child_with(word):
    return next((child for child in psutil.Process().children() if word in child.cmdline()), None)


def test_a_supervisor_killed_at_any_moment_leaves_nothing_and_no_second_agent(bench):
    for number in range(25):
        name = f"run-{number}"
        run = bench.run(f'echo >> "$AT/{name}"; (setsid sleep 1000 &); exec sleep 1000', name=name)
        # On a busy machine a process is there a moment before its words are.
        supervisor = bench.until(lambda path=str(run.path): child_with(path))
        time.sleep(number * 0.003)
        supervisor.kill()
        dead = bench.until(lambda run=run: None if run.status() == Live() else run.status())
        begun = bench.read(name)
        assert isinstance(dead, Dead)
        assert dead.begun or not begun
        run.bury()
        assert bench.left_of(run) == set()
        assert bench.read(name) in ("", "\n")


def test_a_process_that_lifted_its_limits_is_known_by_its_environment(bench, alive: Alive, tmp_path):
    script = (
        "import os,resource,sys; resource.setrlimit(resource.RLIMIT_RTTIME, (-1, -1)); "
        "open(sys.argv[1], 'w').write(f'{os.getpid()}\\n'); os.execv('/bin/sleep', ['sleep', '1000'])"
    )
    run = bench.run(f'"{sys.executable}" -c "{script}" "$AT/child" & wait')
    child = bench.pid_in("child")
    bench.kill_supervisor(run)
    run.reap()
    assert not alive(child)


def test_strangers_of_the_same_name_and_of_other_runs_are_never_touched(bench, alive: Alive):
    run = bench.run('setsid sleep 1000 & echo $! > "$AT/pid"; exec sleep 1000')
    other = bench.run("exec sleep 1000", name="other", run_id="plan-0a1b2c3d-1-author-2")
    bench.pid_in("pid")
    marker = bench.marker(run)
    strangers = [
        bench.stranger("sleep", "1000"),
        bench.stranger("sleep", "1000", WATCHBILL_MARKER=marker + "0"),
        bench.stranger("sleep", "1000", WATCHBILL_MARKER=marker[:-1]),
        bench.stranger("sleep", "1000", XWATCHBILL_MARKER=marker),
        bench.stranger("sleep", "1000", NOTE=f" WATCHBILL_MARKER={marker}"),
        bench.agent(other),
        bench.supervisor(other),
    ]
    bench.kill_supervisor(run)
    assert run.bury().leftovers >= 1
    assert all(map(alive, strangers))


def test_a_run_of_the_same_id_in_another_home_is_never_touched(bench, alive: Alive):
    run = bench.run("setsid sleep 1000 & wait", name="here/run")
    other = bench.run("exec sleep 1000", name="there/run")
    bench.agent(run)
    bench.kill_supervisor(run)
    run.reap()
    assert alive(bench.agent(other))


def test_what_an_earlier_agent_left_is_ended_before_another_begins(bench, alive: Alive):
    run = bench.run('setsid sleep 1000 & echo $! > "$AT/pid"; exec sleep 1000')
    left = bench.pid_in("pid")
    bench.kill_supervisor(run)
    for name in ("state.json", "lock"):
        (run.path / name).unlink()
    again = bench.run("true")
    assert bench.end_of(again).leftovers >= 1
    assert not alive(left)


def test_much_output_takes_neither_memory_nor_disk(bench):
    limit = 1 << 18
    run = bench.run(
        "head -c 200000000 /dev/zero | tr '\\0' 'x'; echo the end; echo > \"$AT/done\"; exec sleep 1000",
        output_limit=limit,
    )
    supervisor = psutil.Process(bench.supervisor(run))
    most = 0

    def done() -> bool:
        nonlocal most
        most = max(most, sum(size_of(run.path / name) for name in ("output.0", "output.1")))
        return bool(bench.read("done"))

    bench.until(done)
    peak = next(line for line in Path(f"/proc/{supervisor.pid}/status").read_text().splitlines() if "VmHWM" in line)
    assert int(peak.split()[1]) < 40_000
    assert most <= limit
    bench.until(lambda: run.tail(8) == b"the end\n")
    os.kill(supervisor.pid, signal.SIGKILL)
    assert len(run.tail(1 << 20)) >= limit // 2
    assert run.text(100) == "x" * 92 + "the end\n"


def test_output_beyond_the_limit_is_counted_and_said_to_be_cut(bench):
    result = bench.end_of(bench.run("head -c 100000 /dev/zero", output_limit=1000))
    assert (result.output_bytes, result.truncated) == (100_000, True)


def test_no_supervisor_stays_as_a_zombie_of_its_worker(bench):
    bench.end_of(bench.run("true"))
    bench.until(lambda: not [child for child in psutil.Process().children() if child.status() == "zombie"])


def test_a_thousand_children_leave_no_zombie_below_the_supervisor(bench):
    run = bench.run('i=0; while [ $i -lt 200 ]; do (true & ) ; i=$((i+1)); done; echo > "$AT/done"; exec sleep 1000')
    bench.until(lambda: bench.read("done"))
    supervisor = psutil.Process(bench.supervisor(run))
    bench.until(lambda: len(supervisor.children(recursive=True)) == 1)
