"""A policy as each CLI takes it: what to write, what to put into its configuration, how to start it.

In all three, a tool is used only when `runtimes/hook.py` has been asked and has not refused. That holds
when the hook cannot run at all: the command that starts it makes a refusal of every failure, and OpenCode
has no permissions but those that our plugin gives once it is loaded. What a hook can be talked around
with is listed in docs/reference/hooks.md.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runtimes.port import PRIVATE, Job

POLICY_FILE = "policy.json"
BRIEF_FILE = "brief.md"
"""What a session is reminded of. Whoever watches over the run writes it anew when there is more to know."""

TOLD = "told"
"""The folder within a run's that the hook writes to. The rest of it no confined agent can change."""

EVENTS_FILE = f"{TOLD}/hook-events.jsonl"
RESULT_FILE = f"{TOLD}/result-submitted"
"""Stands in the run's folder once a result was handed in or a person was asked: by the hook that sees the
tool succeed, or by whoever else knows."""

TIMEOUT_SECONDS = 60
"""How long a CLI waits for the hook. What then happens is the CLI's to decide, so it is far more than is needed."""

ANSWER_SECONDS = 20
"""How long the hook itself may take once it runs: so much less than a CLI waits that a machine may take long to start
it, and what nobody judged in time is refused all the same."""

_HOOK = Path(__file__).with_name("hook.py")
_PLUGIN = Path(__file__).with_name("opencode_plugin.js")
_UNANSWERED = "The policy could not be asked, so this is refused."

_OPENCODE_PLUGIN_API = "1.18.33"
"""OpenCode installs this package beside its configuration before it loads any plugin, ours needs nothing of it."""


@dataclass(frozen=True)
class HookFiles:
    """What a CLI needs to be under a policy.

    `files` are texts by absolute path, to be written with mode 0600, folders made, before the CLI starts.
    `settings` go into its JSON (claude: the settings file; opencode: the configuration), merged key by
    key, and `toml` goes to the end of codex's config.toml. `arguments` go onto its command line.
    opencode must not be started with --pure, which leaves plugins out and with that refuses every tool;
    its files for a quick start are for the configuration below `<folder>/home/.config`.
    """

    files: Mapping[Path, str]
    settings: Mapping[str, Any] = field(default_factory=dict)
    toml: str = ""
    arguments: tuple[str, ...] = ()


def compile_policy(job: Job, cli: str) -> HookFiles:
    """The job's policy and the hooks of its session for `claude`, `codex` or `opencode`; KeyError for others."""
    return _COMPILERS[cli](job)


def _for_claude(job: Job) -> HookFiles:
    return HookFiles(_common_files(job), settings={"hooks": _hooks(job, "claude")})


def _for_codex(job: Job) -> HookFiles:
    hooks = _hooks(job, "codex")
    # Without the flag codex passes over hooks that nobody has reviewed in its own dialogue.
    return HookFiles(_common_files(job), toml=_toml(hooks), arguments=("--dangerously-bypass-hook-trust",))


def _for_opencode(job: Job) -> HookFiles:
    plugin = job.folder / "opencode-policy.js"
    asking = {"program": sys.executable, "arguments": _arguments(job, "opencode"), "unanswered": _UNANSWERED}
    text = f"const ASKING = {json.dumps(asking)}\n{_PLUGIN.read_text(encoding='utf-8')}"
    settings = {"plugin": [plugin.as_uri()], "permission": "deny"}
    return HookFiles({**_common_files(job), plugin: text, **_settled(job)}, settings=settings)


_COMPILERS = {"claude": _for_claude, "codex": _for_codex, "opencode": _for_opencode}


def _common_files(job: Job) -> dict[Path, str]:
    """The policy file, and the brief that a session may need to be reminded of."""
    asked_for = job.schema is not None and job.door is not None and bool(job.door.mcp)
    policy = {
        "tools": job.policy.tools,
        "commands": job.policy.commands,
        "paths": job.policy.paths,
        "workspace": str(job.workspace),
        "private": [str(job.folder / name) for name in PRIVATE],
        "events": str(job.folder / EVENTS_FILE),
        "brief": str(job.folder / BRIEF_FILE) if job.brief else "",
        "result": str(job.folder / RESULT_FILE) if asked_for else "",
        "stops": str(job.folder / TOLD / "stops-refused"),
    }
    brief = {job.folder / BRIEF_FILE: job.reminder or job.brief} if job.brief else {}
    return {job.folder / POLICY_FILE: json.dumps(policy), **brief}


def _arguments(job: Job, cli: str) -> list[str]:
    return ["-I", "-S", str(_HOOK), cli, str(job.folder / POLICY_FILE), str(ANSWER_SECONDS)]


def _hooks(job: Job, cli: str) -> dict[str, Any]:
    """The table of hooks that claude and codex share."""
    asking = shlex.join([sys.executable, *_arguments(job, cli)])
    # Only exit status 2 refuses: a hook that is killed, or whose interpreter is gone, would let the tool pass.
    refusing = f"{asking} || {{ [ $? -eq 2 ] || echo {shlex.quote(_UNANSWERED)} >&2; exit 2; }}"
    # Nothing else may refuse by failing: an agent that cannot end would go on for as long as it is paid for.
    telling = f"{asking} || true"
    return {
        "PreToolUse": [{"matcher": "*", "hooks": [_hook(refusing)]}],
        "PostToolUse": [{"matcher": "*", "hooks": [_hook(telling)]}],
        "SessionStart": [{"hooks": [_hook(telling)]}],
        "Stop": [{"hooks": [_hook(telling)]}],
    }


def _hook(command: str) -> dict[str, Any]:
    return {"type": "command", "command": command, "timeout": TIMEOUT_SECONDS}


def _toml(hooks: Mapping[str, Any]) -> str:
    """Arrays of tables; strings and numbers are written alike in JSON and in TOML."""
    lines = []
    for event, groups in hooks.items():
        for group in groups:
            lines.append(f"[[hooks.{event}]]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in group.items() if key != "hooks"]
            for hook in group["hooks"]:
                lines.append(f"[[hooks.{event}.hooks]]")
                lines += [f"{key} = {json.dumps(value)}" for key, value in hook.items()]
    return "\n".join(lines) + "\n"


def _settled(job: Job) -> dict[Path, str]:
    """Files that make OpenCode take its plugin package for installed.

    Without them it asks npm's registry first, and where there is no network that takes a minute (seen).
    """
    folder = job.folder / "home" / ".config" / "opencode"
    wanted = {"dependencies": {"@opencode-ai/plugin": _OPENCODE_PLUGIN_API}}
    return {
        folder / "package.json": json.dumps(wanted),
        folder / "package-lock.json": json.dumps({"packages": {"": wanted}}),
        folder / "node_modules" / ".package-lock.json": "{}",
    }
