"""What the ends of agents mean, read from streams that the real CLIs wrote."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from domain.run import EndKind, Outcome
from runtimes.folder import RunFolder
from runtimes.hooks import EVENTS_FILE
from runtimes.port import RunResult
from runtimes.registry import RUNTIMES

STREAMS = Path(__file__).with_name("streams")

ENDS = {
    "claude-402": (1, Outcome.REFUSED, "API Error: 402 Budget exhausted for this run (fake relay)"),
    "claude-hook-deny-and-mcp": (0, Outcome.DONE, ""),
    "claude-json-schema": (0, Outcome.DONE, ""),
    "claude-json-schema-missing": (0, Outcome.DONE, ""),
    "claude-max-turns": (1, Outcome.CRASHED, "error_max_turns"),
    "claude-resume-after-kill9": (0, Outcome.DONE, ""),
    "claude-sigterm": (143, Outcome.CRASHED, "it exited with 143 and did not say how it ended"),
    "claude-stream-dropped-once": (0, Outcome.DONE, ""),
    "claude-success": (0, Outcome.DONE, ""),
    "codex-402": (1, Outcome.REFUSED, "unexpected status 402 Payment Required: Budget exhausted for this run"),
    "codex-hook-deny-and-mcp": (0, Outcome.DONE, ""),
    "codex-resume": (0, Outcome.DONE, ""),
    "codex-resume-after-kill9": (0, Outcome.DONE, ""),
    "codex-schema-broken": (0, Outcome.DONE, ""),
    "codex-stream-dropped": (1, Outcome.DROPPED, "stream disconnected before completion"),
    "codex-success": (0, Outcome.DONE, ""),
    "opencode-402": (1, Outcome.REFUSED, "Budget exhausted for this run (fake relay)"),
    "opencode-permission-rejected": (0, Outcome.DENIED, "bash: The user rejected permission"),
    "opencode-plugin-deny-and-mcp": (0, Outcome.DONE, ""),
    "opencode-resume-after-kill9": (0, Outcome.DONE, ""),
    "opencode-success": (0, Outcome.DONE, ""),
}


def ended(exit_code: int | None, kind: EndKind = EndKind.EXITED, reason: str = "") -> RunResult:
    now = datetime.now(UTC)
    return RunResult(kind, exit_code, reason, now, now)


def told(folder: Path, *events: dict[str, Any]) -> None:
    (folder / "stream.0").write_text("".join(f"{json.dumps(event)}\n" for event in events))


def hooked(folder: Path, *events: tuple[str, str]) -> None:
    lines = [{"at": 1, "event": event, "tool": tool, "why": "it may not"} for event, tool in events]
    (folder / EVENTS_FILE).parent.mkdir(exist_ok=True)
    (folder / EVENTS_FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def judge(folder: Path, cli: str, result: RunResult):
    return RUNTIMES[cli].judge(result, RunFolder(folder))


def said_by(stream: str, folder: Path) -> str:
    """Put a real stream into a run's folder; the CLI whose it is."""
    shutil.copyfile(STREAMS / f"{stream}.jsonl", folder / "stream.0")
    return stream.partition("-")[0]


def test_there_is_a_verdict_for_every_stream_that_we_have():
    assert {path.stem for path in STREAMS.glob("*.jsonl")} == set(ENDS)


@pytest.mark.parametrize("stream", sorted(ENDS))
def test_a_real_stream_has_the_outcome_that_it_tells(stream, tmp_path):
    exit_code, outcome, reason = ENDS[stream]
    verdict = judge(tmp_path, said_by(stream, tmp_path), ended(exit_code))
    assert (verdict.outcome, verdict.exit_code) == (outcome, exit_code)
    assert verdict.reason.startswith(reason)
    assert bool(verdict.reason) == bool(reason)
    assert verdict.session
    assert verdict.session in (tmp_path / "stream.0").read_text()


