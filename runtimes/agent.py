"""What the adapters of agent CLIs share: the files of a launch, the meaning of an end, and how to install one.

An agent reads its prompt from standard input and its credential from a file of mode 0600: neither stands
in its command line or in its environment, which every tool that it starts would inherit.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.errors import NotFound, WatchbillError
from domain.run import EndKind, Outcome
from runtimes.folder import RunFolder
from runtimes.hooks import HookFiles, compile_policy
from runtimes.memory import is_folder
from runtimes.port import Door, Installed, Job, RunResult, Verdict
from runtimes.shell import private_environment, unfinished
from runtimes.stream import is_deep
from runtimes.text import plain

PACKAGES = {
    "claude": ("@anthropic-ai/claude-code", "2.1.332"),
    "codex": ("@openai/codex", "0.171.0"),
    "opencode": ("opencode-ai", "1.18.33"),
}
"""Each CLI's npm package and the version that we are tested with."""

MAX_OUTPUT_TOKENS = 16_384
"""The longest answer that a CLI asks its model for: whoever meters it reserves as much for every call."""

OUTPUT_LIMIT = 8 << 20
"""Bytes of each kind of output that are kept of an agent's run."""

IDLE_SECONDS = 1800.0
"""The longest silence of an agent at work: each CLI has its tools give up, or tell of themselves, much earlier."""

_GO_ON = "Go on with the task where you stopped."
_REASON_LIMIT = 300
_VERSION_SECONDS = 30
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_SUBMITTING = "submit_result"


@dataclass(frozen=True)
class Setting:
    """What every launch begins with. `door` is the job's; `memory` exists; `env` is complete but for the CLI's own."""

    job: Job
    door: Door
    memory: Path
    env: dict[str, str]
    policy: HookFiles

    @property
    def token(self) -> Path:
        return self.job.folder / "token"

    def path(self, name: str) -> Path:
        """A file of the control plane's in the run's folder."""
        return self.job.folder / name


@dataclass(frozen=True)
class Ending:
    """How an agent said that it ended, and what it answered by its CLI's own means."""

    outcome: Outcome
    reason: str = ""
    result: Any = None


def set_up(job: Job, cli: str) -> Setting:
    """Make the run's private directories, and write the credential and what the job's policy needs.

    Raises NotFound where the CLI is not installed, and WatchbillError for a job without a door, a model or a
    brief: it is none for an agent.
    """
    if job.door is None or not job.model or not job.brief:
        raise WatchbillError(f"Run {job.run_id} needs a door, a model and a brief: {cli} cannot work without.")
    if shutil.which(cli, path=job.path) is None:
        raise NotFound(f"there is no {cli} on {job.path}; install it on this host with: {mend_of(cli)}")
    env = private_environment(job)
    memory = job.memory or job.folder / "memory"
    memory.mkdir(mode=0o700, parents=True, exist_ok=True)
    # An agent may have shut us out of it.
    memory.chmod(0o700)
    policy = compile_policy(job, cli)
    setting = Setting(job, job.door, memory, env, policy)
    put(setting.token, job.door.token)
    for path, text in policy.files.items():
        put(path, text)
    return setting


def put(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace a file whole, and whatever else stands in its place: an agent may have left a link there."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    for place in (draft, path):
        if is_folder(place):
            # However much an agent put in there: taking it away is for whoever clears the task away.
            place.rename(place.with_name(f".{place.name}.{secrets.token_hex(4)}"))
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)


def put_teller(path: Path, told: Path) -> None:
    """A program that prints a file, for a CLI that gets its secrets by asking a command."""
    put(path, f"#!/bin/sh\nexec cat {shlex.quote(str(told))}\n", 0o700)


def put_prompt(setting: Setting, *, resumed: bool) -> Path:
    """The file with what the agent is told first: its brief, or the note to one that remembers it."""
    path = setting.path("prompt")
    put(path, (setting.job.note or _GO_ON) if resumed else setting.job.brief)
    return path


def opening(job: Job) -> str:
    """How the prompt begins that a session of this task began with: every brief of it has the same first line."""
    return job.brief.partition("\n")[0]


