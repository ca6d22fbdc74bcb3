"""A run's folder with a policy compiled into it, and the hook as a CLI asks it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.rules import Policy
from runtimes import hooks
from runtimes.hooks import HookFiles, compile_policy
from runtimes.port import Door, Job

HOOK = Path(hooks.__file__).with_name("hook.py")
POLICY = Policy(("WebFetch", "mcp__*"), ("git push*", "rm -rf *"), (".github/**", "**/*.lock"))
BRIEF = "Load the catalogue lazily."
SCHEMA = {"type": "object"}


@dataclass(frozen=True)
class Answer:
    status: int
    said: dict[str, Any]
    errors: str

    @property
    def refused(self) -> str:
        """Why, or nothing."""
        return str(self.said.get("hookSpecificOutput", {}).get("permissionDecisionReason", ""))

    @property
    def context(self) -> str:
        return str(self.said.get("hookSpecificOutput", {}).get("additionalContext", ""))


class Hooked:
    """One run under a policy. `job` may be given other values."""

    def __init__(self, home: Path, cli: str = "claude", **job: Any) -> None:
        self.cli = cli
        self.folder, self.workspace = home / "run", home / "workspace"
        for path in (self.folder / "home", self.folder / "tmp", self.folder / hooks.TOLD, self.workspace / "src"):
            path.mkdir(parents=True)
        values: dict[str, Any] = {
            "run_id": "run-1", "task_id": "task-1", "task_title": "T", "task_body": "", "timeout": 60,
            "workspace": self.workspace, "folder": self.folder, "policy": POLICY, "brief": BRIEF,
            "schema": SCHEMA, "door": Door("http://127.0.0.1:9/models", "http://127.0.0.1:9/mcp", "token"),
        }  # fmt: skip
        self.job = Job(**{**values, **job})
        self.made = self.write()

    def write(self) -> HookFiles:
        made = compile_policy(self.job, self.cli)
        for path, text in made.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return made

    @property
    def policy_file(self) -> Path:
        return self.folder / hooks.POLICY_FILE

    def ask(self, event: str, **about: Any) -> Answer:
        return self.put(json.dumps({"hook_event_name": event, "cwd": str(self.workspace), **about}).encode())

    def put(self, question: bytes) -> Answer:
        command = [sys.executable, "-I", "-S", str(HOOK), self.cli, str(self.policy_file), "50"]
        done = subprocess.run(command, input=question, capture_output=True, check=False, env={}, cwd="/")
        return Answer(done.returncode, json.loads(done.stdout or b"{}"), done.stderr.decode())

    def use(self, tool: str, **given: Any) -> str:
        """Why the use of a tool is refused, or nothing."""
        answer = self.ask("PreToolUse", tool_name=tool, tool_input=given)
        assert answer.status == 0, answer.errors
        return answer.refused

    def events(self) -> list[dict[str, Any]]:
        file = self.folder / hooks.EVENTS_FILE
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