def test_a_result_by_the_clis_own_means_is_handed_on(tmp_path):
    claude = judge(tmp_path, said_by("claude-json-schema", tmp_path), ended(0))
    assert claude.result == {"status": "ok", "files": ["hello.txt"]}
    assert judge(tmp_path, said_by("claude-json-schema-missing", tmp_path), ended(0)).result is None
    (tmp_path / "codex-schema.json").write_text("{}")
    answer = {"type": "item.completed", "item": {"type": "agent_message", "text": '{"ok": true}'}}
    told(tmp_path, {"type": "thread.started", "thread_id": "t"}, answer, {"type": "turn.completed"})
    assert judge(tmp_path, "codex", ended(0)).result == {"ok": True}


def test_an_answer_that_is_no_json_breaks_the_schema_where_one_was_given(tmp_path):
    (tmp_path / "codex-schema.json").write_text("{}")
    verdict = judge(tmp_path, said_by("codex-schema-broken", tmp_path), ended(0))
    assert (verdict.outcome, verdict.result) == (Outcome.SCHEMA_BROKEN, None)


@pytest.mark.parametrize("stream", ["claude-success", "codex-success", "opencode-success"])
@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (EndKind.STOPPED, Outcome.STOPPED),
        (EndKind.KILLED, Outcome.CRASHED),
        (EndKind.LEASE_LAPSED, Outcome.CRASHED),
        (EndKind.SUPERVISOR_DIED, Outcome.CRASHED),
    ],
)
def test_an_agent_that_was_ended_did_not_finish_whatever_it_said(stream, kind, outcome, tmp_path):
    verdict = judge(tmp_path, said_by(stream, tmp_path), ended(-15, kind, "somebody asked"))
    assert (verdict.outcome, verdict.reason) == (outcome, "somebody asked")
    assert verdict.session


@pytest.mark.parametrize(
    ("cli", "said"),
    [
        ("claude", [{"type": "result", "subtype": "error_during_execution", "is_error": True, "session_id": "s"}]),
        ("codex", [{"type": "thread.started", "thread_id": "s"}]),
        ("opencode", [{"type": "error", "sessionID": "s", "error": {"name": "UnknownError"}}]),
    ],
)
def test_a_session_in_which_no_turn_began_is_none(cli, said, tmp_path):
    told(tmp_path, *said)
    verdict = judge(tmp_path, cli, ended(1))
    assert (verdict.outcome, verdict.session) == (Outcome.CRASHED, "")


@pytest.mark.parametrize("cli", ["claude", "codex", "opencode"])
def test_exit_0_proves_nothing(cli, tmp_path):
    verdict = judge(tmp_path, cli, ended(0))
    assert (verdict.outcome, verdict.session) == (Outcome.CRASHED, "")
    assert verdict.reason == "it exited with 0 and did not say how it ended"


@pytest.mark.parametrize("cli", ["claude", "codex", "opencode"])
def test_what_it_last_wrote_to_standard_error_is_part_of_the_reason(cli, tmp_path):
    (tmp_path / "output.0").write_text("\x1b[31mError: the model is gone\x1b[0m\n")
    assert judge(tmp_path, cli, ended(1)).reason.endswith(": Error: the model is gone")


@pytest.mark.parametrize("stream", ["claude-success", "codex-success", "opencode-success"])
def test_success_with_another_exit_status_is_a_crash(stream, tmp_path):
    verdict = judge(tmp_path, said_by(stream, tmp_path), ended(1))
    assert (verdict.outcome, verdict.reason) == (Outcome.CRASHED, "it exited with 1")


@pytest.mark.parametrize("stream", ["claude-success", "codex-success", "opencode-success"])
def test_an_agent_that_had_ended_and_did_not_leave_has_ended(stream, tmp_path):
    assert judge(tmp_path, said_by(stream, tmp_path), ended(-9, EndKind.TIMED_OUT)).outcome is Outcome.DONE


