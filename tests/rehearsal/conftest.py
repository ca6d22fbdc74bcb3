"""A shop on the stand-in GitHub: its owner with a clone and a token, an App, and a listener for webhooks."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from rehearsal.scene import App
from rehearsal.server import Rehearsal
from tests.rehearsal_fixture import rehearsal  # noqa: F401 - a fixture is found by being here

NAME = "acme/shop"


def basic(token: str) -> str:
    return "basic " + base64.b64encode(f"x-access-token:{token}".encode()).decode()


def git(directory: Path, *arguments: str, header: str = "", check: bool = True) -> str:
    """git as a person runs it; `header` is the Authorization to send.

    Answers what it printed; where it may fail (`check` is False) and does, its complaints too.
    """
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        **{f"GIT_{role}_NAME": "Ada" for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_EMAIL": "ada@example.org" for role in ("AUTHOR", "COMMITTER")},
    }
    settings = {"maintenance.auto": "false", "core.fsync": "none"}
    if header:
        settings["http.extraheader"] = f"Authorization: {header}"
    environment["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (name, value) in enumerate(settings.items()):
        environment |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    done = subprocess.run(["git", *arguments], cwd=directory, env=environment, capture_output=True, check=False)
    if check:
        assert done.returncode == 0, done.stderr.decode()
    return (done.stdout if done.returncode == 0 else done.stdout + done.stderr).decode().strip()


class Client:
    """The API as one caller sees it; answers are `httpx.Response`s."""

    def __init__(self, url: str, token: str, heard: Callable[[httpx.Response], None] | None = None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        hooks = {"response": [heard]} if heard else {}
        # No certificates to read: there is only plain HTTP here.
        self.http = httpx.Client(
            base_url=url,
            headers=headers,
            timeout=20,
            trust_env=False,
            event_hooks=hooks,
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )

    def __call__(self, method: str, path: str, /, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
        return self.http.request(method, path, json=body or None, headers=headers)

    def read(self, path: str) -> Any:
        answer = self("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()


@dataclass
class Shop:
    """`acme/shop`, public, with one commit on main. `owner` is acme's client; `clone` is acme's clone."""

    github: Rehearsal
    token: str
    clone: Path
    clients: dict[str, Client] = field(default_factory=dict)

    def client(self, token: str) -> Client:
        if token not in self.clients:
            self.clients[token] = Client(self.github.url, token)
        return self.clients[token]

    @property
    def bare(self) -> Path:
        """Where the stand-in keeps it. Reading there costs a tenth of a fetch over HTTP."""
        return self.github.folder / "repositories" / "1.git"

    @property
    def owner(self) -> Client:
        return self.client(self.token)

    def person(self, login: str, permission: str = "") -> Client:
        """Somebody with a personal token, and with this permission in the shop if any."""
        if permission:
            self.github.scene.collaborator(NAME, login, permission)
        return self.client(self.github.scene.personal_token(login))

    def git(self, *arguments: str, check: bool = True) -> str:
        return git(self.clone, *arguments, header=basic(self.token), check=check)

    def push(self, branch: str, files: dict[str, str], *, start: str = "origin/main", force: bool = False) -> str:
        """Commit these files on a new local branch from `start` and push it; the sha."""
        self.git("fetch", "--quiet", str(self.bare), "+refs/heads/*:refs/remotes/origin/*")
        self.git("checkout", "--quiet", "-B", branch, start)
        for path, text in files.items():
            (self.clone / path).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", f"Change {', '.join(files)}")
        self.git("push", "--quiet", *(["--force"] if force else []), "origin", branch)
        return self.git("rev-parse", "HEAD")

    def open(self, branch: str = "topic", base: str = "main", **more: Any) -> Any:
        """A pull request from a branch, which is pushed first where it is new."""
        if self.owner("GET", f"repos/{NAME}/branches/{branch}").status_code == 404:
            self.push(branch, {f"{branch.replace('/', '-')}.txt": branch})
        answer = self.owner("POST", f"repos/{NAME}/pulls", title=f"From {branch}", head=branch, base=base, **more)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def pull(self, number: int) -> Any:
        return self.owner.read(f"repos/{NAME}/pulls/{number}")

    def tip(self, branch: str) -> str:
        return str(self.owner.read(f"repos/{NAME}/git/ref/heads/{branch}")["object"]["sha"])


@pytest.fixture
def shop(rehearsal: Rehearsal, tmp_path: Path) -> Iterator[Shop]:  # noqa: F811 - the fixture, not the import
    rehearsal.scene.repository(NAME, files={"README.md": "# shop\n", "price.py": "PRICE = 1\n"})
    token = rehearsal.scene.personal_token("acme")
    clone = tmp_path / "clone"
    made = Shop(rehearsal, token, clone)
    git(tmp_path, "clone", "--quiet", str(made.bare), str(clone))
    git(clone, "remote", "set-url", "origin", f"{rehearsal.url}{NAME}.git")
    yield made
    for client in made.clients.values():
        client.http.close()


@dataclass
class Installed:
    """An App that is installed on the shop."""

    shop: Shop
    app: App
    installation: int

    def jwt(self, **claims: Any) -> str:
        at = int(time.time())
        return jwt.encode(
            {"iss": str(self.app.id), "iat": at - 10, "exp": at + 500, **claims},
            self.app.private_key,
            "RS256",
        )

    @property
    def itself(self) -> Client:
        return self.shop.client(self.jwt())

    def mint(self, **narrowed: Any) -> Any:
        answer = self.itself("POST", f"app/installations/{self.installation}/access_tokens", **narrowed)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def client(self, **narrowed: Any) -> Client:
        """The API with a fresh installation token."""
        return self.shop.client(self.mint(**narrowed)["token"])


@pytest.fixture
def installed(shop: Shop) -> Installed:
    app = shop.github.scene.app("watchbill")
    return Installed(shop, app, shop.github.scene.install("watchbill", NAME))


@dataclass(frozen=True)
class Heard:
    """One webhook that was received. `payload` is decoded from `body`, the raw bytes; `port` is the sender's."""

    headers: dict[str, str]
    body: bytes
    port: int

    @property
    def name(self) -> str:
        """`event.action`, or the event alone."""
        action = self.payload.get("action")
        return self.headers["x-github-event"] + (f".{action}" if action else "")

    @property
    def guid(self) -> str:
        return self.headers["x-github-delivery"]

    @property
    def payload(self) -> Any:
        return json.loads(self.body)


class Ear:
    """A webhook's other end. `answers` are the statuses it gives, one each, and 204 when they are used up.

    It answers nothing while `silent` is set.
    """

    SECRET = "s3cret"

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.answers: list[int] = []
        self.silent = threading.Event()
        ear = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                ear.heard.append(Heard(headers, body, self.client_address[1]))
                while ear.silent.is_set():
                    time.sleep(0.005)
                self.send_response(ear.answers.pop(0) if ear.answers else 204)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def names(self) -> list[str]:
        return [heard.name for heard in self.heard]

    def wait(self, *names: str) -> list[Heard]:
        """Once everything named has been heard (each as often as it is named): what was."""
        eventually(lambda: all(self.names().count(name) >= names.count(name) for name in names))
        return [heard for heard in self.heard if heard.name in names]


def eventually(holds: Callable[[], bool]) -> None:
    """Returns once it holds; fails when it still does not after a time in which it surely should."""
    for _ in range(2000):
        if holds():
            return
        time.sleep(0.005)
    raise AssertionError("this never came true")


@pytest.fixture
def ear() -> Iterator[Ear]:
    made = Ear()
    yield made
    made.close()
