"""A whole installation under test: `watchbill up` with a stand-in GitHub, and what a test does to it.

Everything is a process of its own and is spoken to as its users do: by the `watchbill` command, by
the forge's API, by git, by signals in Temporal, and by kill -9. What holds is read from the store,
which costs nothing and disturbs nobody.
"""

from __future__ import annotations

import base64
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
from sqlalchemy import Connection, text

from domain.identity import branch_of, plan_id, task_id
from domain.view import PlanView, TaskView
from runtimes.files import read_object
from runtimes.processes import MARKER
from starter.__main__ import run
from starter.local import addresses
from starter.local.addresses import Addresses
from starter.local.service import leashed
from store.database import Store, open_store
from store.evidence import Evidence, content, evidence_of
from store.receipts import receipts_of
from store.views import plan_view
from tests.end_to_end.plans import REPOSITORY, Box, document

WATCHBILL = str(Path(sys.executable).with_name("watchbill"))
OWNER = "local"

PATIENCE = 100.0
"""Seconds after which a condition that does not come about is a failure; no test waits for them to pass."""

SETTINGS = {
    "WATCHBILL_INTERVAL": "1",
    "WATCHBILL_GITHUB_PAUSE": "0",
    "WATCHBILL_SLOTS": "8",
    # Agents of these tests tell where they are, and wait, by way of files that lie outside of their workspaces.
    "WATCHBILL_CONFINE": "off",
}


