"""The stand-in as a process: its announcement, its set-up routes, and what outlives `kill -9`."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from rehearsal.server import Rehearsal
from rehearsal.state import FolderInUse
from tests.rehearsal.conftest import NAME, Ear, Shop, basic, git


@dataclass
class Served:
    process: subprocess.Popen[bytes]
    announced: dict[str, Any]

    @property
    def url(self) -> str:
        return str(self.announced["address"])

    def set_up(self, path: str, method: str = "POST", /, **body: Any) -> Any:
        token = Path(self.announced["setup_token_file"]).read_text()
        answer = httpx.request(
            method,
            f"{self.url}_rehearsal/{path}",
            json=body,
            headers={"Authorization": f"Bearer {token}"},
            trust_env=False,
        )
        assert answer.status_code == 200, answer.text
        return answer.json()


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[Served]:
    command = [sys.executable, "-m", "rehearsal", "--folder", str(folder), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield Served(process, json.loads(process.stdout.readline()))
        finally:
            process.kill()


def test_what_was_committed_outlives_kill_9(tmp_path: Path) -> None:
    folder = tmp_path / "github"
    with served(folder) as github:
        github.set_up("repositories", name=NAME, files={"README.md": "# shop\n"})
        token = github.set_up("tokens", login="acme")["token"]
        header = basic(token)
        git(tmp_path, "clone", "--quiet", f"{github.url}{NAME}.git", "clone", header=header)
        clone = tmp_path / "clone"
        git(clone, "commit", "--quiet", "--allow-empty", "--message", "work")
        git(clone, "push", "--quiet", "origin", "HEAD:refs/heads/topic", header=header)
        pulls = f"{github.url}repos/{NAME}/pulls"
        made = httpx.post(
            pulls,
            json={"title": "Work", "head": "topic", "base": "main"},
            headers={"Authorization": f"Bearer {token}"},
            trust_env=False,
        ).json()
        github.process.send_signal(signal.SIGKILL)
        github.process.wait()
    with served(folder) as github:
        found = httpx.get(
            f"{github.url}repos/{NAME}/pulls/1", headers={"Authorization": f"Bearer {token}"}, trust_env=False
        ).json()
    assert (found["head"]["sha"], found["state"]) == (made["head"]["sha"], "open")
    assert found["html_url"] == f"{github.url}{NAME}/pull/1"


def test_it_ends_on_sigterm_and_lets_go_of_its_folder(tmp_path: Path) -> None:
    with served(tmp_path / "github") as github:
        github.process.send_signal(signal.SIGTERM)
        assert github.process.wait() == 0
    with Rehearsal(tmp_path / "github") as again:
        assert again.url


def test_one_folder_is_served_once(rehearsal: Rehearsal) -> None:
    with pytest.raises(FolderInUse, match="stop it first"):
        Rehearsal(rehearsal.folder).start()
    done = subprocess.run(
        [sys.executable, "-m", "rehearsal", "--folder", str(rehearsal.folder)],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"stop it first" in done.stderr


def test_the_set_up_wants_the_token_of_a_file_that_only_its_user_reads(rehearsal: Rehearsal) -> None:
    path = rehearsal.folder / "setup-token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for headers in ({}, {"Authorization": "Bearer guess"}):
        refused = httpx.post(
            f"{rehearsal.url}_rehearsal/tokens", json={"login": "acme"}, headers=headers, trust_env=False
        )
        assert refused.status_code == 401


def test_everything_can_be_set_up_over_http(tmp_path: Path, ear: Ear) -> None:
    with served(tmp_path / "github", "--webhook-url", ear.url) as github:
        first = github.set_up("repositories", name=NAME)
        assert github.set_up("repositories", name=NAME) == first
        assert github.set_up("forks", name=NAME, owner="bob") == {"name": "bob/shop"}
        app = github.set_up("apps", slug="watchbill")
        assert app["private_key"].startswith("-----BEGIN PRIVATE KEY-----")
        assert github.set_up("apps", slug="watchbill")["id"] == app["id"]
        installation = github.set_up("installations", slug="watchbill", repositories=[NAME])["id"]
        github.set_up("webhooks", slug="watchbill", url=ear.url, secret=Ear.SECRET)
        github.set_up("collaborators", name=NAME, login="bob", permission="write")
        github.set_up("protections", name=NAME, branch="main", checks=["tests"])
        github.set_up("installations/suspend", installation=installation)
        github.set_up("tokens/expire")
        github.set_up("limits", enforced=True)
        github.set_up("faults", kind="slow", path="*/pulls", times=2, seconds=0.1)
        [fault] = github.set_up("faults", "GET")
        assert (fault["kind"], fault["left"], fault["options"]) == ("slow", 2, {"seconds": 0.1})
        github.set_up("faults", "DELETE")
        assert github.set_up("faults", "GET") == []
        assert github.set_up("requests", "GET") == []
        assert stat.S_IMODE(Path(github.announced["webhook_secret_file"]).stat().st_mode) == 0o600
    ear.wait("installation.suspend")


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("repositories", {"name": "shop"}, "give owner/name"),
        ("repositories", {"name": "repos/shop"}, "give owner/name"),
        ("repositories", {"name": NAME, "source": "/nowhere"}, "no git repository"),
        ("collaborators", {"name": NAME, "login": "bob"}, "create it first"),
        ("installations", {"slug": "nobody", "repositories": [NAME]}, "register it first"),
        ("faults", {"kind": "meteor"}, "the kinds are"),
        ("tokens", {"name": "acme"}, "unexpected keyword argument 'name'"),
    ],
)
def test_a_set_up_that_cannot_be_says_why(rehearsal: Rehearsal, path: str, body: dict[str, Any], words: str) -> None:
    answer = httpx.post(
        f"{rehearsal.url}_rehearsal/{path}",
        json=body,
        headers={"Authorization": f"Bearer {(rehearsal.folder / 'setup-token').read_text()}"},
        trust_env=False,
    )
    assert answer.status_code == 422
    assert words in answer.json()["message"]
    assert rehearsal.scene.faults() == []


async def test_it_is_an_asynchronous_context_too(tmp_path: Path) -> None:
    async with Rehearsal(tmp_path / "github") as github, httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"{github.url}repos/acme/shop")).status_code == 404


def test_a_push_received_just_before_the_end_is_noticed_at_the_next_start(shop: Shop) -> None:
    shop.open("topic")
    shop.github.stop()
    bare = shop.github.folder / "repositories" / "1.git"
    sha = git(bare, "commit-tree", "-p", "topic", "-m", "late", "topic^{tree}")
    git(bare, "update-ref", "refs/heads/topic", sha)
    shop.github.start()
    shop.clients.clear()
    assert shop.pull(1)["head"]["sha"] == sha
