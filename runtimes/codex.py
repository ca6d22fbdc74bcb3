"""Codex, without a terminal: `codex exec` with its stream of events, in its own sandbox.

Its credential is told by a command of ours (`[model_providers.*.auth]`), so that its environment holds no
secret. The header to our tools has to stand in its configuration, which is of mode 0600 and lies where its
sandbox lets no tool write; the prompt comes from standard input. In the sandbox tools have no network, and
cannot write to `.git`. A login of its own stands where it keeps one.
"""

from __future__ import annotations

import base64
import json
import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from domain.run import Outcome
from domain.told import ToldUsage, usage_in
from runtimes import agent, logins
from runtimes.agent import Ending
from runtimes.files import read_object
from runtimes.folder import RunFolder
from runtimes.memory import files_below, is_whole
from runtimes.port import Installed, Job, Launch, RunResult, Verdict
from runtimes.scenes import Noted, Said, Scene, Used, dig, what_of, words

_SCHEMA = "codex-schema.json"
_STATUS = re.compile(r"\b(?:unexpected|last) status:? (\d{3})\b")

_PHRASES = {
    "stream disconnected before completion": Outcome.DROPPED,
    "Connection failed": Outcome.DROPPED,
    "currently experiencing high demand": Outcome.DROPPED,
    "Quota exceeded": Outcome.REFUSED,
}
"""Codex tells errors in sentences alone; these are those of version 0.171.0 that name no status."""


class Codex:
    """Its memory is its home; a session's id is told in its first event."""

    name = "codex"

    def launch(self, job: Job) -> Launch:
        """WatchbillError for a job that is none for an agent."""
        setting = agent.set_up(job, self.name)
        resumed = _remembers(setting.memory, job)
        if job.login is None:
            agent.put_teller(setting.path("codex-key"), setting.token)
        else:
            logins.give(setting.memory, self.login(job.login.folder, job.model))
        configuration = setting.memory / "config.toml"
        agent.put(configuration, _configuration(setting))
        arguments = ["--json", "--strict-config", "--skip-git-repo-check", *setting.policy.arguments]
        if job.schema and not setting.door.mcp:
            schema = setting.path(_SCHEMA)
            agent.put(schema, json.dumps(job.schema))
            arguments += ["--output-schema", str(schema)]
        return Launch(
            job.run_id,
            ("codex", "exec", *arguments, *(("resume", job.session) if resumed else ()), "-"),
            job.workspace,
            {**setting.env, "CODEX_HOME": str(setting.memory)},
            job.timeout,
            idle=agent.IDLE_SECONDS,
            output_limit=agent.OUTPUT_LIMIT,
            stdin=agent.put_prompt(setting, resumed=resumed),
            stream=True,
            fixed=(configuration,),
        )

    def login(self, folder: Path, model: str = "") -> Mapping[str, str]:
        return _login(folder)

    def judge(self, result: RunResult, folder: RunFolder) -> Verdict:
        session, ending = _read(folder.stream(), wants_json=(folder.path / _SCHEMA).exists())
        if ending is not None and ending.outcome is Outcome.DONE and (why := agent.refused_at_last(folder)):
            ending = Ending(Outcome.DENIED, why)
        return agent.verdict(result, folder, session, ending)

    def scenes(self, stream: Iterable[Mapping[str, Any]]) -> Sequence[Scene]:
        return _scenes(stream)

    def usage(self, stream: Iterable[Mapping[str, Any]]) -> ToldUsage | None:
        return _usage(stream)

    def installed(self, path: str) -> Installed:
        return agent.program(self.name, path)


