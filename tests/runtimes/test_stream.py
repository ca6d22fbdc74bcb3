"""What an agent says in objects: kept whole, bounded, and apart from the rest of its output."""

from __future__ import annotations

import json
import os
import random
import re
import sys
import time
from pathlib import Path

import pytest

from domain.run import EndKind
from runtimes.folder import Live
from runtimes.lines import HEAD, Lines
from runtimes.stream import Stream

LINE_LIMIT = 1 << 16


def written(folder: Path, data: bytes, sizes: random.Random | None = None, limit: int = 1 << 20) -> Stream:
    lines = Lines(str(folder), limit, LINE_LIMIT)
    while data:
        size = sizes.randint(1, 1 << 16) if sizes else 1 << 16
        lines.write(data[:size])
        data = data[size:]
    lines.close()
    return Stream(folder)


def numbered(count: int, padding: int = 100) -> bytes:
    return b"".join(b'{"n": %d, "padding": "%s"}\n' % (number, b"x" * padding) for number in range(count))


def peak_kib(status: Path) -> int:
    """The most memory that a process has held so far; 0 once it has ended."""
    try:
        found = re.search(r"VmHWM:\s+(\d+)", status.read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


def on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("stream.*"))


def test_objects_come_back_in_order_and_apart_from_standard_error(bench):
    run = bench.run("""echo '{"a": 1}'; echo oops >&2; printf '{"b": "\\303\\266"}\\n{"c": 3}'""", stream=True)
    result = bench.end_of(run)
    assert list(run.stream()) == [{"a": 1}, {"b": "ö"}, {"c": 3}]
    assert run.tail() == b"oops\n"
    assert (result.output_bytes, result.truncated) == (9 + 5 + 12 + 8, False)


def test_a_run_without_a_stream_has_none(bench):
    run = bench.run("""echo '{"a": 1}'""")
    bench.end_of(run)
    assert list(run.stream()) == []
    assert run.tail() == b'{"a": 1}\n'


def test_an_agent_reads_its_input_from_a_file_and_from_nothing_else(bench, tmp_path):
    (tmp_path / "prompt").write_text("do it")
    with_file = bench.run("cat", stdin=tmp_path / "prompt")
    without = bench.run("cat", name="other")
    bench.end_of(with_file)
    bench.end_of(without)
    assert (with_file.tail(), without.tail()) == (b"do it", b"")


def test_a_stream_is_read_while_it_is_written_and_without_its_unfinished_line(bench):
    script = """echo '{"a": 1}'; printf '{"b":'; echo > "$AT/half"; until [ -e "$AT/on" ]; do :; done; echo 2}"""
    run = bench.run(script, stream=True)
    bench.until(lambda: bench.read("half"))
    assert bench.until(lambda: list(run.stream())) == [{"a": 1}]
    (bench.home / "on").touch()
    bench.end_of(run)
    assert list(run.stream()) == [{"a": 1}, {"b": 2}]


def test_what_was_said_before_the_supervisor_died_is_kept(bench):
    run = bench.run("""echo '{"a": 1}'; exec sleep 1000""", stream=True)
    bench.until(lambda: list(run.stream()))
    bench.kill_supervisor(run)
    assert run.bury().kind is EndKind.SUPERVISOR_DIED
    assert list(run.stream()) == [{"a": 1}]


def test_lines_that_are_no_objects_are_skipped_and_counted(tmp_path):
    bad = [b"warning: x", b"3", b"[1]", b'{"a":', b"\xff\xfe", b'{"a": NaN}', b"[" * 50_000, b"null", b"\x00"]
    stream = written(tmp_path, b'{"a": 1}\n\n' + b"\n".join(bad) + b'\n{"b": 2}\n')
    assert list(stream) == [{"a": 1}, {"b": 2}]
    assert stream.skipped == len(bad)
    assert len(list(stream)) == 2
    assert stream.skipped == len(bad)


def test_a_stream_is_the_same_however_it_was_cut(tmp_path):
    data = numbered(3000) + b"x" * (LINE_LIMIT + 5) + b"\n" + numbered(3000, padding=400)
    found = []
    for seed in range(5):
        (tmp_path / str(seed)).mkdir()
        found.append(list(written(tmp_path / str(seed), data, random.Random(seed))))
    assert all(objects == found[0] for objects in found)
    assert [line["n"] for line in found[0] if "n" in line][-1] == 2999


