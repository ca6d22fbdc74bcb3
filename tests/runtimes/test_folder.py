"""What workers see of a run from outside, and what any number of them can do to it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.run import EndKind
from runtimes.files import write_object
from runtimes.folder import Absent, Dead, Ended, Live, RunFolder, reap_orphans
from runtimes.hooks import EVENTS_FILE, TOLD
from runtimes.lock import lock_held, take_lock
from runtimes.segments import Segments, read_tail
from runtimes.story import MOST_EVENTS
from runtimes.supervisor import read_lease

ROOT = Path(__file__).parents[2]

WORKER = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from datetime import UTC, datetime, timedelta
from pathlib import Path
from runtimes.folder import RunFolder
from runtimes.port import Launch

home, script = Path(sys.argv[2]), sys.argv[3]
argv = ("/bin/sh", "-c", script)
launch = Launch("plan-0a1b2c3d-1-author-1", argv, home, {"PATH": os.environ["PATH"]}, 600.0)
(home / f"ready-{os.getpid()}").touch()
while not (home / "go").exists():
    time.sleep(0.001)
RunFolder(home / "runs" / "run").spawn(launch, datetime.now(UTC) + timedelta(seconds=600))
print("spawned", flush=True)
sys.stdin.read()
"""


def worker(home: Path, script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(ROOT), str(home), script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def soon(seconds: float = 600.0) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def test_a_folder_goes_from_absent_through_live_to_ended(bench):
    run = bench.folder()
    assert run.status() == Absent()
    run.spawn(bench.launch('while [ ! -e "$AT/go" ]; do sleep 0.01; done'), soon())
    assert run.status() == Live()
    (bench.home / "go").touch()
    assert bench.end_of(run).kind is EndKind.EXITED
    assert isinstance(run.status(), Ended)


def test_a_run_is_live_from_the_moment_that_spawn_returns(bench):
    for number in range(20):
        run = bench.run("exec sleep 1000", name=f"run-{number}")
        assert run.status() == Live()
        run.stop("seen")


def test_the_agent_goes_on_when_the_worker_that_spawned_it_is_killed(bench, alive, tmp_path):
    (tmp_path / "go").touch()
    first = worker(tmp_path, f'while [ ! -e "{tmp_path}/finish" ]; do sleep 0.01; done; echo $$')
    with first:
        assert first.stdout.readline() == b"spawned\n"
        run = bench.folder()
        agent = bench.agent(run)
        first.kill()
    assert alive(agent)
    assert run.status() == Live()
    run.spawn(bench.launch("echo another"), soon())
    (tmp_path / "finish").touch()
    assert bench.end_of(run).kind is EndKind.EXITED
    assert run.text() == f"{agent}\n"


def test_workers_that_spawn_at_once_start_one_agent(bench, tmp_path):
    workers = [worker(tmp_path, f'echo $$ >> "{tmp_path}/agents"; exec sleep 1000') for _ in range(8)]
    bench.until(lambda: len(list(tmp_path.glob("ready-*"))) == len(workers))
    (tmp_path / "go").touch()
    for one in workers:
        with one:
            assert one.stdout.readline() == b"spawned\n"
            one.kill()
    run = bench.folder()
    agent = bench.pid_in("agents")
    run.stop("seen")
    bench.end_of(run)
    assert (tmp_path / "agents").read_text() == f"{agent}\n"
    assert [event["event"] for event in run.events()] == ["started", "ended"]


def test_threads_that_spawn_and_look_at_once_start_one_agent(bench):
    run = bench.folder()
    launch = bench.launch('echo $$ >> "$AT/agents"')
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda turn: run.status() if turn % 2 else run.spawn(launch, soon()), range(40)))
    bench.end_of(run)
    assert len(bench.read("agents").splitlines()) == 1


def test_a_run_that_has_ended_is_not_started_again(bench):
    run = bench.run('echo >> "$AT/begun"')
    result = bench.end_of(run)
    run.spawn(bench.launch('echo >> "$AT/begun"'), soon())
    assert run.status() == Ended(result)
    assert bench.read("begun") == "\n"


def test_a_dead_run_is_not_started_again_before_it_is_buried_nor_after(bench):
    run = bench.run('echo >> "$AT/begun"; exec sleep 1000')
    bench.until(lambda: bench.read("begun"))
    bench.kill_supervisor(run)
    assert run.status() == Dead(begun=True)
    run.spawn(bench.launch('echo >> "$AT/begun"'), soon())
    assert run.status() == Dead(begun=True)
    run.bury()
    run.spawn(bench.launch('echo >> "$AT/begun"'), soon())
    assert isinstance(run.status(), Ended)
    assert bench.read("begun") == "\n"


def test_a_renewed_lease_lets_the_run_go_on(bench):
    run = bench.run("sleep 2; echo done", lease=1.5)
    run.renew(soon())
    assert bench.end_of(run).kind is EndKind.EXITED


