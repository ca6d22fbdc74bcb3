"""What a run that goes around the relay is given of a login, and what it is not; no CLI is needed for it."""

from __future__ import annotations

import base64
import json
import shlex
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from activities.redaction import showable
from domain.errors import Unauthorized, WatchbillError
from runtimes import logins
from runtimes.logins import Logins
from runtimes.port import Launch, Login
from runtimes.registry import AGENTS, RUNTIMES
from tests.runtimes.test_launches import CLIS, TOKEN, every_cli, job

KEY = "sk-ant-api03-a-key-of-ones-own-0123456789"
RENEWAL = "sk-ant-ort01-what-renews-a-login-0123456789"
LATER = (time.time() + 3600) * 1000


def jwt(**claims: Any) -> str:
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJub25lIn0.{part}.a-signature-of-theirs"


def put(folder: Path, name: str, content: Any) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def with_key(cli: str, folder: Path, key: str = KEY) -> Path:
    """A folder in which this CLI has a key of its own."""
    match cli:
        case "claude":
            return put(folder, "api-key", f"{key}\n")
        case "codex":
            return put(folder, "auth.json", {"OPENAI_API_KEY": key, "tokens": None, "last_refresh": None})
        case _:
            entries = {maker: {"type": "api", "key": key} for maker in ("anthropic", "openai")}
            return put(folder, "opencode/auth.json", entries)


def launched(cli: str, home: Path, *, anthropic: str = "", openai: str = "", **changes: Any) -> Launch:
    login = Login(with_key(cli, home / "logins" / cli), anthropic, openai)
    changes = {"login": login, "model": "claude-sonnet-4-6" if cli != "codex" else "gpt-5.5", **changes}
    return RUNTIMES[cli].launch(job(home, **changes))


def provider_of(cli: str, home: Path, launch: Launch) -> dict[str, Any]:
    """Where the CLI finds its model and its credential, as it is told."""
    if cli == "claude":
        settings = json.loads((home / "runs" / "run" / "claude-settings.json").read_text())
        return {"address": launch.env.get("ANTHROPIC_BASE_URL"), "helper": settings.get("apiKeyHelper")}
    if cli == "codex":
        provider: dict[str, Any] = tomllib.loads((home / "memory" / "config.toml").read_text())["model_providers"]
        return {"address": provider["watchbill"].get("base_url"), **provider["watchbill"]}
    options = json.loads((home / "runs" / "run" / "opencode.json").read_text())["provider"]["watchbill"]["options"]
    return {"address": options.get("baseURL"), **options}


@every_cli
def test_a_login_is_in_the_runs_memory_for_its_user_alone_and_nowhere_else(cli, tmp_path):
    launch = launched(cli, tmp_path)
    holding = [path for path in tmp_path.rglob("*") if path.is_file() and KEY in path.read_text()]
    copies = [path for path in holding if not path.is_relative_to(tmp_path / "logins")]
    assert [path.parent for path in copies] == [tmp_path / "memory"]
    assert [oct(path.stat().st_mode & 0o777) for path in copies] == ["0o600"]
    assert KEY not in json.dumps([launch.argv, dict(launch.env)])
    assert KEY not in repr(launch)


@every_cli
def test_the_relays_credential_is_for_our_tools_and_no_key_for_a_model(cli, tmp_path):
    told = provider_of(cli, tmp_path, launch := launched(cli, tmp_path))
    assert TOKEN not in json.dumps(told)
    assert "./token" not in json.dumps(told)
    assert "http://127.0.0.1:9/models" not in json.dumps([told, dict(launch.env)])
    assert not (tmp_path / "runs" / "run" / "codex-key").exists()
    if cli == "claude":
        assert shlex.quote(str(tmp_path / "memory" / logins.KEY)) in Path(told["helper"]).read_text()
    # Its tools are at the door as ever.
    assert any("http://127.0.0.1:9/mcp" in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


@every_cli
def test_a_cli_finds_its_provider_by_itself_unless_it_is_told_where(cli, tmp_path):
    assert provider_of(cli, tmp_path, launched(cli, tmp_path))["address"] is None
    launch = launched(cli, tmp_path, anthropic="http://a.example", openai="http://o.example")
    told = provider_of(cli, tmp_path, launch)["address"]
    assert told == {"claude": "http://a.example", "codex": "http://o.example/v1"}.get(cli, "http://a.example/v1")


@every_cli
def test_without_a_login_a_run_is_refused_with_the_command_that_makes_one(cli, tmp_path):
    folder = tmp_path / "no where"
    command = {
        "claude": f"CLAUDE_CONFIG_DIR={shlex.quote(str(folder))} claude /login",
        "codex": f"CODEX_HOME={shlex.quote(str(folder))} codex login",
        "opencode": f"XDG_DATA_HOME={shlex.quote(str(folder))} opencode auth login",
    }[cli]
    with pytest.raises(Unauthorized) as refusal:
        RUNTIMES[cli].launch(job(tmp_path, login=Login(folder), model="gpt-5.5"))
    assert not refusal.value.retryable
    assert str(refusal.value).endswith(f"make one with: {command}")
    assert str(folder) in str(refusal.value)


@every_cli
@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"claudeAiOauth": 7, "tokens": 7, "openai": 7}'])
def test_what_is_no_login_is_none(cli, content, tmp_path):
    for name in (".credentials.json", ".claude.json", "auth.json", "opencode/auth.json"):
        put(tmp_path, name, content)
    with pytest.raises(logins.NoLogin):
        AGENTS[cli].login(tmp_path)


