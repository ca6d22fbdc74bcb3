"""What the worker is told from outside: read once, checked, and never changed afterwards."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from domain.errors import Unauthorized
from domain.heartbeat import HeartbeatPolicy
from forge.github_api import GitHubApi
from forge.github_auth import App, PersonalToken
from runtimes.port import Login
from worker.__main__ import _credentials
from worker.settings import WorkerSettings


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in WorkerSettings.model_fields:
        monkeypatch.delenv(f"WATCHBILL_{name.upper()}", raising=False)


def test_settings_are_frozen() -> None:
    settings = WorkerSettings()
    with pytest.raises(ValidationError):
        settings.slots = 9  # type: ignore[misc]  # that it cannot be set is what is tested


def test_what_no_run_may_see_is_the_home_the_store_and_every_file_that_is_named_as_a_secret(tmp_path: Path) -> None:
    settings = WorkerSettings(
        home=tmp_path / "home",
        store_url=f"sqlite:///{tmp_path}/elsewhere.db",
        github_token_file=tmp_path / "token",
        seal_key_file=tmp_path / "seal.pem",
        confine_read="/data:~/sets",
    )
    hidden = {str(path.relative_to(tmp_path)) for path in settings.hidden}
    assert hidden >= {
        "home",
        "evidence",
        "elsewhere.db",
        "elsewhere.db-wal",
        "token",
        "seal.pem",
        "home/keys/capability.pem",
    }
    assert settings.readable == (Path("/data"), Path.home() / "sets")


def test_logins_are_in_the_home_or_where_it_is_told_and_no_run_may_see_them(tmp_path: Path) -> None:
    assert WorkerSettings(home=tmp_path).own_logins.folder == tmp_path / "logins"
    settings = WorkerSettings(home=tmp_path / "home", logins=tmp_path / "theirs", anthropic_url="https://a.example")
    assert settings.own_logins.of("claude") == Login(tmp_path / "theirs" / "claude", "https://a.example")
    assert tmp_path / "theirs" in settings.hidden


def test_they_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = {"HOME": str(tmp_path), "INTERVAL": "5", "FOLLOW": "7", "SLOTS": "2", "LEASE": "30", "UNKNOWN": "x"}
    for name, value in told.items():
        monkeypatch.setenv(f"WATCHBILL_{name}", value)
    settings = WorkerSettings()
    assert settings.policy == HeartbeatPolicy(5, 7, 2)
    assert settings.lease_time == timedelta(seconds=30)
    assert settings.store == f"sqlite:///{tmp_path}/graph.db"


def test_a_store_that_is_named_is_taken_and_a_home_is_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = WorkerSettings(store_url="postgresql://db/watchbill", home=Path("~/there"))
    assert settings.store == "postgresql://db/watchbill"
    assert settings.folder == Path.home() / "there"


@pytest.mark.parametrize(
    ("name", "value"),
    [("interval", 0), ("follow", -1), ("slots", 0), ("lease", 1), ("github_pause", -1), ("merge_method", "octopus")],
)
def test_what_makes_no_sense_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=name):
        WorkerSettings(**{name: value})


async def test_credentials_come_from_files_and_none_are_asked_for(tmp_path: Path) -> None:
    api = GitHubApi("http://forge.invalid")
    (tmp_path / "token").write_text("ghp_secret\n")
    (tmp_path / "key").write_text("key")
    with pytest.raises(Unauthorized, match="WATCHBILL_GITHUB_TOKEN_FILE"):
        _credentials(WorkerSettings(), api)
    assert isinstance(_credentials(WorkerSettings(github_token_file=tmp_path / "token"), api), PersonalToken)
    both = WorkerSettings(github_app_id=1, github_app_key_file=tmp_path / "key", github_token_file=tmp_path / "token")
    assert isinstance(_credentials(both, api), App)
    await api.close()


def test_no_setting_holds_a_secret_by_value() -> None:
    secretive = [name for name in WorkerSettings.model_fields if "token" in name or "key" in name or "secret" in name]
    assert secretive
    assert all(name.endswith("_file") for name in secretive)