def test_a_lease_of_another_boot_counts_as_none(bench):
    run = bench.folder()
    run.path.mkdir(parents=True)
    run.renew(soon())
    assert read_lease(str(run.path)) > 0
    lease = json.loads((run.path / "lease").read_text())
    (run.path / "lease").write_text(json.dumps({**lease, "boot_id": "another"}))
    assert read_lease(str(run.path)) == 0


def test_burying_records_a_dead_run_once(bench):
    run = bench.run("echo some words; exec sleep 1000")
    bench.until(run.tail)
    bench.kill_supervisor(run)
    with ThreadPoolExecutor(4) as pool:
        results = {result for result in pool.map(lambda _: run.bury(), range(4)) if result}
    assert len(results) == 1
    result = results.pop()
    assert (result.kind, result.exit_code) == (EndKind.SUPERVISOR_DIED, None)
    assert result.output_bytes == len("some words\n")
    assert run.status() == Ended(result)
    assert run.text() == "some words\n"


def test_burying_makes_room_for_what_it_records(bench):
    run = bench.run("exec sleep 1000")
    (run.path / "tmp" / "deep").mkdir(parents=True)
    (run.path / "tmp" / "deep" / "large").write_bytes(b"x" * 4096)
    bench.kill_supervisor(run)
    bench.until(lambda: run.bury() is not None)
    assert not (run.path / "tmp").exists()


def test_a_run_whose_folder_was_deleted_is_ended_and_mourned_once(bench, alive):
    run = bench.run("(trap '' TERM; setsid sleep 1000) & exec sleep 1000")
    agent = bench.agent(run)
    supervisor = bench.state(run)["supervisor"][0]
    assert not run.lost()
    shutil.rmtree(run.path)
    assert run.lost()
    assert run.status() == Absent()
    run.mourn("plan-0a1b2c3d-1-author-1")
    assert not alive(agent)
    status = run.status()
    assert isinstance(status, Ended)
    assert status.result.kind in (EndKind.SUPERVISOR_DIED, EndKind.KILLED)
    bench.until(lambda: not alive(supervisor))
    run.mourn("plan-0a1b2c3d-1-author-1")
    assert isinstance(run.status(), Ended)


def test_burying_leaves_a_live_run_alone(bench, alive):
    run = bench.run("exec sleep 1000")
    agent = bench.agent(run)
    assert run.bury() is None
    assert run.reap() == 0
    assert alive(agent)


def test_burying_an_ended_run_answers_its_result(bench):
    run = bench.run("exit 4")
    result = bench.end_of(run)
    bench.until(lambda: run.bury() == result)


def test_a_run_whose_supervisor_never_began_can_be_spawned_again_or_buried(bench):
    run = bench.run("true", name="first")
    spec = (run.path / "spec.json").read_bytes()
    for name in ("again", "buried"):
        folder = bench.folder(name)
        folder.path.mkdir()
        (folder.path / "spec.json").write_bytes(spec)
        assert folder.status() == Dead(begun=False)
    assert folder.bury().kind is EndKind.NEVER_STARTED
    assert bench.end_of(bench.run("true", name="again")).kind is EndKind.EXITED


def test_a_run_cut_short_by_a_restart_of_the_machine_says_so(bench):
    run = bench.run("exec sleep 1000")
    state = bench.state(run)
    bench.kill_supervisor(run)
    (run.path / "state.json").write_text(json.dumps({**state, "boot_id": "another"}))
    assert "restarted" in run.bury().reason


def test_a_result_emptied_by_a_power_cut_counts_as_none(bench):
    run = bench.run("true")
    bench.end_of(run)
    bench.until(lambda: not lock_held(run.path / "lock"))
    (run.path / "result.json").write_bytes(b"")
    assert run.status() == Dead(begun=True)
    assert run.bury().kind is EndKind.SUPERVISOR_DIED


def test_a_starting_worker_reaps_what_dead_supervisors_left_and_nothing_else(bench, alive):
    dead = bench.run('setsid sleep 1000 & echo $! > "$AT/left"; exec sleep 1000', name="dead")
    live = bench.run("exec sleep 1000", name="live")
    bench.end_of(bench.run("true", name="ended"))
    left = bench.pid_in("left")
    bench.kill_supervisor(dead)
    reaped = reap_orphans(bench.home / "runs")
    assert list(reaped) == ["dead"]
    assert not alive(left)
    assert alive(bench.agent(live))
    assert reap_orphans(bench.home / "nothing here") == {}


def test_a_file_that_cannot_be_replaced_leaves_no_draft_behind(tmp_path):
    (tmp_path / "result.json").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_object(str(tmp_path / "result.json"), {"kind": "exited"})
    assert list(tmp_path.iterdir()) == [tmp_path / "result.json"]


