"""The policy hook: what it refuses, what it records, and that it refuses whatever it cannot judge."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from domain.rules import NOTHING_REFUSED, Policy
from runtimes import hooks
from runtimes.gate import MAX_CONTEXT, MAX_EVENTS, MAX_STOPS, refusal
from runtimes.hooks import BRIEF_FILE, EVENTS_FILE, RESULT_FILE, TOLD
from tests.runtimes.hooking import BRIEF, Hooked


@pytest.fixture
def hooked(tmp_path: Path) -> Hooked:
    return Hooked(tmp_path)


def test_a_tool_is_refused_by_its_name_in_whatever_case_the_cli_writes_it(hooked: Hooked) -> None:
    assert "WebFetch" in hooked.use("WebFetch", url="http://example.org")
    assert hooked.use("webfetch", url="http://example.org")
    assert hooked.use("mcp__github__merge")
    assert hooked.use("Read", file_path="/etc/hostname") == ""


@pytest.mark.parametrize(
    "given",
    [
        {"command": "cd docs && git  push origin main"},
        {"command": "/usr/bin/git push"},
        {"command": "bash -c 'git push'"},
        {"cmd": "echo $(git push)"},
        {"command": ["bash", "-lc", "git push"]},
        {"command": "sudo rm -rf /"},
        {"command": "echo on: push > .github/workflows/ci.yml"},
        {"command": "apply_patch <<'X'\n*** Begin Patch\n*** Delete File: a.lock\n*** End Patch\nX"},
    ],
)
def test_a_command_is_refused_wherever_it_stands_in_a_line(hooked: Hooked, given: dict[str, object]) -> None:
    assert "refused: " in hooked.use("Bash", **given)


PATCH = "apply_patch <<'X'\n*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch\nX"


@pytest.mark.parametrize(
    "line",
    [
        *("cd .github && echo x > y", "cd src; cd ../.github; echo x > y", "cd -- {}/.github && (echo x > y)"),
        *("pushd .github; echo x > y", "cd .github && bash -c 'echo x > y'", "eval 'cd .github'; echo x > y"),
        *("cd nowhere; echo x > .github/y", "true && cd src; echo x > .github/y", "cd src | true; echo x > .github/y"),
        *("if cd src; then ls; fi; echo x > .github/y", "(cd src); echo x > .github/y", "cd $x && echo x > .github/y"),
        *("cd - && echo x > ../a.lock", "command cd .github && echo x > y", f"cd .github && {PATCH.format('y')}"),
        *(f"cd $x && {PATCH.format('y')}", f"cd src && {PATCH.format('../.github/y')}", f"cd / && {PATCH.format('y')}"),
    ],
)
def test_a_path_is_looked_at_from_where_the_line_has_gone(hooked: Hooked, line: str) -> None:
    (hooked.workspace / ".github").mkdir()
    assert hooked.use("Bash", command=line.replace("{}", str(hooked.workspace)))


@pytest.mark.parametrize(
    "line",
    [
        *("cd .github && cat x; cd .. && echo x > y", "(cd .github && ls); echo x > y", "cd src && echo x > y"),
        *(
            'cd "$(git rev-parse --show-toplevel)" && echo x > y',
            "cd src && cd - && ls > out",
            "mkdir a && cd a && ls > b",
        ),
        *(
            f"cd src && {PATCH.format('y')}",
            f"cd src && {PATCH.format('../y')}",
            "x=$(cd .github && ls) && echo $x > y",
        ),
    ],
)
def test_a_line_may_go_where_it_changes_nothing_refused(hooked: Hooked, line: str) -> None:
    (hooked.workspace / ".github").mkdir()
    assert hooked.use("Bash", command=line) == ""


def test_a_line_that_may_be_anywhere_by_its_end_is_refused(hooked: Hooked) -> None:
    line = ";".join(f"cd a{number}" for number in range(20))
    assert "more than 64 folders" in hooked.use("Bash", command=f"{line}; ls > x")


@pytest.mark.parametrize("line", ["git pull", "echo 'git push'", "patch -p1 < x.diff", "ls > out 2>&1", ""])
def test_other_commands_are_allowed(hooked: Hooked, line: str) -> None:
    assert hooked.use("Bash", command=line) == ""


@pytest.mark.parametrize(
    ("tool", "key"), [("Write", "file_path"), ("Edit", "file_path"), ("NotebookEdit", "notebook_path"),
                      ("write", "filePath"), ("edit", "filePath")],
)  # fmt: skip
def test_a_file_may_be_written_in_the_workspace_and_nowhere_else(hooked: Hooked, tool: str, key: str) -> None:
    (hooked.workspace / "out").symlink_to("/etc")
    (hooked.workspace / "ci").symlink_to(".github")
    inside = hooked.workspace / "src" / "a.py"
    for path in (inside, "src/a.py", "src/../b", hooked.folder / "tmp" / "x", hooked.folder / "home" / "x"):
        assert hooked.use(tool, **{key: str(path)}) == "", path
    for path in ("/etc/passwd", "../x", "src/../../x", "out/passwd", hooked.policy_file, f"{hooked.workspace}-2/x"):
        assert "outside of the workspace" in hooked.use(tool, **{key: str(path)}), path
    for path in (".github/workflows/ci.yml", "ci/x", hooked.workspace / "src" / "a.lock", "./src/../a.lock"):
        assert "may not be changed" in hooked.use(tool, **{key: str(path)}), path


def test_a_workspace_that_is_reached_by_a_link_is_the_same_workspace(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    hooked = Hooked(tmp_path / "link")
    assert hooked.use("Write", file_path=str(tmp_path / "real" / "workspace" / "a")) == ""
    assert hooked.use("Write", file_path=str(tmp_path / "link" / "workspace" / ".github" / "a"))
    assert hooked.use("Write", file_path=str(tmp_path / "real" / "workspace" / ".github" / "a"))


@pytest.mark.parametrize("key", ["command", "patchText"])
def test_every_file_of_a_patch_is_looked_at(hooked: Hooked, key: str) -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n{}@@\n-a\n+b\n*** End Patch\n"
    assert hooked.use("apply_patch", **{key: patch.format("")}) == ""
    assert hooked.use("apply_patch", **{key: patch.format("*** Move to: .github/a\n")})
    assert hooked.use("apply_patch", **{key: patch.format("@@\n+x\n*** Add File: /etc/x\n+x\n")})


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Write", {"content": "x"}),
        ("Write", {"file_path": 3}),
        ("Write", {"file_path": "a\0b"}),
        ("apply_patch", {"command": "no patch"}),
        ("Bash", {"command": "echo 'open"}),
        ("Bash", {"command": {"a": 1}}),
        ("Bash", {"command": [1, 2]}),
        ("Bash", {"command": "$(" * 300 + ")" * 300}),
    ],
)
def test_what_cannot_be_judged_is_refused_and_recorded(hooked: Hooked, tool: str, given: dict[str, object]) -> None:
    assert "is refused" in hooked.use(tool, **given)
    assert hooked.events()[-1]["event"] == "refused"


@pytest.mark.parametrize(
    "question",
    [
        b'{"hook_event_name": "Stop"} {',
        b'{"hook_event_name": "Stop"}\0',
        b'{"hook_event_name": "Stop"}{}',
        b"",
        b"no JSON",
        b"[]",
        b"\xff",
        b"{}",
        b'{"hook_event_name": "Other"}',
        b'{"hook_event_name": "PreToolUse"}',
    ],
)
def test_a_question_that_is_none_is_refused(hooked: Hooked, question: bytes) -> None:
    answer = hooked.put(question)
    assert answer.status == 2
    assert "refused" in answer.errors


@pytest.mark.parametrize("content", [None, "", "{", "[]", "{}", '{"tools": 3}'])
def test_a_policy_that_cannot_be_read_refuses_every_tool(hooked: Hooked, content: str | None) -> None:
    hooked.policy_file.unlink()
    if content is not None:
        hooked.policy_file.write_text(content)
    answer = hooked.ask("PreToolUse", tool_name="Read", tool_input={})
    assert answer.status == 2
    assert "refused" in answer.errors


def test_without_a_policy_an_agent_may_still_end(hooked: Hooked) -> None:
    hooked.policy_file.unlink()
    assert hooked.ask("Stop").said == {}
    assert hooked.ask("Stop").status == 0


def test_a_record_that_cannot_be_written_refuses(hooked: Hooked) -> None:
    (hooked.folder / EVENTS_FILE).mkdir()
    assert hooked.ask("PreToolUse", tool_name="Read", tool_input={}).status == 2


@pytest.mark.parametrize("place", [EVENTS_FILE, RESULT_FILE, f"{TOLD}/stops-refused"])
@pytest.mark.parametrize("target", ["/dev/null", "pipe", "file", "nothing"])
def test_nothing_is_written_through_what_an_agent_put_in_the_place_of_a_record(
    hooked: Hooked, place: str, target: str
) -> None:
    (hooked.folder / "home" / "file").touch()
    if target == "pipe":
        os.mkfifo(hooked.folder / place)
    else:
        (hooked.folder / place).symlink_to(hooked.folder / "home" / target)
    tool = "mcp__watchbill__submit_result"
    judged = hooked.ask("PreToolUse", tool_name=tool, tool_input={}).status
    assert judged == (2 if place == EVENTS_FILE else 0)
    hooked.ask("PostToolUse", tool_name=tool)
    hooked.ask("Stop")
    assert (hooked.folder / "home" / "file").read_text() == ""
    assert not (hooked.folder / "home" / "nothing").exists()


def test_every_use_and_every_refusal_is_a_line_of_the_record(hooked: Hooked) -> None:
    hooked.use("Bash", command="ls " + "x" * 1000)
    hooked.ask("PostToolUse", tool_name="Bash")
    why = hooked.use("Bash", command="git push " + "x" * 1000)
    used, ended, refused = hooked.events()
    assert (used["event"], used["cli"], used["tool"], len(used["what"])) == ("used", "claude", "Bash", 120)
    assert (ended["event"], ended["tool"]) == ("ended", "Bash")
    assert (refused["event"], len(refused["what"]), refused["why"]) == ("refused", 500, why)
    assert (hooked.folder / EVENTS_FILE).stat().st_mode & 0o077 == 0


def test_lines_of_many_hooks_at_once_never_mix(hooked: Hooked) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: hooked.use("Bash", command=f"git push {number}"), range(24)))
    assert sorted(int(event["what"].split()[2]) for event in hooked.events()) == list(range(24))


def test_the_record_is_bounded_and_has_room_for_refusals_longer_than_for_uses(hooked: Hooked) -> None:
    file = hooked.folder / EVENTS_FILE
    file.write_text("\n" * MAX_EVENTS)
    hooked.use("Bash", command="ls")
    assert file.stat().st_size == MAX_EVENTS
    hooked.use("Bash", command="git push")
    assert file.stat().st_size > MAX_EVENTS


def test_a_record_that_has_no_room_for_a_refusal_any_more_refuses(hooked: Hooked) -> None:
    file = hooked.folder / EVENTS_FILE
    file.write_text("\n" * 2 * MAX_EVENTS)
    for command in ("git push", "ls"):
        assert hooked.ask("PreToolUse", tool_name="Bash", tool_input={"command": command}).status == 2
    assert file.stat().st_size == 2 * MAX_EVENTS


@pytest.mark.parametrize("source", ["resume", "compact", "clear"])
def test_an_agent_that_may_have_forgotten_its_brief_gets_it_again(hooked: Hooked, source: str) -> None:
    assert BRIEF in hooked.ask("SessionStart", source=source).context


def test_a_fresh_session_has_its_brief_as_its_prompt_already(hooked: Hooked) -> None:
    assert hooked.ask("SessionStart", source="startup").said == {}


def test_a_long_brief_is_cut_and_says_where_the_whole_stands(tmp_path: Path) -> None:
    hooked = Hooked(tmp_path, brief="é" * MAX_CONTEXT + "the end")
    context = hooked.ask("SessionStart", source="compact").context
    assert "the end" not in context
    assert context.endswith(f"(the whole of it: {hooked.folder / BRIEF_FILE})")


def test_an_agent_without_its_result_is_sent_back_twice_at_most(hooked: Hooked) -> None:
    answers = [hooked.ask("Stop").said for _ in range(MAX_STOPS + 1)]
    assert [answer.get("decision") for answer in answers] == ["block", "block", None]
    assert "submit_result" in answers[0]["reason"]
    assert [event["event"] for event in hooked.events()] == ["sent_back", "sent_back", "stopped"]


@pytest.mark.parametrize("tool", ["mcp__watchbill__submit_result", "watchbill_ask_person"])
def test_an_agent_that_has_said_what_it_had_to_say_ends(hooked: Hooked, tool: str) -> None:
    hooked.ask("PostToolUse", tool_name=tool, tool_response={"isError": True})
    assert hooked.ask("Stop").said["decision"] == "block"
    hooked.ask("PostToolUse", tool_name=tool, tool_response=[{"type": "text", "text": "taken"}])
    assert hooked.ask("Stop").said == {}


def test_an_agent_with_its_result_ends(hooked: Hooked) -> None:
    (hooked.folder / RESULT_FILE).touch()
    assert hooked.ask("Stop").said == {}


@pytest.mark.parametrize("job", [{"schema": None}, {"door": None}])
def test_an_agent_that_is_not_asked_for_a_result_ends(tmp_path: Path, job: dict[str, None]) -> None:
    assert Hooked(tmp_path, **job).ask("Stop").said == {}


def test_where_nothing_is_refused_the_workspace_is_still_the_only_place_to_write(tmp_path: Path) -> None:
    hooked = Hooked(tmp_path, policy=NOTHING_REFUSED)
    assert hooked.use("Bash", command="echo 'no line that a shell would take") == ""
    assert hooked.use("Write", file_path="a") == ""
    assert hooked.use("Write", file_path="/etc/a")


def test_a_pattern_that_is_none_refuses(tmp_path: Path) -> None:
    hooked = Hooked(tmp_path, policy=Policy(commands=("[z-a]",)))
    assert "backwards" in hooked.use("Bash", command="ls")


def test_a_refusal_says_what_to_do_in_one_sentence(hooked: Hooked) -> None:
    policy = json.loads(hooked.policy_file.read_text())
    assert refusal(policy, "Bash", {"command": "git push"}, str(hooked.workspace)) == (
        "'git push' is not allowed here (refused: git push*); go on without it."
    )


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_what_is_not_judged_in_time_is_refused(tmp_path: Path, cli: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "ANSWER_SECONDS", 1)
    made = Hooked(tmp_path, cli).made
    text = json.dumps(made.settings) if made.settings else json.dumps(tomllib.loads(made.toml))
    command = json.loads(text)["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    # A question that never ends.
    question, end = os.pipe()
    try:
        done = subprocess.run(["sh", "-c", command], stdin=question, capture_output=True, text=True, check=False)
    finally:
        os.close(end)
        os.close(question)
    assert done.returncode == 2
    assert "so this is refused" in done.stderr
