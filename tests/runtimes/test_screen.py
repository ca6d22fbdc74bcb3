"""What can be seen of a run: by the streams that real CLIs wrote, and by programs that really draw."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.agents import AGENTS
from runtimes.folder import RunFolder
from runtimes.registry import RUNTIMES
from runtimes.scenes import text_of
from runtimes.screen import LIMIT, Screen, cut
from runtimes.segments import Follower, Segments
from runtimes.terminal import Terminal

STREAMS = Path(__file__).with_name("streams")

SEEN = {
    "claude-402": ["> Bash echo x > a.txt\n  (Bash completed with no output)", "-- failed: API Error: 402 Budget"],
    "claude-hook-deny-and-mcp": ["> Write /workspace/forbidden.txt\n! PreToolUse:Write hook error", "-- ended"],
    "claude-sigterm": ["echo never > never.txt\n! Exit code 137"],
    "claude-success": ["> Write /workspace/hello.txt\n  File created", "All done.\n\n-- ended"],
    "codex-402": ["> shell /bin/bash -lc 'echo x > a.txt'", "-- failed: unexpected status 402"],
    "codex-hook-deny-and-mcp": ["> change /workspace/ok.txt", '> get_context api\n  slice for {"topic": "api"}'],
    "codex-success": ["  touch: cannot touch '.git/x': Read-only file system", "All done.\n\n-- ended"],
    "opencode-402": ["> bash echo x > a.txt\n  (no output)\n-- failed: Budget exhausted"],
    "opencode-plugin-deny-and-mcp": ["> write /workspace/forbidden.txt\n! policy: path is out", "done\n\n-- ended"],
    "opencode-success": ["> write /workspace/hello.txt\n  Wrote file successfully.", "All done.\n\n-- ended"],
}

CURSES = """
import curses, pathlib, sys, time
def draw(screen):
    curses.start_color()
    curses.init_pair(1, curses.COLOR_RED, curses.COLOR_BLACK)
    for step in range(300):
        screen.addstr(0, 0, "at work")
        screen.addstr(1, 0, f"step {step:3}", curses.color_pair(1) | curses.A_BOLD)
        screen.refresh()
    screen.addstr(39, 110, "corner")
    screen.refresh()
    pathlib.Path(sys.argv[1]).touch()
    while not pathlib.Path(sys.argv[2]).exists():
        time.sleep(0.05)