def test_of_a_long_stream_the_head_and_the_tail_are_kept_and_the_gap_is_told(tmp_path):
    data = numbered(50_000)
    objects = list(written(tmp_path, data, limit=1 << 18))
    gaps = [place for place, line in enumerate(objects) if line.get("type") == "watchbill.gap"]
    assert len(gaps) == 1
    head, tail = objects[: gaps[0]], objects[gaps[0] + 1 :]
    assert [line["n"] for line in head] == list(range(len(head)))
    assert [line["n"] for line in tail] == list(range(50_000 - len(tail), 50_000))
    assert objects[gaps[0]]["bytes"] == len(data) - on_disk(tmp_path)
    assert HEAD - 200 < sum(len(json.dumps(line)) + 1 for line in head) <= HEAD
    assert 1 << 17 < sum(len(json.dumps(line)) + 1 for line in tail) <= 1 << 18


def test_a_stream_that_was_kept_whole_has_no_gap(tmp_path):
    objects = list(written(tmp_path, numbered(2000), limit=1 << 20))
    assert [line["n"] for line in objects] == list(range(2000))


def test_a_line_at_the_limit_is_kept_and_a_longer_one_is_cut_and_says_so(tmp_path):
    fits = b'{"a": "%s"}' % (b"x" * (LINE_LIMIT - 9))
    long = b'{"b": "%s"}' % (b"y" * LINE_LIMIT)
    objects = list(written(tmp_path, fits + b"\n" + long + b'\n{"c": 3}\n'))
    assert objects[0] == json.loads(fits)
    assert (objects[1]["type"], objects[1]["bytes"]) == ("watchbill.cut", len(long))
    assert objects[1]["start"].startswith('{"b": "yyy')
    assert objects[2] == {"c": 3}


def test_a_full_disk_loses_lines_and_tells_so(tmp_path, monkeypatch):
    lines = Lines(str(tmp_path), 1 << 20, LINE_LIMIT)
    lines.write(b'{"a": 1}\n')
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        if len(data) > 3:
            return real(descriptor, data[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    lines.write(b'{"lost": 1}\n')
    monkeypatch.setattr(os, "write", real)
    lines.write(b'{"b": 2}\n')
    assert [line.get("type", line) for line in Stream(tmp_path)] == [{"a": 1}, "watchbill.gap", {"b": 2}]
    assert (lines.truncated, lines.total) == (True, 9 + 12 + 9)


def test_output_on_either_side_counts_as_a_sign_of_life(bench):
    script = "for i in 1 2 3 4; do echo {} >&2; sleep 0.4; done; for i in 1 2 3 4; do echo {}; sleep 0.4; done"
    assert bench.end_of(bench.run(script, stream=True, idle=1.5)).kind is EndKind.EXITED
    silent = bench.run("echo {}; sleep 1000", name="silent", stream=True, idle=0.5)
    assert bench.end_of(silent).reason == "it wrote nothing for 0.5 s"


def test_a_link_in_the_place_of_a_part_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text('{"secret": 1}\n')
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "stream.0").symlink_to(tmp_path / "secret")
    assert list(Stream(folder)) == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_gigabytes_and_a_line_of_50_mb_stay_within_bounded_memory_and_disk(bench):
    script = """
import os
block = b'{"type": "text", "text": "' + b"x" * 200 + b'"}\\n'
block *= 4000
for _ in range(2 * 1024**3 // len(block)):
    os.write(1, block)
for _ in range(800):
    os.write(1, b"y" * 65536)
os.write(1, b'\\n{"last": true}\\n')
"""
    run = bench.run("", argv=(sys.executable, "-I", "-S", "-c", script), stream=True)
    status, peak = Path(f"/proc/{bench.supervisor(run)}/status"), 0
    while isinstance(run.status(), Live):
        peak = max(peak, peak_kib(status))
        time.sleep(0.05)
    result = bench.end_of(run)
    objects = list(run.stream())
    assert result.output_bytes > 2 * 1024**3
    assert result.truncated
    assert objects[-1] == {"last": True}
    assert (objects[-2]["type"], objects[-2]["bytes"]) == ("watchbill.cut", 800 * 65536)
    assert on_disk(run.path) <= (2 << 20) + HEAD
    assert 0 < peak < 40_000
