"""The forge of an installation: spoken to by its API and by git, as people do."""

from __future__ import annotations

import base64
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import httpx

from domain.identity import branch_of, plan_id
from tests.end_to_end.facts import Facts
from tests.end_to_end.installation import OWNER
from tests.end_to_end.plans import REPOSITORY


class Forge(Facts):
    """An installation whose forge has a person, ada, who may push."""

    def __init__(self, folder: Path, **settings: str) -> None:
        super().__init__(folder, **settings)
        self._token = ""

    def forge(self, method: str, path: str, /, **body: Any) -> Any:
        """Ask the forge's API as ada, who may push; `path` begins below the API's address."""
        headers = {"authorization": f"Bearer {self._adas_token()}"}
        answer = httpx.request(method, f"{self.addresses.github}/{path}", headers=headers, json=body or None)
        assert answer.is_success, (path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def scene(self, method: str, route: str, /, **body: Any) -> Any:
        """Set something up at the stand-in."""
        token = (self.home / "rehearsal" / "setup-token").read_text()
        url = f"{self.addresses.github}/_rehearsal/{route}"
        answer = httpx.request(method, url, headers={"authorization": f"Bearer {token}"}, json=body or None, timeout=60)
        assert answer.is_success, (route, answer.text)
        return answer.json()

    def model(self, **script: Any) -> None:
        """Tell the stand-in's model what to say, and which faults to show; without a word, to act as it always does.

        What it was asked before is forgotten.
        """
        self._models("DELETE", "requests")
        self._models("POST", "script", {"steps": [], **script})

    def asked_of_model(self) -> list[Any]:
        """What the model was asked since it was told."""
        found: list[Any] = self._models("GET", "requests").json()
        return found

    def _models(self, method: str, route: str, body: Any = None) -> httpx.Response:
        token = (self.home / "rehearsal" / "setup-token").read_text()
        url = f"{self.addresses.github}/models/{route}"
        answer = httpx.request(method, url, headers={"authorization": f"Bearer {token}"}, json=body)
        assert answer.is_success, (route, answer.text)
        return answer

    def story(self, slug: str) -> str:
        """What is known of a plan, and which webhooks its receiver did not take."""
        with sqlite3.connect(self.home / "rehearsal" / "github.sqlite3", timeout=30) as state:
            lost = state.execute("SELECT event, action, status FROM delivery WHERE status_code >= 300").fetchall()
        return "\n".join((super().story(slug), *(f"not delivered: {delivery}" for delivery in lost)))

    def _adas_token(self) -> str:
        if not self._token:
            self.scene("POST", "collaborators", name=REPOSITORY, login="ada", permission="write")
            self._token = self.scene("POST", "tokens", login="ada")["token"]
        return self._token

    def pulls(self, slug: str, repository: str = REPOSITORY) -> list[dict[str, Any]]:
        """Every pull request from a branch of this plan, oldest first, open or not."""
        found = self.forge("GET", f"repos/{repository}/pulls?state=all&per_page=100")
        branch = branch_of(plan_id(OWNER, slug))
        ours = [pull for pull in found if pull["head"]["ref"].startswith(f"{branch}-")]
        return sorted(ours, key=lambda pull: pull["number"])

    def branches(self, slug: str, repository: str = REPOSITORY) -> list[str]:
        found = self.forge("GET", f"repos/{repository}/branches?per_page=100")
        branch = branch_of(plan_id(OWNER, slug))
        return [each["name"] for each in found if each["name"].startswith(f"{branch}-")]

    def assert_untouched(self, slug: str, repository: str = REPOSITORY) -> None:
        """The forge has no branch and no pull request of this plan."""
        assert not self.pulls(slug, repository)
        assert not self.branches(slug, repository)

    def pull_number(self, slug: str, ordinal: int = 1) -> int:
        return int(self.task(slug, ordinal).pull_url.rsplit("/", 1)[1])

    def git(self, *arguments: str, repository: str = REPOSITORY, cwd: Path | None = None) -> str:
        """git as ada; `{url}` in an argument becomes the repository's address."""
        header = base64.b64encode(f"ada:{self._adas_token()}".encode()).decode()
        url = f"{self.addresses.github}/{repository}.git"
        identity = {f"GIT_{who}_{what}": f"ada{at}" for who in ("AUTHOR", "COMMITTER")
                    for what, at in (("NAME", ""), ("EMAIL", "@example.org"))}  # fmt: skip
        done = subprocess.run(
            ["git", "-c", f"http.extraHeader=Authorization: Basic {header}",
             *(argument.replace("{url}", url) for argument in arguments)],
            cwd=cwd or self.folder, env={**self.environment, **identity},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def file(self, path: str, ref: str = "main", repository: str = REPOSITORY) -> str | None:
        """What a file holds at the forge; None where there is none."""
        bare = self.bare(repository)
        done = subprocess.run(
            ["git", f"--git-dir={bare}", "show", f"{ref}:{path}"], capture_output=True, text=True, check=False
        )
        return done.stdout if done.returncode == 0 else None

    def bare(self, repository: str) -> Path:
        """The forge's own repository, on the disk."""
        number = self.forge("GET", f"repos/{repository}")["id"]
        return self.home / "rehearsal" / "repositories" / f"{number}.git"
