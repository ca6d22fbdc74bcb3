"""Claude Code, without a terminal: `claude --print` with its stream of messages.

It asks a program of ours for its credential and one for the header to our tools, so that neither its
environment nor its command line holds a secret; the prompt comes from standard input. A login that is no key stands
where it keeps its own.
"""

from __future__ import annotations

import json
import os
import shlex
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
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

_TOOLS = "Bash,Edit,Glob,Grep,NotebookEdit,Read,TaskCreate,TaskGet,TaskList,TaskUpdate,Write"
"""What works on files. Left out is what reaches other addresses or other models, and what waits for another day."""


class Claude:
    """Its memory is its configuration folder; a session's id is ours to choose."""

    name = "claude"

    def launch(self, job: Job) -> Launch:
        """WatchbillError for a job that is none for an agent."""
        setting = agent.set_up(job, self.name)
        resumed = _remembers(setting.memory, job)
        # Without the repository's settings its instructions are not read either.
        instructions = agent.instructions(job, "CLAUDE.md", "AGENTS.md")
        settings = setting.path("claude-settings.json")
        asking, address = self._way(setting)
        agent.put(settings, json.dumps({**asking, **setting.policy.settings}))
        arguments = [
            *("--print", "--output-format", "stream-json", "--verbose"),
            *("--model", job.model, "--tools", _TOOLS, "--dangerously-skip-permissions"),
            # Nothing of the repository's or the person's settings; ours are added to none.
            *("--setting-sources", "", "--settings", str(settings)),
            *(("--resume", job.session) if resumed else ("--session-id", _fresh_id(job, setting.memory))),
            *(("--append-system-prompt-file", str(instructions)) if instructions else ()),
            *_our_tools(setting),
            *setting.policy.arguments,
        ]
        env = {
            **setting.env,
            "CLAUDE_CONFIG_DIR": str(setting.memory),
            **({"ANTHROPIC_BASE_URL": address} if address else {}),
            # A run's capability is for one model; small errands are run on this one unless told otherwise.
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": job.model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(agent.MAX_OUTPUT_TOKENS),
            # Trying again is the control plane's.
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "ENABLE_TOOL_SEARCH": "false",
        }
        if os.geteuid() == 0:
            # Without this it refuses to work as root.
            env["IS_SANDBOX"] = "1"
        return Launch(
            job.run_id,
            ("claude", *arguments),
            job.workspace,
            env,
            job.timeout,
            idle=agent.IDLE_SECONDS,
            output_limit=agent.OUTPUT_LIMIT,
            stdin=agent.put_prompt(setting, resumed=resumed),
            stream=True,
        )

    def login(self, folder: Path, model: str = "") -> Mapping[str, str]:
        return _login(folder)

    def _way(self, setting: agent.Setting) -> tuple[Mapping[str, str], str]:
        """How it gets its credential, as settings, and where its model is; empty for its own address."""
        login, helper = setting.job.login, setting.path("claude-key")
        asking = {"apiKeyHelper": str(helper)}
        if login is None:
            agent.put_teller(helper, setting.token)
            return asking, f"{setting.door.models}/anthropic"
        given = self.login(login.folder, setting.job.model)
        logins.give(setting.memory, given)
        if logins.KEY not in given:
            return {}, login.anthropic
        agent.put_teller(helper, setting.memory / logins.KEY)
        return asking, login.anthropic

    def judge(self, result: RunResult, folder: RunFolder) -> Verdict:
        session, ending = _read(folder.stream())
        return agent.verdict(result, folder, session, ending)

    def scenes(self, stream: Iterable[Mapping[str, Any]]) -> Sequence[Scene]:
        return _scenes(stream)

    def usage(self, stream: Iterable[Mapping[str, Any]]) -> ToldUsage | None:
        return _usage(stream)

    def installed(self, path: str) -> Installed:
        return agent.program(self.name, path)


def _login(folder: Path) -> Mapping[str, str]:
    """A key or a token that a person put there, or what `/login` left: a subscription's, or a key of its own."""
    mend = f"CLAUDE_CONFIG_DIR={shlex.quote(str(folder))} claude /login"
    if key := logins.line_in(folder / "api-key"):
        return {logins.KEY: key}
    if token := logins.line_in(folder / "setup-token"):
        return _subscription({"accessToken": token, "scopes": ["user:inference"]})
    told = (read_object(str(folder / logins.CLAUDE)) or {}).get("claudeAiOauth")
    if isinstance(told, dict) and isinstance(told.get("accessToken"), str) and told["accessToken"]:
        ends = told.get("expiresAt")
        if isinstance(ends, int | float):
            logins.require_current("claude", folder, ends / 1000, mend)
        return _subscription({name: value for name, value in told.items() if name in _KEPT})
    console = (read_object(str(folder / ".claude.json")) or {}).get("primaryApiKey")
    if isinstance(console, str) and console:
        return {logins.KEY: console}
    raise logins.NoLogin(f"claude has no login in {folder}", mend)


_KEPT = ("accessToken", "expiresAt", "scopes", "subscriptionType", "rateLimitTier")
"""What of a subscription's login a run is given. The other is what renews it."""


def _subscription(told: Mapping[str, Any]) -> Mapping[str, str]:
    return {logins.CLAUDE: json.dumps({"claudeAiOauth": {"expiresAt": None, **told, "refreshToken": None}})}