@dataclass(frozen=True)
class Done:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Rig:
    """One installation in `folder`, whose forge has a copy of one small repository. `settings` add to ours."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder, self.home = folder, folder / "home"
        self.settings = {**SETTINGS, **settings}
        self._up: subprocess.Popen[str] | None = None
        self._store: Store | None = None
        self._token = ""

    # The installation.

    def start(self) -> None:
        """Bring everything up. Where something else was faster to a port, it is tried again."""
        source = self.folder / "source"
        if not source.exists():
            source.mkdir(parents=True)
            (source / "README.md").write_text("# shop\n")
        for attempts_left in (2, 1, 0):
            with (self.folder / "up.log").open("ab") as log:
                self._up = subprocess.Popen(
                    leashed([WATCHBILL, "up", f"--stand-in={REPOSITORY}={source}"]),
                    cwd=self.folder, env=self.environment, stdout=log, stderr=log, text=True,
                )  # fmt: skip
            self.until(lambda: addresses.read(self.home) or self._up.poll() is not None, "everything is up")
            if self._up.poll() is None:
                return
            assert attempts_left, (self.folder / "up.log").read_text()

    def stop(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
        if self._up is not None:
            self._up.terminate()
            self._up.wait(60)
            self._up = None

    @property
    def addresses(self) -> Addresses:
        found = addresses.read(self.home)
        assert found is not None, "nothing is up"
        return found

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
        told = {"HOME": str(self.folder), "WATCHBILL_HOME": str(self.home), "WATCHBILL_OWNER": OWNER}
        return {**inherited, **told, **self.settings}

    def pid(self, part: str) -> int:
        """The process id of a part (`temporal`, `stand-in`, `worker` or `webhooks`), once it lives."""
        return self.until(lambda: self._living(part), f"{part} lives")

    def kill(self, part: str) -> None:
        """kill -9 of a part, and wait for the one that follows it."""
        pid = self.pid(part)
        os.kill(pid, signal.SIGKILL)
        self.until(lambda: self._living(part) not in (None, pid), f"{part} is started again")

    def _living(self, part: str) -> int | None:
        assert self._up is not None
        sign = {"temporal": "start-dev", "stand-in": "rehearsal"}.get(part, part)
        for child in psutil.Process(self._up.pid).children():
            try:
                if child.status() != psutil.STATUS_ZOMBIE and sign in child.cmdline():
                    return child.pid
            except psutil.NoSuchProcess:
                continue
        return None

    # Commands.

    def command(self, *arguments: object, expect: int | None = 0) -> Done:
        """Run one command, in this process but as its users do, where `expect` says how it exits."""
        out, err = io.StringIO(), io.StringIO()
        with told(self.environment), redirect_stdout(out), redirect_stderr(err):
            code = int(run([str(argument) for argument in arguments]))
        assert expect is None or code == expect, (arguments, code, out.getvalue(), err.getvalue())
        return Done(code, out.getvalue(), err.getvalue())

    def begin(self, *arguments: object, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start one command as a process of its own, and do not wait for it."""
        return subprocess.Popen(
            leashed([WATCHBILL, *map(str, arguments)]),
            cwd=self.folder,
            env=environment or self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def write(self, slug: str, *boxes: Box | str, **front: str) -> Path:
        """Write a plan's document; see `document`."""
        path = self.folder / f"{slug}.md"
        path.write_text(document(slug, *boxes, **front))
        return path

    def submit(self, slug: str, *boxes: Box | str, **front: str) -> Path:
        """Write, publish and confirm a plan."""
        path = self.write(slug, *boxes, **front)
        self.command("submit", path, "--confirm")
        return path

    # What holds.

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        if self._store is None:
            self._store = open_store(f"sqlite:///{self.home / 'graph.db'}")
        with self._store.read() as connection:
            yield connection

    def view(self, slug: str) -> PlanView:
        with self.reading() as connection:
            view = plan_view(connection, plan_id(OWNER, slug))
        assert view is not None, f"{slug} was never published"
        return view

    def task(self, slug: str, ordinal: int = 1) -> TaskView:
        return next(task for task in self.view(slug).tasks if task.ordinal == ordinal)

    def rows(self, sql: str, **values: object) -> list[Any]:
        with self.reading() as connection:
            return list(connection.execute(text(sql), values))

    def evidence(self, slug: str, kind: str) -> list[tuple[Evidence, str]]:
        """The evidence of this kind, each with what it holds."""
        with self.reading() as connection:
            found = [one for one in evidence_of(connection, plan_id=plan_id(OWNER, slug)) if one.kind == kind]
            return [(one, content(connection, one.digest).decode()) for one in found]

    def receipts(self, slug: str) -> list[Any]:
        with self.reading() as connection:
            return list(receipts_of(connection, plan_id(OWNER, slug), 0, 1000))

    def until(self, condition: Callable[[], Any], what: str, patience: float = PATIENCE, slug: str = "") -> Any:
        """Wait until the condition holds, and answer what it answered; a failure tells the plan's story."""
        deadline = time.monotonic() + patience
        while not (found := condition()):
            assert time.monotonic() < deadline, f"still not: {what}\n{self._story(slug)}"
            time.sleep(0.05)
        return found

    def until_state(self, slug: str, ordinal: int, *states: str) -> TaskView:
        """Wait for one of these states of a task; a question that nobody expects fails at once."""

        def reached() -> TaskView | None:
            task = self.task(slug, ordinal)
            unexpected = task.question_id and "paused" not in states
            assert not unexpected, task
            return task if task.state in states else None

        return self.until(reached, f"{slug}#{ordinal} is {' or '.join(states)}", slug=slug)

    def until_completed(self, slug: str) -> PlanView:
        """Wait for the plan's end; a question that was not open before fails at once."""
        known = {task.question_id for task in self.view(slug).tasks}

        def completed() -> PlanView | None:
            view = self.view(slug)
            assert {task.question_id for task in view.tasks} <= {*known, ""}, view.tasks
            return view if view.state == "completed" else None

        return self.until(completed, f"{slug} is completed", slug=slug)

    def until_asked(self, slug: str, kind: str, ordinal: int = 1) -> str:
        """Wait until a task asks a question of this kind and people can see it; the question's id."""
        asked = self.until_state(slug, ordinal, "paused").question_id
        assert self.rows("SELECT kind FROM questions WHERE id = :id", id=asked) == [(kind,)]

        def shown() -> bool:
            tasks = self.command("status", slug, "--json").json["tasks"]
            return any(task["question_id"] == asked for task in tasks)

        self.until(shown, "the question is shown")
        return asked

    def _story(self, slug: str) -> str:
        return "\n".join(line.text for line in self.view(slug).story) if slug else ""

    # The forge.

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

    # Temporal.

    def temporal(self, *arguments: str) -> str:
        """Temporal's own command."""
        program = Path(sys.executable).with_name("temporal")
        done = subprocess.run(
            [str(program), *arguments, "--address", self.addresses.temporal],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def signal(self, slug: str, name: str, word: Mapping[str, Any]) -> None:
        """Send a plan's workflow a signal, as a webhook or the Temporal UI does."""
        workflow = f"plan-{plan_id(OWNER, slug)}"
        self.temporal("workflow", "signal", "--workflow-id", workflow, "--name", name, "--input", json.dumps(word))

    # Processes.

    def run_processes(self) -> list[psutil.Process]:
        """Whatever bears the marker of a run of this home, works in a workspace, or supervises a run."""
        specs = [read_object(str(spec)) for spec in self.home.glob("runs/*/spec.json")]
        markers = {spec["env"][MARKER] for spec in specs if spec}
        found = []
        for process in psutil.process_iter():
            try:
                bears = process.environ().get(MARKER) in markers
                works = process.cwd().startswith(f"{self.home}/workspaces/")
                supervises = any(word.startswith(f"{self.home}/runs/") for word in process.cmdline())
            except psutil.Error:
                continue
            if bears or works or supervises:
                found.append(process)
        return found

    def supervisor(self, slug: str, ordinal: int = 1) -> int:
        """The pid of the supervisor of a task's newest run that lives."""
        run = self.until(lambda: self._live_run(slug, ordinal), "a run lives")
        state = self.until(lambda: read_object(f"{self.home}/runs/{run}/state.json"), "the run has an agent")
        return int(state["supervisor"][0])

    def _live_run(self, slug: str, ordinal: int) -> str | None:
        task = task_id(plan_id(OWNER, slug), ordinal)
        found = self.rows("SELECT id FROM runs WHERE task_id = :task AND state = 'running'", task=task)
        return str(found[0][0]) if found else None

    # In the end.

    def assert_sound(self) -> None:
        """Nothing of any run is left, and the audit of everything finds nothing."""
        self.until(lambda: not self.run_processes(), f"nothing of a run is left: {self.run_processes()}", 20)
        said = self.command("audit", "--json", expect=None)
        assert (said.code, said.json["findings"]) == (0, []), said


@contextmanager
def told(environment: Mapping[str, str]) -> Iterator[None]:
    """This process's environment is that one, and nothing else, while it lasts."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
