"""A stand-in GitHub with one repository in it, Watchbill's App installed there, and a person."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from forge.github import GitHub
from forge.github_api import GitHubApi
from forge.github_auth import App, PersonalToken
from forge.port import Forge
from rehearsal.server import Rehearsal
from tests.forge.desk import plain_git, write

REPOSITORY = "acme/shop"
PERSON = "grace"


@dataclass
class GitHubScene:
    """`forge` speaks as the App; `person` is a collaborator with a clone at `clone`."""

    standin: Rehearsal
    key: Path
    app_id: int
    installation: int
    clone: Path

    @cached_property
    def api(self) -> GitHubApi:
        return GitHubApi(self.standin.url, seconds_between_writes=0)

    @cached_property
    def app(self) -> App:
        return App(self.api, self.app_id, self.key)

    @cached_property
    def forge(self) -> Forge:
        return GitHub(self.api, self.app)

    def forge_of(self, login: str) -> GitHub:
        return GitHub(self.api, PersonalToken(self.api, self.standin.scene.personal_token(login)))

    @property
    def url(self) -> str:
        return f"{self.standin.url}{REPOSITORY}.git"

    def commit(self, branch: str, files: dict[str, str], *, login: str = PERSON, to: str = "") -> str:
        """What a person commits on a branch, from main where it is new, and pushes to a repository."""
        token = self.standin.scene.personal_token(login)
        url = self.standin.url.replace("http://", f"http://x:{token}@") + f"{to or REPOSITORY}.git"
        if not self.clone.exists():
            self.clone.mkdir()
            plain_git(self.clone, "init", "--quiet", "--initial-branch=unused")
        refs = plain_git(self.clone, "ls-remote", url)
        start = branch if f"refs/heads/{branch}" in refs.split() else "main"
        plain_git(self.clone, "fetch", "--quiet", url, start)
        plain_git(self.clone, "checkout", "--quiet", "--detach", "FETCH_HEAD")
        write(self.clone, files)
        plain_git(self.clone, "add", "--all")
        plain_git(self.clone, "commit", "--quiet", "--message", f"change {', '.join(files)}")
        plain_git(self.clone, "push", "--quiet", url, f"HEAD:refs/heads/{branch}")
        return plain_git(self.clone, "rev-parse", "HEAD")

    async def asked(self, times: int, method: str, ending: str) -> None:
        """Assert that there were so many requests whose path has this ending."""
        requests = self.standin.scene.requests()
        found = [one for one in requests if one.method == method and urlsplit(one.path).path.endswith(ending)]
        assert len(found) == times

    async def as_person(self, method: str, path: str, json: Any = None, *, login: str = PERSON) -> Any:
        token = self.standin.scene.personal_token(login)
        return await self.api.ask(f"Bearer {token}", method, path, json=json)


@dataclass
class Canned:
    """A server that gives one answer to everything, and keeps what it was asked."""

    url: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b"{}"
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)


@contextmanager
def canned_server() -> Iterator[Canned]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            canned.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
            self.send_response(canned.status)
            for name, value in canned.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(canned.content)))
            self.end_headers()
            self.wfile.write(canned.content)

        do_GET = do_POST = do_PUT = do_PATCH = answer  # noqa: N815 - the names that http.server calls

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        canned = Canned(f"http://127.0.0.1:{server.server_port}/")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield canned
        finally:
            server.shutdown()
            thread.join()
