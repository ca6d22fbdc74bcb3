"""Who can work on a task: the runtimes that a plan may name, and the models that they use by themselves.

A vendor is the maker of a model, not of the CLI that uses it: opencode with a Claude model is Anthropic's.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Agent:
    """A runtime with a model. `model` is what it uses where a plan names none; empty: a plan has to name one."""

    name: str
    model: str = ""


AGENTS = {
    agent.name: agent
    for agent in (
        Agent("claude", "claude-sonnet-4-6"),
        Agent("codex", "gpt-5.5"),
        Agent("opencode"),
    )
}

RUNTIMES = ("shell", *AGENTS)
"""Every runtime that a plan may name. `shell` has no model and is no agent."""


def model_of(runtime: str, named: str) -> str:
    """The model that a run uses, from what the plan names; empty for a runtime without one."""
    agent = AGENTS.get(runtime)
    return named or agent.model if agent else ""
