"""How git is run: what it is told, what it is not told, and what its failures mean."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from domain.errors import NotFound, Unauthorized, Unavailable, WatchbillError
from forge.git import Auth, Contended, _failure, run
from tests.forge.desk import plain_git
from tests.forge.traps import SECRET


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("fatal: unable to access 'https://h/a.git/': The requested URL returned error: 503", Unavailable),
        ("fatal: unable to access 'https://h/a.git/': The requested URL returned error: 429", Unavailable),
        ("fatal: unable to access 'https://h/a.git/': Could not resolve host: h", Unavailable),
        ("fatal: unable to access 'https://h/': Operation too slow. Less than 1000 bytes/sec", Unavailable),
        ("error: RPC failed; HTTP 500 curl 22\nfatal: the remote end hung up unexpectedly", Unavailable),
        ("fatal: unable to access 'https://h/a.git/': The requested URL returned error: 403", Unauthorized),
        ("fatal: Authentication failed for 'https://h/a.git/'", Unauthorized),
        ("fatal: could not read Username for 'https://h': terminal prompts disabled", Unauthorized),
        ("remote: Repository not found.\nfatal: repository 'https://h/a.git/' not found", NotFound),
        ("fatal: Unable to create '/m/shallow.lock': File exists.\n\nAnother git process", Contended),
        ("error: cannot lock ref 'refs/x': is at 1 but expected 2", Contended),
        ("remote: error: 503 timed out\nfatal: something new", WatchbillError),
        ("", WatchbillError),
    ],
)
def test_what_git_says_is_told_as_what_it_means(said: str, kind: type[WatchbillError]) -> None:
    found = _failure("fetch", 128, said)
    assert type(found) is kind
    assert str(found).startswith("git fetch failed: ")
    assert "\n" not in str(found)


def test_a_git_that_was_killed_may_be_tried_again() -> None:
    assert type(_failure("fetch", -9, "")) is Unavailable


def test_what_git_says_is_told_without_secrets() -> None:
    said = f"fatal: unable to access 'https://x:{SECRET}@h/': header Authorization: Basic abcdef"
    assert SECRET not in str(_failure("fetch", 128, said))
    assert "abcdef" not in str(_failure("fetch", 128, said))


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    plain_git(tmp_path, "init", "--quiet", "--bare", "repository")
    pid_file = tmp_path / "pid"
    alias = f"!sh -c 'sleep 300 & echo $! > {pid_file}; wait'"
    with pytest.raises(Unavailable, match="did not end within"):
        run(tmp_path / "repository", "hang", config={"alias.hang": alias}, timeout=1)
    pid = int(pid_file.read_text())
    state = Path(f"/proc/{pid}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_credentials_are_in_the_environment_of_git_and_not_in_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain_git(tmp_path, "init", "--quiet", "--bare", "repository")
    auth = Auth.with_token(SECRET)
    url = "https://forge.example/acme/shop.git"
    tell = "!tr '\\0' ' ' < /proc/$PPID/cmdline; git config --get-urlmatch http.extraheader"
    config = auth.config(url) | {"alias.tell": tell}
    ours = run(tmp_path / "repository", "tell", url, config=config).decode()
    assert SECRET not in ours
    arguments, _, header = ours.partition(url)
    assert "Basic" not in arguments
    assert header.strip().endswith(f"Authorization: {auth.header}")
    with pytest.raises(WatchbillError):
        run(tmp_path / "repository", "tell", "https://other.example/acme/shop.git", config=config)


def test_nothing_of_our_own_environment_reaches_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain_git(tmp_path, "init", "--quiet", "--bare", "repository")
    for name in (
        "GIT_TRACE",
        "GIT_TRACE_CURL",
        "GIT_SSH_COMMAND",
        "WATCHBILL_GITHUB_TOKEN_FILE",
        "HTTPS_PROXY",
    ):
        monkeypatch.setenv(name, str(tmp_path / name))
    seen = run(tmp_path / "repository", "seen", config={"alias.seen": "!env"}).decode()
    names = {line.split("=")[0] for line in seen.splitlines()}
    assert not names & {
        "GIT_TRACE",
        "GIT_TRACE_CURL",
        "GIT_SSH_COMMAND",
        "WATCHBILL_GITHUB_TOKEN_FILE",
        "HTTPS_PROXY",
    }
    assert os.environ["HOME"] not in seen.split("HOME=")[1].split("\n")[0]
