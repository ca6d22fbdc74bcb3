"""Every runtime by its name, which is what a run's row says.

`domain.agents` lists those that a plan may name; `check` runs a plan's checks and is none of them.
"""

from __future__ import annotations

from runtimes.claude import Claude
from runtimes.codex import Codex
from runtimes.opencode import OpenCode
from runtimes.port import Agent, Runtime
from runtimes.shell import Check, Shell

AGENTS: dict[str, Agent] = {"claude": Claude(), "codex": Codex(), "opencode": OpenCode()}

RUNTIMES: dict[str, Runtime] = {"shell": Shell(), **AGENTS, "check": Check()}