def instructions(job: Job, *names: str) -> Path | None:
    """The first of these files that the repository has: what it tells agents about itself.

    None for a reviewer: whoever wrote the commit may have written them, and they would speak with our voice.
    """
    files = (job.workspace / name for name in names)
    return None if job.reads_only else next((file for file in files if file.is_file()), None)


def is_id(session: str) -> bool:
    """Whether this can be a session's id: an agent's own words, which go into paths and command lines."""
    return _ID.fullmatch(session) is not None


def outcome_of_status(status: int) -> Outcome:
    """What a model's door means by an HTTP status when the CLI ends for it.

    401 is a credential that is no longer good, which a new run does not share; 408, 429 and 5xx pass.
    """
    if status == 402:
        return Outcome.REFUSED
    if status == 403:
        return Outcome.DENIED
    return Outcome.DROPPED if status in (401, 408, 429) or status >= 500 else Outcome.CRASHED


def short(text: str) -> str:
    """Text of an agent's or a provider's as a reason: plain, in one line, of at most 300 characters."""
    line = " ".join(plain(text.replace("\u2060", "").encode(errors="replace")).split())
    return line if len(line) <= _REASON_LIMIT else line[: _REASON_LIMIT - 1] + "…"


def verdict(result: RunResult, folder: RunFolder, session: str, ending: Ending | None) -> Verdict:
    """What an end means, by how the process ended and by how the agent said that it did.

    No exit status is trusted by itself: 0 without a word of an end is a crash, and so is another one after
    a word of success. An agent that had ended and did not leave has ended.
    """
    session = session if is_id(session) else ""
    told = result.kind is EndKind.EXITED or (result.kind is EndKind.TIMED_OUT and ending is not None)
    if not told:
        end = unfinished(result)
        return Verdict(end.outcome, end.exit_code, end.reason, session)
    if ending is None:
        last = short(folder.text(2048).strip().rpartition("\n")[2])
        reason = result.reason or f"it exited with {result.exit_code} and did not say how it ended"
        return Verdict(Outcome.CRASHED, result.exit_code, f"{reason}: {last}" if last else reason, session)
    if ending.outcome is Outcome.DONE and result.kind is EndKind.EXITED and result.exit_code != 0:
        return Verdict(Outcome.CRASHED, result.exit_code, f"it exited with {result.exit_code}", session)
    if is_deep(ending.result):
        return Verdict(Outcome.SCHEMA_BROKEN, result.exit_code, "its result is nested too deeply", session)
    return Verdict(ending.outcome, result.exit_code, short(ending.reason), session, ending.result)


def refused_at_last(folder: RunFolder) -> str:
    """Why our hook refused the last thing that the agent wanted to do; empty when it went on with something.

    An agent that has handed in its result was kept from nothing that mattered.
    """
    why = ""
    for event in folder.uses():
        kind, tool = event["event"], str(event.get("tool", ""))
        if kind == "used" and tool.endswith(_SUBMITTING):
            return ""
        if kind == "used":
            why = ""
        elif kind == "refused":
            why = f"{tool} was refused: {event.get('why', '')}"
    return why


def mend_of(cli: str) -> str:
    """The command that installs the version of a CLI that we are tested with."""
    package, tested = PACKAGES[cli]
    return f"npm install --global {package}@{tested}"


def program(cli: str, path: str) -> Installed:
    """What there is of a CLI on this PATH. Its program is started once, in a home of its own."""
    _, tested = PACKAGES[cli]
    mend = mend_of(cli)
    found = shutil.which(cli, path=path)
    if found is None:
        return Installed(missing=f"there is no {cli} on {path}", mend=mend)
    with tempfile.TemporaryDirectory() as home:
        try:
            asked = subprocess.run(
                [found, "--version"],
                env={"PATH": path, "HOME": home},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_VERSION_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Installed(missing=f"{found} does not run: {error}", mend=mend)
    version = re.search(rb"\d+\.\d+\.\d+\S*", asked.stdout)
    if asked.returncode != 0 or version is None:
        said = short(asked.stderr.decode(errors="replace"))
        return Installed(missing=f"{found} does not tell its version: {said}", mend=mend)
    known = version[0].decode()
    return Installed(known, mend="" if known == tested else mend)
