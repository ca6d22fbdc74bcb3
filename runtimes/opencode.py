"""OpenCode, without a terminal: `opencode run` with its stream of events.

Its configuration names the file that its credential is in (`{file:…}`), so that its environment, its
command line and that configuration hold no secret; the prompt comes from standard input. It has no means
of its own for a result of a given form. By itself it tries again for a minute or more before it gives up.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from domain.errors import WatchbillError
from domain.run import Outcome
from domain.told import ToldUsage, usage_in
from runtimes import agent, logins
from runtimes.agent import Ending
from runtimes.files import read_object
from runtimes.folder import RunFolder
from runtimes.memory import is_file, is_folder
from runtimes.port import Door, Installed, Job, Launch, RunResult, Verdict
from runtimes.scenes import Noted, Said, Scene, Used, dig, what_of, words
from runtimes.stream import GAP

_PROVIDER = "watchbill"
_COMPATIBLE = "@ai-sdk/openai-compatible"
_TOKEN = "{file:./token}"  # noqa: S105 - the place of one, relative to the configuration
_CONTEXT_TOKENS = 200_000
_STEPS = 1_000_000
_LONGEST = 1 << 20
_QUOTA = "insufficient_quota"
_READ = ("session", "part")
_FIRST_PART = """
SELECT data FROM part WHERE id = (
    SELECT part.id FROM session JOIN part ON part.session_id = session.id WHERE session.id = ?
    ORDER BY part.id LIMIT 1
)
"""
"""What a session begins with, which is its prompt: ids are in the order of their making."""
_REJECTED = "rejected permission"
"""OpenCode's own refusals differ from a tool's failure in their text alone (version 1.18.33)."""


class OpenCode:
    """Its memory is its data folder, a database among others; a session's id is told in every event."""

    name = "opencode"

    def launch(self, job: Job) -> Launch:
        """WatchbillError for a job that is none for an agent."""
        setting = agent.set_up(job, self.name)
        resumed = _remembers(setting.memory, job)
        config = setting.path("opencode.json")
        way = self._way(setting)
        agent.put(config, json.dumps({**_configuration(job, setting.door, way), **setting.policy.settings}))
        env = {
            **setting.env,
            "OPENCODE_CONFIG": str(config),
            **{f"XDG_{kind}_HOME": str(setting.memory / kind.lower()) for kind in ("DATA", "STATE", "CACHE")},
            **{
                f"OPENCODE_DISABLE_{what}": "1"
                for what in ("AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "MODELS_FETCH", "PROJECT_CONFIG")
            },
        }
        arguments = [
            *("run", "--format", "json", "--model", f"{_PROVIDER}/{job.model}"),
            # What it would ask a person (to read outside of the workspace) ends the run where there is nobody.
            "--auto",
            # With a title it does not ask the model for one.
            *(("--session", job.session) if resumed else ("--title", job.task_id)),
            *setting.policy.arguments,
        ]
        return Launch(
            job.run_id,
            ("opencode", *arguments),
            job.workspace,
            env,
            job.timeout,
            idle=agent.IDLE_SECONDS,
            output_limit=agent.OUTPUT_LIMIT,
            stdin=agent.put_prompt(setting, resumed=resumed),
            stream=True,
        )

    def login(self, folder: Path, model: str = "") -> Mapping[str, str]:
        return _login(folder, model)

    def _way(self, setting: agent.Setting) -> dict[str, Any]:
        """How it reaches its model: the package that speaks the API of the model's maker, and its options."""
        job, login = setting.job, setting.job.login
        maker, package = _api_of(job.model)
        if login is None:
            options = {"apiKey": _TOKEN, "headers": {"Authorization": f"Bearer {_TOKEN}"}}
            return {"npm": package, "options": {"baseURL": f"{setting.door.models}/{maker}/v1", **options}}
        address = login.anthropic if maker == "anthropic" else login.openai
        if not address and package == _COMPATIBLE:
            raise WatchbillError(
                f"where the model {job.model} is to be reached is not known; set WATCHBILL_OPENAI_URL on the worker"
            )
        logins.give(setting.memory, self.login(login.folder, job.model))
        options = {"apiKey": f"{{file:{setting.memory / logins.KEY}}}"}
        return {"npm": package, "options": {**({"baseURL": f"{address}/v1"} if address else {}), **options}}

    def judge(self, result: RunResult, folder: RunFolder) -> Verdict:
        session, ending = _read(folder.stream())
        if ending is not None and ending.outcome is Outcome.DONE and (why := agent.refused_at_last(folder)):
            ending = Ending(Outcome.DENIED, why)
        return agent.verdict(result, folder, session, ending)

    def scenes(self, stream: Iterable[Mapping[str, Any]]) -> Sequence[Scene]:
        return _scenes(stream)

    def usage(self, stream: Iterable[Mapping[str, Any]]) -> ToldUsage | None:
        return _usage(stream)

    def installed(self, path: str) -> Installed:
        return agent.program(self.name, path)


def _configuration(job: Job, door: Door, way: Mapping[str, Any]) -> dict[str, Any]:
    model = job.model
    # Without the repository's configuration its instructions are not read either.
    instructions = agent.instructions(job, "AGENTS.md", "CLAUDE.md")
    limit = {"context": _CONTEXT_TOKENS, "output": agent.MAX_OUTPUT_TOKENS}
    provider = {"name": "Watchbill", **way, "models": {model: {"limit": limit}}}
    found: dict[str, Any] = {
        "model": f"{_PROVIDER}/{model}",
        # A run's capability is for one model.
        "small_model": f"{_PROVIDER}/{model}",
        "enabled_providers": [_PROVIDER],
        "provider": {_PROVIDER: provider},
        "share": "disabled",
        "autoupdate": False,
        # Its undo would copy the workspace into a repository of its own at every step.
        "snapshot": False,
        "instructions": [str(instructions)] if instructions else [],
    }
    if door.mcp:
        server = {"type": "remote", "url": door.mcp, "oauth": False, "headers": {"Authorization": f"Bearer {_TOKEN}"}}
        found["mcp"] = {"watchbill": server}
    return found


def _api_of(model: str) -> tuple[str, str]:
    """Whose API the model is asked by, and the package that speaks it."""
    if model.startswith("claude"):
        return "anthropic", "@ai-sdk/anthropic"
    return "openai", "@ai-sdk/openai" if re.match(r"gpt-|o\d", model) else _COMPATIBLE


def _login(folder: Path, model: str) -> Mapping[str, str]:
    """The key for the model's maker. Other kinds of logins are a plugin's to use, and its plugins are off."""
    mend = f"XDG_DATA_HOME={shlex.quote(str(folder))} opencode auth login"
    told = read_object(str(folder / "opencode" / "auth.json")) or {}
    for provider in (_api_of(model)[0],) if model else ("anthropic", "openai"):
        entry = told.get(provider)
        key = entry.get("key") if isinstance(entry, dict) and entry.get("type") == "api" else None
        if isinstance(key, str) and key:
            return {logins.KEY: key}
    whose = f" for {_api_of(model)[0]}" if model else ""
    raise logins.NoLogin(f"opencode has no API key{whose} in {folder}", mend)


def _remembers(memory: Path, job: Job) -> bool:
    folder = memory / "data" / "opencode"
    database = folder / "opencode.db"
    if not agent.is_id(job.session) or not all(map(is_folder, (memory / "data", folder))) or not is_file(database):
        return False
    # What lies beside it is read with it: a pipe there would keep us waiting.
    beside = (folder / f"opencode.db-{kind}" for kind in ("journal", "wal", "shm"))
    if any(os.path.lexists(file) and not is_file(file) for file in beside):
        return False
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            _distrust(connection)
            found = connection.execute(_FIRST_PART, (job.session,)).fetchone()
        first = json.loads(found[0]) if found else None
        return dig(first, "type") == "text" and words(dig(first, "text")).startswith(agent.opening(job))
    except (sqlite3.Error, OSError, ValueError, TypeError, RecursionError):
        # A memory that cannot be read is none: the run begins afresh.
        return False


def _distrust(connection: sqlite3.Connection) -> None:
    """Have a database answer from the columns of two tables alone, in few steps and little memory.

    Its schema is the agent's as well: a table can be a view over an endless query, or call functions that go on
    for ever without a step.
    """

    def allow(action: int, first: str | None, _second: str | None, _database: str | None, source: str | None) -> int:
        reading = action == sqlite3.SQLITE_READ and first in _READ and source is None
        return sqlite3.SQLITE_OK if reading or action == sqlite3.SQLITE_SELECT else sqlite3.SQLITE_DENY

    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    connection.set_progress_handler(lambda: 1, _STEPS)
    connection.set_authorizer(allow)


def _read(stream: Iterable[Mapping[str, Any]]) -> tuple[str, Ending | None]:
    """The session's id if it came to more than an end, and the last end that was told, if nothing came after it."""
    session, refusal, ending = "", "", None
    for said in stream:
        if said.get("type") != "error":
            # An error alone is that of a session that could not begin.
            session = session or str(said.get("sessionID") or "")
        part = said.get("part")
        part = part if isinstance(part, dict) else {}
        match said.get("type"):
            case "error":
                ending = _failed(said.get("error"))
            case "step_finish":
                ending = _finished(str(part.get("reason") or ""), refusal)
            case "tool_use":
                refusal = _refusal_in(part)
                ending = None
            case _:
                ending = None
    return session, ending


def _finished(reason: str, refusal: str) -> Ending:
    """A step that ends in calls of tools is followed by another, unless OpenCode itself breaks off."""
    if reason == "stop":
        return Ending(Outcome.DONE)
    if refusal:
        return Ending(Outcome.DENIED, refusal)
    return Ending(Outcome.CRASHED, f"its last step ended with {reason or 'no reason'}")


def _refusal_in(part: Mapping[str, Any]) -> str:
    state = part.get("state")
    error = str(state.get("error") or "") if isinstance(state, dict) else ""
    return f"{part.get('tool')}: {error}" if _REJECTED in error else ""


def _failed(error: Any) -> Ending:
    data = error.get("data") if isinstance(error, dict) else None
    found = data if isinstance(data, dict) else {}
    reason, status = str(found.get("message") or ""), found.get("statusCode")
    if isinstance(status, int):
        return Ending(agent.outcome_of_status(status), reason)
    if _code_in(reason) == _QUOTA:
        return Ending(Outcome.REFUSED, reason)
    return Ending(Outcome.DROPPED if found.get("isRetryable") else Outcome.CRASHED, reason)


def _code_in(message: str) -> Any:
    """The code in an error that a provider sent in the middle of its answer, which comes as JSON in a text."""
    try:
        told = json.loads(message)
    except (ValueError, RecursionError):
        return None
    return told.get("code") if isinstance(told, dict) else None


def _scenes(stream: Iterable[Mapping[str, Any]]) -> Sequence[Scene]:
    """Events with a part each: a use of a tool is told once, when it is over."""
    scenes: list[Scene] = []
    for said in stream:
        part = said.get("part")
        match said.get("type"):
            case "text":
                scenes.append(Said(words(dig(part, "text"))))
            case "tool_use":
                failed = dig(part, "state", "status") == "error"
                came = words(dig(part, "state", "error" if failed else "output"))
                what = what_of(dig(part, "state", "input"))
                scenes.append(Used(str(dig(part, "tool")), what, came, failed))
            case "step_finish" if dig(part, "reason") != "tool-calls":
                scenes.append(Noted("ended" if dig(part, "reason") == "stop" else f"ended: {dig(part, 'reason')}"))
            case "error":
                told = words(dig(said, "error", "data", "message")) or words(dig(said, "error", "name"))
                scenes.append(Noted(f"failed: {told}"))
    return scenes


def _usage(stream: Iterable[Mapping[str, Any]]) -> ToldUsage | None:
    """Each step tells its own, so that a part of them would be too little."""
    steps: list[ToldUsage] = []
    for said in stream:
        if said.get("type") == GAP:
            return None
        part = said.get("part")
        counts = {kind: dig(part, "tokens", *names) for kind, names in _COUNTS.items()}
        if said.get("type") == "step_finish" and (told := usage_in("opencode", counts, dig(part, "cost"))):
            steps.append(told)
    if not steps:
        return None
    tokens = {kind: sum(step.tokens.get(kind, 0) for step in steps) for kind in _COUNTS}
    # Without a table of prices, as with a model of ours in its configuration, it reckons nothing for everything.
    cost = sum(step.nano_usd or 0 for step in steps) or None
    return ToldUsage("opencode", tokens, cost)


_COUNTS = {
    "input": ("input",),
    "cache_read": ("cache", "read"),
    "cache_write": ("cache", "write"),
    "output": ("output",),
    "reasoning": ("reasoning",),
}