def test_an_agent_that_waited_for_its_model_until_its_time_was_up_was_dropped(tmp_path):
    waiting = {"type": "error", "message": "Reconnecting... waiting for network (Connection failed: error)"}
    told(tmp_path, {"type": "turn.started"}, waiting)
    assert judge(tmp_path, "codex", ended(-9, EndKind.TIMED_OUT, "too long")).outcome is Outcome.DROPPED
    told(tmp_path, waiting, {"type": "item.started", "item": {}})
    verdict = judge(tmp_path, "codex", ended(-9, EndKind.TIMED_OUT, "too long"))
    assert (verdict.outcome, verdict.reason) == (Outcome.CRASHED, "too long")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (400, Outcome.CRASHED),
        (401, Outcome.DROPPED),
        (402, Outcome.REFUSED),
        (403, Outcome.DENIED),
        (413, Outcome.CRASHED),
        (429, Outcome.DROPPED),
        (500, Outcome.DROPPED),
        (529, Outcome.DROPPED),
    ],
)
def test_the_status_of_the_models_door_decides(status, outcome, tmp_path):
    failed = {"is_error": True, "subtype": "success", "terminal_reason": "api_error", "api_error_status": status}
    told(tmp_path, {"type": "result", "session_id": "s", "result": "no", **failed})
    assert judge(tmp_path, "claude", ended(1)).outcome is outcome
    message = f"unexpected status {status} Because: no, url: http://127.0.0.1/v1/responses"
    told(tmp_path, {"type": "turn.failed", "error": {"message": message}})
    assert judge(tmp_path, "codex", ended(1)).outcome is outcome
    told(tmp_path, {"type": "error", "sessionID": "s", "error": {"data": {"message": "no", "statusCode": status}}})
    assert judge(tmp_path, "opencode", ended(1)).outcome is outcome


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ("exceeded retry limit, last status: 429 Too Many Requests, request id: r", Outcome.DROPPED),
        ("We\u2019re currently experiencing high demand, which may cause temporary errors.", Outcome.DROPPED),
        ("Quota exceeded. Check your plan and billing details.", Outcome.REFUSED),
        ("something nobody has seen", Outcome.CRASHED),
    ],
)
def test_codexs_sentences_are_understood(message, outcome, tmp_path):
    told(tmp_path, {"type": "turn.failed", "error": {"message": message}})
    assert judge(tmp_path, "codex", ended(1)).outcome is outcome


def test_a_lost_connection_has_no_status(tmp_path):
    lost = {"is_error": True, "subtype": "success", "terminal_reason": "api_error", "api_error_status": None}
    told(tmp_path, {"type": "result", "result": "Connection refused", **lost})
    assert judge(tmp_path, "claude", ended(1)).outcome is Outcome.DROPPED


