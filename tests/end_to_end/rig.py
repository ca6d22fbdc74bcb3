"""A whole installation under test: `watchbill up` with a stand-in GitHub, and what a test does to it.

Everything is a process of its own and is spoken to as its users do: by the `watchbill` command, by
the forge's API, by git, by signals in Temporal, and by kill -9. What holds is read from the store.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil

from domain.identity import plan_id, task_id
from runtimes.files import read_object
from runtimes.processes import MARKER
from tests.end_to_end.forge import Forge
from tests.end_to_end.installation import OWNER


class Rig(Forge):
    """Everything of an installation: commands, facts, forge, Temporal, and the processes of its runs."""

    def until_asked(self, slug: str, kind: str, ordinal: int = 1) -> str:
        """Wait until a task asks a question of this kind and people can see it; the question's id."""
        asked = self.until_state(slug, ordinal, "paused").question_id
        assert self.rows("SELECT kind FROM questions WHERE id = :id", id=asked) == [(kind,)]

        def shown() -> bool:
            tasks = self.command("status", slug, "--json").json["tasks"]
            return any(task["question_id"] == asked for task in tasks)

        self.until(shown, "the question is shown")
        return asked

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

    def until_ended(self, slug: str, processes: Iterable[psutil.Process], ordinal: int = 1) -> None:
        """Wait for the recorded end of a task's first run: five seconds later none of these processes is left."""
        first = f"{task_id(plan_id(OWNER, slug), ordinal)}-author-1"
        live = "SELECT id FROM runs WHERE id = :run AND state IN ('starting', 'running')"
        self.until(lambda: not self.rows(live, run=first), "the end of the run is recorded", slug=slug)
        watched = list(processes)
        self.until(lambda: not any(one.is_running() for one in watched), "nothing of the run is left", patience=5)

    def supervisor(self, slug: str, ordinal: int = 1) -> int:
        """The pid of the supervisor of a task's newest run that lives."""
        run = self.until(lambda: self._live_run(slug, ordinal), "a run lives")
        state = self.until(lambda: read_object(f"{self.home}/runs/{run}/state.json"), "the run has an agent")
        return int(state["supervisor"][0])

    def _live_run(self, slug: str, ordinal: int) -> str | None:
        task = task_id(plan_id(OWNER, slug), ordinal)
        found = self.rows("SELECT id FROM runs WHERE task_id = :task AND state = 'running'", task=task)
        return str(found[0][0]) if found else None

    def assert_sound(self) -> None:
        """Nothing of any run is left, and the audit of everything finds nothing."""
        self.until(lambda: not self.run_processes(), f"nothing of a run is left: {self.run_processes()}", 20)
        said = self.command("audit", "--json", expect=None)
        assert (said.code, said.json["findings"]) == (0, []), said