curses.wrapper(draw)
"""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = (
    "message", "content", "item", "part", "state", "input", "text", "id", "tool_use_id", "name", "error", "result",
    "changes", "arguments", "data", "output", "status", "subtype",
)  # fmt: skip
TYPES = (
    "result", "assistant", "user", "text", "tool_use", "tool_result", "item.started", "item.completed", "turn.failed",
    "error", "agent_message", "command_execution", "file_change", "mcp_tool_call", "step_finish", "watchbill.gap",
)  # fmt: skip
EVENTS = st.recursive(
    JSON,
    lambda inner: st.dictionaries(st.sampled_from(NAMES), inner | st.lists(inner, max_size=2), max_size=4).flatmap(
        lambda made: st.sampled_from(TYPES).map(lambda kind: {**made, "type": kind})
    ),
    max_leaves=12,
).filter(lambda event: isinstance(event, dict))


def same(text: str) -> str:
    return text


def screen_of(folder: Path, runtime: str = "shell", **spec: object) -> Screen:
    (folder / "spec.json").write_text(json.dumps(spec))
    return Screen(RUNTIMES[runtime], RunFolder(folder), same)


@pytest.mark.parametrize("stream", sorted(path.stem for path in STREAMS.glob("*.jsonl")))
def test_a_real_stream_reads_as_what_was_said_and_done(stream, tmp_path):
    (tmp_path / "stream.0").write_bytes((STREAMS / f"{stream}.jsonl").read_bytes())
    seen = screen_of(tmp_path, stream.partition("-")[0], stream=True).look()
    assert seen
    assert all(part in seen for part in SEEN.get(stream, []))
    assert '"type"' not in seen


@pytest.mark.parametrize("cli", AGENTS)
@settings(max_examples=60)
@given(events=st.lists(EVENTS, max_size=6))
def test_whatever_an_agent_writes_can_be_shown(cli, events):
    assert "\x1b" not in text_of(RUNTIMES[cli].scenes(events))


def test_an_agent_at_work_is_seen_with_what_it_has_not_got_yet(tmp_path):
    item = {"id": "1", "type": "command_execution", "command": "make test", "status": "in_progress"}
    started = {"type": "item.started", "item": item}
    (tmp_path / "stream.0").write_text(json.dumps(started) + "\n")
    screen = screen_of(tmp_path, "codex", stream=True)
    assert screen.look() == "> shell make test\n  ..."
    assert screen.look() is None
    over = {"id": "1", "type": "command_execution", "command": "make test", "aggregated_output": "1 failed"}
    with (tmp_path / "stream.0").open("a") as file:
        file.write(json.dumps({"type": "item.completed", "item": {**over, "status": "failed", "exit_code": 1}}) + "\n")
    assert screen.look() == "> shell make test\n! 1 failed"


def test_of_a_long_outcome_the_first_lines_are_seen_and_how_many_there_are(tmp_path):
    output = "\n".join(map(str, range(1, 101))) + "\x1b[31m\n"
    state = {"status": "completed", "input": {"command": "seq"}, "output": output}
    use = {"type": "tool_use", "part": {"tool": "bash", "state": state}}
    (tmp_path / "stream.0").write_text(json.dumps(use) + "\n")
    seen = screen_of(tmp_path, "opencode", stream=True).look()
    assert seen == "> bash seq\n  1\n  2\n  3\n  4\n  ... 96 lines more"


def test_what_a_cli_writes_beside_its_stream_is_seen_where_the_stream_has_no_end(tmp_path):
    (tmp_path / "output.0").write_text("\x1b[31mout of memory\x1b[0m\n")
    screen = screen_of(tmp_path, "claude", stream=True)
    assert screen.look() == "beside it, on standard error:\nout of memory"
    (tmp_path / "stream.0").write_text('{"type":"assistant","message":{"content":[{"type":"text","text":"Hm."}]}}\n')
    assert screen.look() == "Hm.\n"
    (tmp_path / "result.json").write_text("{}")
    assert screen.look() == "Hm.\n\n\nbeside it, on standard error:\nout of memory"
    with (tmp_path / "stream.0").open("a") as file:
        file.write('{"type":"result","subtype":"success"}\n')
    assert screen.look() == "Hm.\n\n-- ended"


def test_the_last_of_a_long_stream_is_seen(tmp_path):
    events = [{"type": "text", "part": {"text": f"word {number} " + "x" * 500}} for number in range(2000)]
    (tmp_path / "stream.0").write_text("".join(json.dumps(event) + "\n" for event in events[:100]))
    size = (tmp_path / "stream.0").stat().st_size
    (tmp_path / f"stream.{size}").write_text("".join(json.dumps(event) + "\n" for event in events[100:]))
    found = list(RunFolder(tmp_path).stream().newest(10_000))
    assert found[0]["type"] == "watchbill.gap"
    assert found[1:] == events[2001 - len(found) :]
    assert list(RunFolder(tmp_path).stream().newest(10_000_000)) == events
    seen = screen_of(tmp_path, "opencode", stream=True).look()
    assert seen
    assert "word 1999" in seen
    assert len(seen.encode()) <= LIMIT


def test_of_plain_output_the_last_is_seen_in_whole_lines(tmp_path):
    (tmp_path / "output.0").write_text("".join(f"line {number}\n" for number in range(5000)))
    seen = screen_of(tmp_path).look()
    assert seen
    assert seen.startswith("…\nline ")
    assert seen.endswith("line 4999\n")
    assert len(seen.encode()) <= LIMIT


@given(st.text(max_size=200), st.integers(min_value=1, max_value=200))
def test_a_screen_is_never_longer_than_its_limit(text, times):
    assert len(cut(text * times * 10).encode()) <= LIMIT


def test_a_secret_is_taken_out_before_the_screen_is_cut(tmp_path):
    (tmp_path / "spec.json").write_text("{}")
    (tmp_path / "output.0").write_text("SECRET" * 5000)
    screen = Screen(RUNTIMES["shell"], RunFolder(tmp_path), lambda text: text.replace("SECRET", "*"))
    assert "SECRET" not in (screen.look() or "SECRET")


def test_a_run_that_has_not_begun_has_nothing_to_be_seen(tmp_path):
    assert Screen(RUNTIMES["claude"], RunFolder(tmp_path / "none"), same).look() is None


def test_a_program_that_draws_is_seen_as_it_drew(bench, tmp_path):
    drawing = tmp_path / "drawing.py"
    drawing.write_text(CURSES)
    argv = (sys.executable, str(drawing), str(tmp_path / "drawn"), str(tmp_path / "go"))
    run = bench.run("", argv=argv, pty=True)
    screen = Screen(RUNTIMES["shell"], run, same)
    bench.until((tmp_path / "drawn").exists)
    lines = bench.until(lambda: shown if "corner" in (shown := screen.look() or "") else None).split("\n")
    assert (lines[0], lines[1]) == ("at work", "step 299")
    assert lines[39] == f"{'':110}corner"
    assert len(lines) == 40
    (tmp_path / "go").touch()
    assert bench.end_of(run).exit_code == 0
    assert "step 299" in (Screen(RUNTIMES["shell"], run, same).look() or "")


def test_a_run_on_a_terminal_has_it_for_its_own(bench):
    run = bench.run(
        "stty size; echo $TERM; test -t 0 && test -t 2 && echo to it > /dev/tty; ps -o tty= -p $$", pty=True
    )
    result = bench.end_of(run)
    told = run.text().splitlines()
    assert told[:3] == ["40 120", "linux", "to it"]
    assert told[3].strip().startswith("pts/")
    assert (result.exit_code, result.truncated) == (0, False)


def test_a_run_on_a_terminal_may_read_its_prompt_from_a_file(bench, tmp_path):
    (tmp_path / "prompt").write_text("what to do\n")
    run = bench.run("cat; test -t 1 && echo drawn", pty=True, stdin=tmp_path / "prompt")
    bench.end_of(run)
    assert run.text() == "what to do\ndrawn\n"


def test_what_is_drawn_is_kept_bounded_and_all_of_it_is_ended(bench):
    run = bench.run("(trap '' HUP; exec sleep 1000) & seq 200000", pty=True, output_limit=1 << 16)
    result = bench.end_of(run)
    assert result.truncated
    assert result.leftovers == 1
    assert len(run.tail(1 << 20)) <= 1 << 16
    assert run.text().endswith("\n200000\n")


def test_a_run_has_a_terminal_or_a_stream(bench):
    with pytest.raises(Exception, match="cannot have both a terminal and a stream"):
        bench.run("true", pty=True, stream=True)


def test_a_secret_that_a_terminal_broke_in_two_is_covered():
    terminal = Terminal()
    terminal.feed(b"x" * 101 + b" ghp_" + b"a" * 36 + b" is it")
    first, second = terminal.text().split("\n")
    assert first == "x" * 101 + " " + "*" * 18
    assert second == "*" * 22 + " is it"


def test_what_an_emulator_does_not_know_is_passed_over():
    terminal = Terminal()
    terminal.feed(b"one\r\n\x1b[?1m\x1b[?5P\x1b[>4;1mtwo\x1b]0;title\x07 \xff\xfe\x1b[38;5m three")
    assert terminal.text().split("\n")[0] == "one"
    assert "two" in terminal.text()
    assert "three" in terminal.text()
    terminal.feed(os.urandom(5000))


def test_output_is_read_on_over_its_turns_and_afresh_where_some_of_it_is_gone(tmp_path):
    segments, follower = Segments(str(tmp_path), 200), Follower(str(tmp_path))
    assert follower.read(1000) == (b"", False)
    segments.write(b"a" * 60)
    assert follower.read(1000) == (b"a" * 60, False)
    segments.write(b"b" * 60)
    assert follower.read(1000) == (b"b" * 60, True)
    assert follower.read(1000) == (b"", True)
    segments.write(b"c" * 300)
    assert follower.read(1000) == (b"c" * 120, False)
    segments.write(b"d" * 50)
    data, goes_on = follower.read(10)
    assert (data, goes_on) == (b"d" * 10, False)
