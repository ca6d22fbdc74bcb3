"""What a launch of an agent writes and starts; no CLI is needed for it."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from domain.errors import NotFound, WatchbillError
from runtimes.memory import files_below
from runtimes.port import Door, Job
from runtimes.registry import RUNTIMES

CLIS = ("claude", "codex", "opencode")
TOKEN = "eyJ0.a-secret-of-the-run.c2ln"
SESSION = "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0000"
BRIEF = "# Do it\n\nAs follows.\n"
every_cli = pytest.mark.parametrize("cli", CLIS)


def job(home: Path, **changes: Any) -> Job:
    for name in ("work", "bin"):
        (home / name).mkdir(exist_ok=True)
    for cli in CLIS:
        # Nothing here starts them.
        (home / "bin" / cli).touch(mode=0o755)
    facts: dict[str, Any] = {
        "run_id": "plan-0a1b2c3d-1-author-1",
        "task_id": "plan-0a1b2c3d-1",
        "task_title": "Do it",
        "task_body": "",
        "workspace": home / "work",
        "folder": home / "runs" / "run",
        "timeout": 60,
        "path": f"{home / 'bin'}:/usr/bin:/bin",
        "brief": BRIEF,
        "note": "Person says: go on",
        "model": "some-model",
        "memory": home / "memory",
        "door": Door("http://127.0.0.1:9/models", "http://127.0.0.1:9/mcp", TOKEN),
    }
    return Job(**{**facts, **changes})


def remember(cli: str, memory: Path, session: str, prompt: str = BRIEF) -> Path:
    """Put a session with this prompt where the CLI keeps its own, and answer its file."""
    said: list[dict[str, Any]]
    match cli:
        case "claude":
            file = memory / "projects" / "-work" / f"{session}.jsonl"
            said = [
                {"type": "queue-operation", "operation": "enqueue", "content": BRIEF},
                {"type": "user", "message": {"role": "user", "content": prompt}},
                {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": BRIEF}]}},
            ]
        case "codex":
            file = memory / "sessions" / "2026" / "01" / "31" / f"rollout-2026-01-31T10-00-00-{session}.jsonl"
            roles = {"developer": BRIEF, "user": prompt, "assistant": BRIEF}
            said = [
                {"type": "session_meta", "payload": {"id": session}},
                *(
                    {"type": "response_item", "payload": {"role": role, "content": [{"text": text}]}}
                    for role, text in roles.items()
                ),
            ]
        case _:
            database = memory / "data" / "opencode" / "opencode.db"
            database.parent.mkdir(parents=True)
            with sqlite3.connect(database) as connection:
                connection.execute("CREATE TABLE session (id text PRIMARY KEY)")
                connection.execute("CREATE TABLE part (id text PRIMARY KEY, session_id text, data text)")
                connection.execute("INSERT INTO session VALUES (?)", (session,))
                for id, text in (("prt_2", BRIEF), ("prt_1", prompt)):
                    part = json.dumps({"type": "text", "text": text})
                    connection.execute("INSERT INTO part VALUES (?, ?, ?)", (id, session, part))
            connection.close()
            return database
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{json.dumps(one)}\n" for one in said))
    return file


@every_cli
def test_the_credential_is_in_no_command_line_and_no_environment_and_only_in_files_of_our_own(cli, tmp_path):
    launch = RUNTIMES[cli].launch(job(tmp_path))
    assert TOKEN not in json.dumps([launch.argv, dict(launch.env)])
    holding = [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN in path.read_text()]
    assert holding
    assert {oct(path.stat().st_mode & 0o777) for path in holding} == {"0o600"}
    for folder in (tmp_path / "runs" / "run", tmp_path / "memory"):
        assert folder.stat().st_mode & 0o077 == 0


@every_cli
def test_a_fresh_run_is_told_its_brief_and_nothing_of_it_in_the_command_line(cli, tmp_path):
    launch = RUNTIMES[cli].launch(job(tmp_path, brief="# A long one\n" + "x" * 300_000))
    assert launch.stdin.read_text() == "# A long one\n" + "x" * 300_000
    assert sum(map(len, launch.argv)) < 4096


@every_cli
def test_a_session_that_is_there_is_gone_on_with_and_told_the_note(cli, tmp_path):
    remember(cli, tmp_path / "memory", SESSION)
    launch = RUNTIMES[cli].launch(job(tmp_path, session=SESSION))
    assert SESSION in launch.argv
    assert launch.stdin.read_text() == "Person says: go on"


@every_cli
@pytest.mark.parametrize("session", [SESSION, "../../../etc/passwd", "*", ""])
def test_a_session_that_is_not_there_is_begun_afresh_from_the_brief(cli, session, tmp_path):
    remember(cli, tmp_path / "memory", "another-session")
    launch = RUNTIMES[cli].launch(job(tmp_path, session=session))
    assert not {session, "--resume", "resume", "--session"} & set(launch.argv) - {""}
    assert launch.stdin.read_text() == "# Do it\n\nAs follows.\n"


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "torn": lambda whole: whole[: len(whole) // 2],
    "torn in the middle": lambda whole: whole[: len(whole) // 3] + whole[len(whole) // 2 :],
    "torn in its last line": lambda whole: whole[:-9],
    "without its last end": lambda whole: whole[:-1],
    "rubbish": lambda whole: bytes(range(256)) * 32,
    "rubbish behind": lambda whole: whole + b"\xff\xfe\x00\n",
    "nothing said": lambda whole: b"{}\n",
    "no objects": lambda whole: whole + b"[]\n",
    "nested too deeply": lambda whole: whole + b"[" * 100_000 + b"\n",
}


def assert_afresh(cli: str, home: Path) -> None:
    launch = RUNTIMES[cli].launch(job(home, session=SESSION))
    assert not {"--resume", "resume", "--session"} & set(launch.argv)
    assert launch.stdin.read_text() == BRIEF


@pytest.mark.parametrize("cli", ["claude", "codex"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_session_that_is_damaged_is_begun_afresh_from_the_brief(cli, damage, tmp_path):
    file = remember(cli, tmp_path / "memory", SESSION)
    file.write_bytes(damage(file.read_bytes()))
    assert_afresh(cli, tmp_path)


@pytest.mark.parametrize("damage", ["empty", "torn", "rubbish", "nothing said"])
def test_a_database_that_is_damaged_is_no_memory(damage, tmp_path):
    file = remember("opencode", tmp_path / "memory", SESSION)
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    assert_afresh("opencode", tmp_path)


@every_cli
@pytest.mark.parametrize("prompt", ["", "Person says: go on", f"This is the brief of the task:\n\n{BRIEF}"])
def test_a_session_without_the_prompt_that_it_began_with_is_begun_afresh(cli, prompt, tmp_path):
    remember(cli, tmp_path / "memory", SESSION, prompt)
    assert_afresh(cli, tmp_path)


@pytest.mark.parametrize("data", ["{", "[]", "null", '{"type": "text", "text": 1}', b"\xff", 7, None])
def test_a_part_of_a_database_that_is_not_understood_is_no_prompt(data, tmp_path):
    file = remember("opencode", tmp_path / "memory", SESSION)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE part SET data = ?", (data,))
    connection.close()
    assert_afresh("opencode", tmp_path)


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_a_session_that_has_grown_without_end_is_not_read(cli, tmp_path):
    file = remember(cli, tmp_path / "memory", SESSION)
    os.truncate(file, 1 << 40)
    assert_afresh(cli, tmp_path)


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_a_line_of_a_session_that_is_longer_than_any_is_not_understood(cli, tmp_path):
    file = remember(cli, tmp_path / "memory", SESSION)
    with file.open("a") as lines:
        lines.write(json.dumps({"type": "x", "text": "x" * (8 << 20)}) + "\n")
    assert_afresh(cli, tmp_path)


@every_cli
def test_a_launch_that_is_repeated_is_the_same(cli, tmp_path):
    first = RUNTIMES[cli].launch(job(tmp_path))
    files = {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert RUNTIMES[cli].launch(job(tmp_path)) == first
    assert {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()} == files


@every_cli
def test_a_new_credential_takes_the_place_of_the_old_one(cli, tmp_path):
    RUNTIMES[cli].launch(job(tmp_path, door=Door("http://m", "http://t", "an-older-token")))
    RUNTIMES[cli].launch(job(tmp_path))
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and "an-older-token" in path.read_text()]


@every_cli
@pytest.mark.parametrize("missing", [{"door": None}, {"model": ""}, {"brief": ""}])
def test_a_job_that_is_none_for_an_agent_is_refused(cli, missing, tmp_path):
    with pytest.raises(WatchbillError, match=r"needs a door, a model and a brief"):
        RUNTIMES[cli].launch(job(tmp_path, **missing))


@every_cli
def test_a_cli_that_is_not_installed_is_no_launch(cli, tmp_path):
    with pytest.raises(NotFound, match=f"there is no {cli} on .*npm install --global"):
        RUNTIMES[cli].launch(job(tmp_path, path=str(tmp_path)))


@every_cli
def test_our_tools_are_left_out_where_the_door_has_none(cli, tmp_path):
    def texts() -> str:
        return "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())

    RUNTIMES[cli].launch(job(tmp_path, door=Door("http://127.0.0.1:9/models", "", TOKEN)))
    assert "mcp_servers" not in texts()
    assert "mcpServers" not in texts()
    assert '"mcp"' not in texts()
    RUNTIMES[cli].launch(job(tmp_path))
    assert "http://127.0.0.1:9/mcp" in texts()


def test_a_link_that_an_agent_left_in_its_memory_is_not_written_through(tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "mine").write_text("keep this")
    (tmp_path / "memory" / "config.toml").symlink_to(tmp_path / "mine")
    RUNTIMES["codex"].launch(job(tmp_path))
    assert (tmp_path / "mine").read_text() == "keep this"
    assert not (tmp_path / "memory" / "config.toml").is_symlink()


def test_a_folder_that_an_agent_left_in_the_place_of_our_file_is_taken_away(tmp_path):
    for name in ("config.toml", f".config.toml.{os.getpid()}"):
        (tmp_path / "memory" / name / "full").mkdir(parents=True)
    RUNTIMES["codex"].launch(job(tmp_path))
    assert (tmp_path / "memory" / "config.toml").is_file()


@every_cli
def test_a_memory_that_an_agent_closed_is_opened_again(cli, tmp_path):
    (tmp_path / "memory").mkdir(mode=0)
    RUNTIMES[cli].launch(job(tmp_path))
    assert (tmp_path / "memory").stat().st_mode & 0o777 == 0o700


ENDLESS = "WITH RECURSIVE n(id) AS (VALUES('a') UNION ALL SELECT id FROM n) SELECT id FROM n"
SLOW = f"'{'a' * 60}' GLOB '{'*a' * 25}*b'"
GREEDY = f"SELECT 'x' AS id WHERE {SLOW}"


@pytest.mark.parametrize(
    "schema",
    [
        f"CREATE VIEW session AS {ENDLESS}",
        f"CREATE VIEW session AS {GREEDY}",
        f"CREATE TABLE session (x, id AS ({SLOW})); INSERT INTO session VALUES (1)",  # noqa: S608 - it is meant to be
        "CREATE VIEW session AS SELECT hex(zeroblob(900000000)) AS id",
        "CREATE TABLE other (x)",
        f"CREATE TABLE session (id); CREATE VIEW part AS SELECT id, id AS session_id, id AS data FROM ({ENDLESS})",  # noqa: S608 - it is meant to be
        f"CREATE TABLE session (id); CREATE TABLE part (id, session_id, data AS ({SLOW}))",
    ],
)
def test_a_database_whose_schema_an_agent_made_up_is_no_memory_and_holds_nobody_up(schema, tmp_path):
    database = tmp_path / "memory" / "data" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    with sqlite3.connect(database) as connection:
        connection.executescript(schema)
    connection.close()
    assert "--session" not in RUNTIMES["opencode"].launch(job(tmp_path, session=SESSION)).argv


@pytest.mark.parametrize("beside", ["", "-journal", "-wal", "-shm"])
def test_a_pipe_in_the_place_of_a_database_or_beside_it_holds_nobody_up(beside, tmp_path):
    remember("opencode", tmp_path / "memory", SESSION)
    file = tmp_path / "memory" / "data" / "opencode" / f"opencode.db{beside}"
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    assert "--session" not in RUNTIMES["opencode"].launch(job(tmp_path, session=SESSION)).argv


@pytest.mark.parametrize(("cli", "folder"), [("claude", "projects"), ("codex", "sessions"), ("opencode", "data")])
def test_a_memory_that_is_a_link_to_elsewhere_is_none(cli, folder, tmp_path):
    remember(cli, tmp_path / "elsewhere", SESSION)
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / folder).symlink_to(tmp_path / "elsewhere" / folder)
    argv = RUNTIMES[cli].launch(job(tmp_path, session=SESSION)).argv
    assert not {"--resume", "resume", "--session"} & set(argv)


def test_of_a_memory_that_has_grown_without_end_so_much_is_looked_at(tmp_path):
    (tmp_path / "projects" / "p").mkdir(parents=True)
    for number in range(30):
        (tmp_path / "projects" / "p" / f"{number}.jsonl").touch()
    assert len(list(files_below(tmp_path / "projects", 1))) == 30
    assert len(list(files_below(tmp_path / "projects", 1, most=11))) == 10


def test_codexs_configuration_is_toml_whatever_the_names_hold(tmp_path):
    odd = tmp_path / 'ä "quoted" \\ back\x7f 日本'
    odd.mkdir()
    RUNTIMES["codex"].launch(job(odd, model='m"\\\n'))
    found = tomllib.loads((odd / "memory" / "config.toml").read_text())
    assert found["model"] == 'm"\\\n'
    assert found["sandbox_workspace_write"]["writable_roots"] == [str(odd / "runs" / "run" / "home")]
    assert found["mcp_servers"]["watchbill"]["http_headers"] == {"Authorization": f"Bearer {TOKEN}"}
    assert "PreToolUse" in found["hooks"]


def test_claudes_session_is_another_where_one_of_that_name_is_there(tmp_path):
    argv = RUNTIMES["claude"].launch(job(tmp_path)).argv
    first = argv[argv.index("--session-id") + 1]
    remember("claude", tmp_path / "memory", first)
    argv = RUNTIMES["claude"].launch(job(tmp_path)).argv
    assert argv[argv.index("--session-id") + 1] != first


def test_agents_are_given_the_repositorys_instructions(tmp_path):
    def given() -> tuple[list[str], list[str]]:
        argv = list(RUNTIMES["claude"].launch(job(tmp_path)).argv)
        RUNTIMES["opencode"].launch(job(tmp_path))
        config = json.loads((tmp_path / "runs" / "run" / "opencode.json").read_text())
        places = [place + 1 for place, word in enumerate(argv) if word == "--append-system-prompt-file"]
        return [argv[place] for place in places], config["instructions"]

    assert given() == ([], [])
    agents = tmp_path / "work" / "AGENTS.md"
    agents.write_text("Use tabs.")
    assert given() == ([str(agents)], [str(agents)])
    claude = tmp_path / "work" / "CLAUDE.md"
    claude.write_text("Use spaces.")
    assert given() == ([str(claude)], [str(agents)])


def test_a_schema_is_given_by_the_clis_own_means_only_where_our_tools_are_missing(tmp_path):
    bare, schema = Door("http://127.0.0.1:9/models", "", TOKEN), {"type": "object"}
    for cli, option in (("claude", "--json-schema"), ("codex", "--output-schema")):
        assert option in RUNTIMES[cli].launch(job(tmp_path, door=bare, schema=schema)).argv
        assert option not in RUNTIMES[cli].launch(job(tmp_path, schema=schema)).argv


@pytest.mark.parametrize(
    ("model", "package", "base"),
    [
        ("claude-sonnet-4-6", "@ai-sdk/anthropic", "anthropic/v1"),
        ("gpt-5.5", "@ai-sdk/openai", "openai/v1"),
        ("o3", "@ai-sdk/openai", "openai/v1"),
        ("olmo-2", "@ai-sdk/openai-compatible", "openai/v1"),
    ],
)
def test_opencode_speaks_the_api_of_the_models_maker(model, package, base, tmp_path):
    RUNTIMES["opencode"].launch(job(tmp_path, model=model))
    provider = json.loads((tmp_path / "runs" / "run" / "opencode.json").read_text())["provider"]["watchbill"]
    assert (provider["npm"], provider["options"]["baseURL"]) == (package, f"http://127.0.0.1:9/models/{base}")


@every_cli
def test_a_cli_that_is_not_installed_is_told_with_the_command_that_installs_it(cli, tmp_path):
    found = RUNTIMES[cli].installed(str(tmp_path))
    assert found.version == ""
    assert f"there is no {cli} on {tmp_path}" in found.missing
    assert re.fullmatch(r"npm install --global \S+@\d+\.\d+\.\d+", found.mend)


@pytest.mark.parametrize(
    ("says", "version", "missing"),
    [
        ("echo 0.0.1-beta", "0.0.1-beta", ""),
        ("echo oops >&2; exit 3", "", "does not tell its version: oops"),
        ("echo hello", "", "does not tell its version"),
    ],
)
def test_what_a_program_says_of_its_version_is_read_with_care(says, version, missing, tmp_path):
    program = tmp_path / "codex"
    program.write_text(f"#!/bin/sh\n{says}\n")
    program.chmod(0o755)
    found = RUNTIMES["codex"].installed(f"{tmp_path}:{os.defpath}")
    assert found.version == version
    assert missing in found.missing
    assert found.mend.startswith("npm install")


def test_the_runtimes_without_a_model_need_a_shell(tmp_path):
    for name in ("shell", "check"):
        assert RUNTIMES[name].installed(os.defpath).missing == ""
        assert "no sh" in RUNTIMES[name].installed(str(tmp_path)).missing