def _login(folder: Path) -> Mapping[str, str]:
    """A key of the API's, or a subscription's tokens but the one that renews them."""
    mend = f"CODEX_HOME={shlex.quote(str(folder))} codex login"
    told = read_object(str(folder / logins.CODEX)) or {}
    key, tokens = told.get("OPENAI_API_KEY"), told.get("tokens")
    if isinstance(key, str) and key and told.get("auth_mode") != "chatgpt":
        return {logins.CODEX: json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": key})}
    if not isinstance(tokens, dict) or not tokens.get("access_token"):
        raise logins.NoLogin(f"codex has no login in {folder}", mend)
    logins.require_current("codex", folder, _end_of(str(tokens["access_token"])), mend)
    # It would renew what it takes for old, and has nothing to do so with.
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    kept = {name: tokens[name] for name in ("id_token", "access_token", "account_id") if name in tokens}
    kept["refresh_token"] = ""
    return {
        logins.CODEX: json.dumps({"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": kept, "last_refresh": now})
    }


def _end_of(token: str) -> float:
    """When a signed token ends, in seconds since 1970, as it says itself; never for one that does not say."""
    try:
        part = token.split(".")[1]
        ends = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["exp"]
        return float(ends)
    except (ValueError, LookupError, TypeError):
        return math.inf


def _provider(setting: agent.Setting) -> dict[str, dict[str, Any]]:
    """Where its model is, and who says its credential."""
    login = setting.job.login
    address = f"{setting.door.models}/openai" if login is None else login.openai
    provider = {
        "name": "Watchbill",
        **({"base_url": f"{address}/v1"} if address else {}),
        "wire_api": "responses",
        "request_max_retries": 0,
        "stream_max_retries": 0,
    }
    if login is not None:
        return {"model_providers.watchbill": {**provider, "requires_openai_auth": True}}
    auth = {"command": str(setting.path("codex-key"))}
    return {"model_providers.watchbill": provider, "model_providers.watchbill.auth": auth}


def _configuration(setting: agent.Setting) -> str:
    """The whole of config.toml. What looks names up, calls other models or tries again is off."""
    job, door = setting.job, setting.door
    tables: dict[str, dict[str, Any]] = {
        "": {
            "model": job.model,
            "model_provider": "watchbill",
            "approval_policy": "never",
            # Within a cell its own sandbox cannot be made, and would have nothing to add.
            "sandbox_mode": "danger-full-access" if job.confined else "workspace-write",
            "web_search": "disabled",
            "check_for_update_on_startup": False,
            # What the repository tells agents; a reviewer is told nothing by what it is to judge.
            **({"project_doc_max_bytes": 0} if job.reads_only else {}),
            # Not in a keyring of the person's.
            "cli_auth_credentials_store": "file",
        },
        **_provider(setting),
        # Package managers keep their caches in the home.
        "sandbox_workspace_write": {"writable_roots": [setting.env["HOME"]]},
        "analytics": {"enabled": False},
        "feedback": {"enabled": False},
        "history": {"persistence": "none"},
        "agents": {"enabled": False},
        "features": {"apps": False, "plugins": False},
    }
    if door.mcp:
        tables["mcp_servers.watchbill"] = {"url": door.mcp, "default_tools_approval_mode": "approve"}
        tables["mcp_servers.watchbill.http_headers"] = {"Authorization": f"Bearer {door.token}"}
    text = "\n".join(_table(name, values) for name, values in tables.items())
    return f"{text}\n{setting.policy.toml}"


def _table(name: str, values: Mapping[str, Any]) -> str:
    lines = [f"[{name}]"] if name else []
    return "\n".join([*lines, *(f"{key} = {_value(value)}" for key, value in values.items())]) + "\n"


def _value(value: Any) -> str:
    """Texts, truth values, numbers and lists are written alike in JSON and in TOML, but for one control character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _remembers(memory: Path, job: Job) -> bool:
    files = files_below(memory / "sessions", 3) if agent.is_id(job.session) else ()
    its_own = (file for file in files if file.match(f"rollout-*-{job.session}.jsonl"))
    return any(is_whole(file, lambda said: _is_prompt(said, agent.opening(job))) for file in its_own)


def _is_prompt(said: Mapping[str, Any], opening: str) -> bool:
    item = said.get("payload")
    return dig(item, "role") == "user" and words(dig(item, "content")).startswith(opening)


def _read(stream: Iterable[Mapping[str, Any]], *, wants_json: bool) -> tuple[str, Ending | None]:
    """The session's id once a turn has begun in it, and the last end that was told, if nothing came after it."""
    thread, session, answer = "", "", ""
    ending: Ending | None = None
    for said in stream:
        match said.get("type"):
            case "thread.started":
                thread = str(said.get("thread_id") or "")
            case "turn.started":
                session, ending = thread, None
            case "turn.completed":
                ending = _completed(answer, wants_json=wants_json)
            case "turn.failed":
                ending = _failed(said.get("error"))
            case "error":
                # Also said of what is being tried again, which is an end only where nothing follows.
                ending = _failed(said)
            case _:
                answer = _answer_in(said) or answer
                ending = None
    return session, ending


def _answer_in(said: Mapping[str, Any]) -> str:
    item = said.get("item")
    is_answer = said.get("type") == "item.completed" and isinstance(item, dict) and item.get("type") == "agent_message"
    return str(item.get("text") or "") if is_answer and isinstance(item, dict) else ""


def _completed(answer: str, *, wants_json: bool) -> Ending:
    if not wants_json:
        return Ending(Outcome.DONE)
    try:
        return Ending(Outcome.DONE, result=json.loads(answer))
    except (ValueError, RecursionError):
        return Ending(Outcome.SCHEMA_BROKEN, "its answer is no JSON, though a schema was given")


def _failed(error: Any) -> Ending:
    reason = str(error.get("message") or "") if isinstance(error, dict) else ""
    status = _STATUS.search(reason)
    if status:
        return Ending(agent.outcome_of_status(int(status[1])), reason)
    found = (outcome for phrase, outcome in _PHRASES.items() if phrase in reason)
    return Ending(next(found, Outcome.CRASHED), reason)


def _scenes(stream: Iterable[Mapping[str, Any]]) -> Sequence[Scene]:
    """Items, each told when it starts and again when it is complete."""
    scenes: list[Scene] = []
    places: dict[str, int] = {}
    for said in stream:
        item = said.get("item")
        scene = _scene_of(item) if isinstance(item, dict) else _end_in(said)
        if scene is None:
            continue
        id = str(dig(item, "id") or "")
        if id in places:
            scenes[places[id]] = scene
            continue
        if id:
            places[id] = len(scenes)
        scenes.append(scene)
    return scenes


def _scene_of(item: Mapping[str, Any]) -> Scene | None:
    over, failed = item.get("status") != "in_progress", item.get("status") == "failed"
    match item.get("type"):
        case "agent_message":
            return Said(words(item.get("text")))
        case "error":
            return Noted(words(item.get("message")))
        case "command_execution":
            came = words(item.get("aggregated_output"))
            return Used(
                "shell", what_of(item), came if over else None, failed or item.get("exit_code") not in (0, None)
            )
        case "file_change":
            changes = item.get("changes")
            paths = [str(dig(one, "path")) for one in changes] if isinstance(changes, list) else []
            return Used("change", " ".join(paths), "" if over else None, failed)
        case "mcp_tool_call":
            came = words(dig(item, "result", "content")) or words(dig(item, "error", "message"))
            return Used(str(item.get("tool")), what_of(item.get("arguments")), came if over else None, failed)
    return None


def _end_in(said: Mapping[str, Any]) -> Scene | None:
    match said.get("type"):
        case "turn.completed":
            return Noted("ended")
        case "turn.failed":
            return Noted(f"failed: {words(dig(said, 'error', 'message'))}")
        case "error":
            return Noted(words(said.get("message")))
    return None


def _usage(stream: Iterable[Mapping[str, Any]]) -> ToldUsage | None:
    """A turn's end tells of the whole session, with the runs before that it goes on from."""
    found = None
    for said in stream:
        if said.get("type") == "turn.completed":
            found = usage_in("codex", {kind: dig(said, "usage", name) for kind, name in _COUNTS.items()})
    return found


_COUNTS = {
    "input": "input_tokens",
    "cache_read": "cached_input_tokens",
    "cache_write": "cache_write_input_tokens",
    "output": "output_tokens",
    "reasoning": "reasoning_output_tokens",
}