def test_events_are_read_from_where_the_reader_left_off_and_never_torn(tmp_path):
    run = RunFolder(tmp_path)
    assert run.events() == []
    lines = '{"event": "a", "at": 1.5}\nnot json\n{"event": "b", "at": 2}\n{"event": "torn'
    (tmp_path / "events.jsonl").write_text(lines)
    first = {"event": "a", "seq": 1, "at": "1970-01-01T00:00:01.500000+00:00"}
    third = {"event": "b", "seq": 3, "at": "1970-01-01T00:00:02+00:00"}
    assert run.events() == [first, third]
    assert run.events(after=1) == [third]
    assert run.events(after=3) == []


@pytest.mark.parametrize(
    "line",
    [
        '{"at": 1e30, "event": "x"}',
        '{"at": 1e999, "event": "x"}',
        f'{{"at": 1{"0" * 400}, "event": "x"}}',
        '{"at": -1e17, "event": "x"}',
        "[" * 100_000,
        "[" * 10_000,
        '{"at": 1, "event": {"x": 1}}',
        '{"at": [1], "event": "x"}',
        '{"at": 1, "event": "x", "what": "' + "x" * 100_000 + '"}',
        "7",
    ],
)
def test_a_line_that_an_agent_wrote_and_that_is_no_event_is_passed_over(tmp_path, line):
    run = RunFolder(tmp_path)
    (tmp_path / TOLD).mkdir()
    (tmp_path / EVENTS_FILE).write_text(f'{line}\n{{"at": 1, "event": "used"}}\n')
    assert [event["seq"] for event in run.uses()] == [2]


def test_of_what_an_agent_wrote_there_is_flat_and_bounded_text_and_so_many_lines(tmp_path):
    run = RunFolder(tmp_path)
    (tmp_path / TOLD).mkdir()
    nonsense = f'"deep": {"[" * 900}{"]" * 900}, "endless": 1e999, "huge": 1{"0" * 400}, "none": NaN, "{"k" * 500}": 1'
    line = f'{{"at": 1, "event": "{"e" * 500}", "what": "{"x" * 5000}", {nonsense}}}\n'
    (tmp_path / EVENTS_FILE).write_text(line + '{"at": 1, "event": "many"}\n' * MOST_EVENTS)
    found = run.uses()
    assert len(found) == MOST_EVENTS
    assert set(found[0]) == {"at", "event", "seq", "what"}
    assert (len(found[0]["event"]), len(found[0]["what"])) == (100, 2000)


@pytest.mark.parametrize("size", [1, 3, 7, 64, 1000])
def test_the_tail_is_the_end_of_what_was_written_whatever_the_pieces(tmp_path, size):
    everything = bytes(range(256)) * 10
    output = Segments(str(tmp_path), 100)
    for start in range(0, len(everything), size):
        output.write(everything[start : start + size])
        so_far = everything[: start + size]
        kept = read_tail(str(tmp_path), 1000)
        assert so_far.endswith(kept)
        assert len(kept) >= min(len(so_far), 50)
        assert read_tail(str(tmp_path), 5) == so_far[-5:]
    assert output.total == len(everything)
    assert output.truncated


def test_the_tail_is_in_order_while_output_is_written(tmp_path):
    output = Segments(str(tmp_path), 4000)
    stop = time.monotonic() + 0.5
    with ThreadPoolExecutor(1) as pool:

        def write() -> None:
            number = 0
            while time.monotonic() < stop:
                output.write(b"%08d\n" % number)
                number += 1

        writing = pool.submit(write)
        while not writing.done():
            numbers = [int(line) for line in read_tail(str(tmp_path), 4000).split(b"\n")[1:-1]]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True


def test_a_character_cut_by_the_limit_of_the_text_is_left_out(tmp_path):
    Segments(str(tmp_path), 10_000).write("€".encode() * 3000)
    text = RunFolder(tmp_path).text(100)
    assert text == "€" * 33


def test_a_lock_can_be_asked_for_without_being_taken(tmp_path):
    path = tmp_path / "lock"
    assert not lock_held(path)
    lock = take_lock(path)
    assert lock is not None
    assert lock_held(path)
    assert take_lock(path) is None
    os.close(lock)
    assert not lock_held(path)


def test_the_folder_is_for_its_owner_only(bench):
    run = bench.run("true", env={"TOKEN": "capability"})
    assert run.path.stat().st_mode & 0o077 == 0
    assert (run.path / "spec.json").stat().st_mode & 0o077 == 0


def test_a_killed_worker_leaves_a_lock_to_nobody(tmp_path):
    script = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from runtimes.hooks import EVENTS_FILE, TOLD
from runtimes.lock import take_lock
take_lock(Path(sys.argv[2]))
print(flush=True)
sys.stdin.read()
"""
    argv = [sys.executable, "-c", script, str(ROOT), str(tmp_path / "lock")]
    holder = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with holder:
        holder.stdout.readline()
        assert lock_held(tmp_path / "lock")
        holder.send_signal(signal.SIGKILL)
    assert not lock_held(tmp_path / "lock")