def test_claude_is_denied_when_nothing_followed_the_refusal(tmp_path):
    use = {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t1", "name": "Write"}]}}
    again = {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t2", "name": "Bash"}]}}
    denials = [{"tool_name": "Write", "tool_use_id": "t1"}]
    result = {"type": "result", "subtype": "success", "is_error": False, "permission_denials": denials}
    told(tmp_path, use, result)
    verdict = judge(tmp_path, "claude", ended(0))
    assert (verdict.outcome, verdict.reason) == (Outcome.DENIED, "Write was refused")
    told(tmp_path, use, again, result)
    assert judge(tmp_path, "claude", ended(0)).outcome is Outcome.DONE


@pytest.mark.parametrize("stream", ["codex-success", "opencode-success"])
def test_what_our_hook_refused_ends_a_run_only_when_nothing_followed(stream, tmp_path):
    cli = said_by(stream, tmp_path)
    hooked(tmp_path, ("used", "bash"), ("refused", "write"), ("ended", "bash"))
    verdict = judge(tmp_path, cli, ended(0))
    assert (verdict.outcome, verdict.reason) == (Outcome.DENIED, "write was refused: it may not")
    hooked(tmp_path, ("refused", "write"), ("used", "bash"))
    assert judge(tmp_path, cli, ended(0)).outcome is Outcome.DONE
    hooked(tmp_path, ("used", "watchbill_submit_result"), ("refused", "bash"))
    assert judge(tmp_path, cli, ended(0)).outcome is Outcome.DONE


def test_an_end_that_something_follows_is_none(tmp_path):
    finish = {"type": "step_finish", "sessionID": "s", "part": {"reason": "stop"}}
    told(tmp_path, finish, {"type": "step_start", "sessionID": "s", "part": {}})
    assert judge(tmp_path, "opencode", ended(0)).outcome is Outcome.CRASHED


def test_an_agent_that_breaks_off_between_two_steps_has_not_ended(tmp_path):
    told(tmp_path, {"type": "step_finish", "sessionID": "s", "part": {"reason": "tool-calls"}})
    assert judge(tmp_path, "opencode", ended(0)).outcome is Outcome.CRASHED


@pytest.mark.parametrize("cli", ["claude", "codex", "opencode"])
def test_a_stream_of_nonsense_is_a_crash_and_no_error(cli, tmp_path):
    kinds = [
        "result",
        "assistant",
        "thread.started",
        "turn.failed",
        "item.completed",
        "error",
        "step_finish",
        "tool_use",
    ]
    values: list[Any] = [None, 3, "x", [], {}, [1], {"content": 3}, {"data": []}]
    keys = ("session_id", "message", "item", "error", "part", "thread_id", "result", "permission_denials")
    events = [{"type": kind, **dict.fromkeys(keys, value)} for kind in kinds for value in values]
    told(tmp_path, *events, {"type": {"a": 1}}, {"type": "assistant"}, {"type": "step_start"})
    for result in (ended(0), ended(1), ended(None, EndKind.KILLED)):
        assert judge(tmp_path, cli, result).outcome is Outcome.CRASHED


@pytest.mark.parametrize("cli", ["claude", "codex", "opencode"])
def test_what_is_nested_so_deeply_that_nobody_could_go_through_it_is_as_if_it_was_not_said(cli, tmp_path):
    said_by(f"{cli}-success", tmp_path)
    with (tmp_path / "stream.0").open("a") as file:
        for name in ("type", "session_id", "result", "error", "item", "part"):
            file.write(f'{{"type": "error", "{name}": {"[" * 900}{"]" * 900}}}\n')
    assert judge(tmp_path, cli, ended(0)).outcome is Outcome.DONE


def test_an_answer_that_is_nested_too_deeply_breaks_the_schema(tmp_path):
    (tmp_path / "codex-schema.json").write_text("{}")
    for depth in (300, 100_000):
        text = "[" * depth + "]" * depth
        answer = {"type": "item.completed", "item": {"type": "agent_message", "text": text}}
        told(tmp_path, answer, {"type": "turn.completed"})
        verdict = judge(tmp_path, "codex", ended(0))
        assert (verdict.outcome, verdict.result) == (Outcome.SCHEMA_BROKEN, None)


@pytest.mark.parametrize("cli", ["codex", "opencode"])
def test_a_record_of_nonsense_keeps_nobody_from_a_verdict(cli, tmp_path):
    said_by(f"{cli}-success", tmp_path)
    hooked(tmp_path, ("refused", "write"))
    with (tmp_path / EVENTS_FILE).open("ab") as file:
        file.write(b"[" * 100_000 + b'\n{"at": 1e30, "event": "used"}\n{"at": 1, "event": ["used"]}\n\xff\n')
    assert judge(tmp_path, cli, ended(0)).outcome is Outcome.DENIED


@pytest.mark.parametrize("session", ["../../etc", "a b", "-x", "", "x" * 200, "a\nb"])
def test_a_session_that_could_be_a_path_or_an_option_is_none(session, tmp_path):
    told(tmp_path, {"type": "thread.started", "thread_id": session}, {"type": "turn.completed"})
    assert judge(tmp_path, "codex", ended(0)).session == ""


def test_a_reason_is_one_short_line(tmp_path):
    told(tmp_path, {"type": "turn.failed", "error": {"message": "\x1b[1mno\x1b[0m\nway \ud800" + "x" * 5000}})
    reason = judge(tmp_path, "codex", ended(1)).reason
    assert reason.startswith("no way")
    assert len(reason) <= 300
    assert reason.isprintable()