def _our_tools(setting: agent.Setting) -> tuple[str, ...]:
    """Our tools over MCP where the door has them; without them the result comes by Claude's own means."""
    job, url = setting.job, setting.door.mcp
    if not url:
        schema = ("--json-schema", json.dumps(job.schema)) if job.schema else ()
        return ("--strict-mcp-config", *schema)
    names = ("claude-headers.json", "claude-headers", "claude-mcp.json")
    headers, helper, config = (setting.path(name) for name in names)
    agent.put(headers, json.dumps({"Authorization": f"Bearer {setting.door.token}"}))
    agent.put_teller(helper, headers)
    server = {"type": "http", "url": url, "headersHelper": str(helper)}
    agent.put(config, json.dumps({"mcpServers": {"watchbill": server}}))
    return ("--strict-mcp-config", "--mcp-config", str(config))


def _remembers(memory: Path, job: Job) -> bool:
    files = files_below(memory / "projects", 1) if agent.is_id(job.session) else ()
    its_own = (file for file in files if file.name == f"{job.session}.jsonl")
    return any(is_whole(file, lambda said: _is_prompt(said, agent.opening(job))) for file in its_own)


def _is_prompt(said: Mapping[str, Any], opening: str) -> bool:
    return said.get("type") == "user" and words(dig(said, "message", "content")).startswith(opening)


def _fresh_id(job: Job, memory: Path) -> str:
    """The same for every launch of a run, and never one that is taken: Claude ends at once over such a one."""
    taken = {file.name for file in files_below(memory / "projects", 1)}
    ids = (str(uuid.uuid5(uuid.NAMESPACE_URL, f"watchbill:{job.run_id}:{number}")) for number in count())
    # An agent can take many of them in advance, but no more than are looked at.
    return next(id for id in ids if f"{id}.jsonl" not in taken)


def _read(stream: Iterable[Mapping[str, Any]]) -> tuple[str, Ending | None]:
    """The session's id if it came to more than an end, and the last end that was told, if nothing came after it."""
    session, last_tool, ending = "", "", None
    for said in stream:
        if said.get("type") != "result":
            # A result alone is that of a session that could not begin.
            session = session or str(said.get("session_id") or "")
        match said.get("type"):
            case "result":
                ending = _ending(said, last_tool)
            case "assistant":
                last_tool = _tool_in(said) or last_tool
                ending = None
    return session, ending


def _tool_in(said: Mapping[str, Any]) -> str:
    """The id of the last use of a tool in a message."""
    message = said.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else []
    ids = [block.get("id") for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"]
    return str(ids[-1]) if ids else ""


def _ending(said: Mapping[str, Any], last_tool: str) -> Ending:
    reason, status, kind = str(said.get("result") or ""), said.get("api_error_status"), said.get("subtype")
    if said.get("terminal_reason") == "api_error" or isinstance(status, int):
        # Without a status the connection failed, or what came over it was no answer.
        outcome = agent.outcome_of_status(status) if isinstance(status, int) else Outcome.DROPPED
        return Ending(outcome, reason)
    if kind == "error_max_structured_output_retries":
        return Ending(Outcome.NO_RESULT, "it gave no result of the form that was asked for")
    if kind != "success" or said.get("is_error"):
        return Ending(Outcome.CRASHED, reason or str(kind))
    if denied := _denial(said, last_tool):
        return Ending(Outcome.DENIED, f"{denied} was refused")
    return Ending(Outcome.DONE, result=said.get("structured_output"))


def _denial(said: Mapping[str, Any], last_tool: str) -> str:
    """The tool whose refusal was the last thing to happen; one that other work followed is no end."""
    denials = said.get("permission_denials")
    found = [denial for denial in denials if isinstance(denial, dict)] if isinstance(denials, list) else []
    return next((str(denial.get("tool_name")) for denial in found if denial.get("tool_use_id") == last_tool), "")


def _scenes(stream: Iterable[Mapping[str, Any]]) -> Sequence[Scene]:
    """Messages of blocks: a result names the use that it is of."""
    scenes: list[Scene] = []
    uses: dict[str, int] = {}
    for said in stream:
        if said.get("type") == "result":
            told = str(said.get("result") or said.get("subtype") or "")
            scenes.append(Noted(f"failed: {told}" if said.get("is_error") else "ended"))
        content = dig(said, "message", "content")
        for block in content if isinstance(content, list) else ():
            match dig(block, "type"):
                case "text" if said.get("type") == "assistant":
                    scenes.append(Said(words(block.get("text"))))
                case "tool_use":
                    uses[str(block.get("id"))] = len(scenes)
                    scenes.append(Used(str(block.get("name")), what_of(block.get("input"))))
                case "tool_result" if (at := uses.get(str(block.get("tool_use_id")))) is not None:
                    came = words(block.get("content"))
                    use = scenes[at]
                    assert isinstance(use, Used)
                    scenes[at] = replace(use, outcome=came, failed=bool(block.get("is_error")))
    return scenes


def _usage(stream: Iterable[Mapping[str, Any]]) -> ToldUsage | None:
    """Its last message tells all that this process used, of whichever session."""
    found = None
    for said in stream:
        if said.get("type") == "result":
            told = {kind: dig(said, "usage", name) for kind, name in _COUNTS.items()}
            found = usage_in("claude", told, said.get("total_cost_usd"))
    return found


_COUNTS = {
    "input": "input_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
    "output": "output_tokens",
}