def test_of_claudes_subscription_a_run_gets_what_asks_and_not_what_renews(tmp_path):
    told = {
        "accessToken": "sk-ant-oat01-asks",
        "refreshToken": RENEWAL,
        "expiresAt": LATER,
        "scopes": ["user:inference"],
    }
    given = AGENTS["claude"].login(put(tmp_path, ".credentials.json", {"claudeAiOauth": told}))
    assert list(given) == [".credentials.json"]
    assert RENEWAL not in str(given)
    assert json.loads(given[".credentials.json"])["claudeAiOauth"]["accessToken"] == "sk-ant-oat01-asks"


def test_of_codexs_subscription_a_run_gets_what_asks_and_not_what_renews(tmp_path):
    access = jwt(exp=LATER / 1000)
    tokens = {"id_token": jwt(), "access_token": access, "refresh_token": RENEWAL, "account_id": "a"}
    newer = {"agent_identity": RENEWAL}
    given = AGENTS["codex"].login(put(tmp_path, "auth.json", {"OPENAI_API_KEY": None, "tokens": {**tokens, **newer}}))
    assert RENEWAL not in str(given)
    assert json.loads(given["auth.json"])["tokens"] == {**tokens, "refresh_token": ""}


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_a_login_that_has_ended_is_refused_before_a_run_is_sent_out_with_it(cli, tmp_path):
    past = time.time() - 60
    put(tmp_path, ".credentials.json", {"claudeAiOauth": {"accessToken": "sk-ant-oat01-x", "expiresAt": past * 1000}})
    put(tmp_path, "auth.json", {"tokens": {"access_token": jwt(exp=past), "id_token": jwt()}})
    with pytest.raises(logins.NoLogin, match=r"ended at .*, and no run renews one"):
        AGENTS[cli].login(tmp_path)


def test_a_token_of_claudes_that_is_good_for_a_year_is_taken_and_so_is_a_console_key(tmp_path):
    token = put(tmp_path / "token", "setup-token", "sk-ant-oat01-for-a-year\n")
    assert json.loads(AGENTS["claude"].login(token)[".credentials.json"])["claudeAiOauth"] == {
        "accessToken": "sk-ant-oat01-for-a-year", "scopes": ["user:inference"], "expiresAt": None, "refreshToken": None,
    }  # fmt: skip
    console = put(tmp_path / "console", ".claude.json", {"primaryApiKey": KEY, "projects": {}})
    assert AGENTS["claude"].login(console) == {logins.KEY: KEY}


def test_opencode_is_given_the_key_of_its_models_maker_and_no_other(tmp_path):
    entries = {
        "anthropic": {"type": "api", "key": "for-claude"},
        "openai": {"type": "oauth", "access": "no", "refresh": "no"},
    }
    put(tmp_path, "opencode/auth.json", entries)
    assert AGENTS["opencode"].login(tmp_path, "claude-sonnet-4-6") == {logins.KEY: "for-claude"}
    # What an OAuth login needs is a plugin, and those are off.
    with pytest.raises(logins.NoLogin, match="no API key for openai"):
        AGENTS["opencode"].login(tmp_path, "gpt-5.5")


def test_opencode_is_told_where_a_server_of_ones_own_is_or_does_not_begin(tmp_path):
    with pytest.raises(WatchbillError, match="set WATCHBILL_OPENAI_URL on the worker"):
        launched("opencode", tmp_path, model="qwen3-coder")
    launch = launched("opencode", tmp_path, model="qwen3-coder", openai="http://o.example")
    assert provider_of("opencode", tmp_path, launch)["address"] == "http://o.example/v1"


def test_what_the_worker_is_told_is_what_the_relay_is_told(tmp_path):
    own = Logins(tmp_path, anthropic="https://a.example/", openai="http://o.example/v1")
    assert own.of("codex") == Login(tmp_path / "codex", "https://a.example", "http://o.example")
    stand_in = Logins(tmp_path, "http://s.example/models", "https://a.example", "http://o.example")
    assert stand_in.of("claude") == Login(
        tmp_path / "claude", "http://s.example/models/anthropic", "http://s.example/models/openai"
    )


@every_cli
def test_after_a_run_its_login_is_gone_and_the_rest_of_its_memory_is_there(cli, tmp_path):
    launched(cli, tmp_path)
    memory = tmp_path / "memory"
    (memory / "session").touch()
    logins.forget(memory)
    assert not [path for path in memory.rglob("*") if path.is_file() and KEY in path.read_text()]
    assert (memory / "session").exists()
    logins.forget(memory)


def test_a_login_takes_the_place_of_the_one_before_of_whatever_kind(tmp_path):
    logins.give(tmp_path, {logins.KEY: KEY})
    logins.give(tmp_path, {logins.CLAUDE: "{}"})
    assert [path.name for path in tmp_path.iterdir()] == [logins.CLAUDE]


def test_forgetting_follows_no_link_and_minds_nothing_in_a_files_place(tmp_path):
    theirs = put(tmp_path / "theirs", "auth.json", "{}")
    (tmp_path / "memory").symlink_to(theirs)
    logins.forget(tmp_path / "memory")
    assert (theirs / "auth.json").exists()
    for name in (logins.KEY, "auth.json", ".credentials.json"):
        (tmp_path / "own" / name / "full").mkdir(parents=True)
    logins.forget(tmp_path / "own")
    logins.forget(tmp_path / "none")


@pytest.mark.parametrize(
    "secret",
    [
        KEY, RENEWAL, "sk-ant-oat01-abcdefghijklmnopqrstuvwx", jwt(exp=1),
        f"sk-proj-{'a' * 20}T3BlbkFJ{'b' * 20}",
    ],
)  # fmt: skip
def test_what_an_agent_shows_of_its_login_is_redacted(secret):
    assert secret not in showable(f'{{"accessToken": "{secret}"}}')


def test_every_agent_has_a_login_to_speak_of():
    assert tuple(AGENTS) == CLIS
