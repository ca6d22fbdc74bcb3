"""What each process of an installation is told: no secret goes to one that has no use for it, not even its file's name.

What a door reads stands in its own settings, which nothing here may load; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping

_OF_ONE = {
    "worker": ("GITHUB_", "SEAL_", "CAPABILITY_", "RELAY", "ADOPT", "AGENT_PATH"),
    "webhooks": ("WEBHOOK",),
    "relay": ("RELAY_", "ANTHROPIC_", "OPENAI_", "GEMINI_", "MODELS", "PRICES"),
}
"""How the names of settings begin, after `WATCHBILL_`, that are one door's alone."""

_PREFIX = "WATCHBILL_"

_DRAIN = f"{_PREFIX}RELAY_DRAIN"
USUAL_DRAIN = 60.0
"""Seconds that a relay lets streams go on for where nothing else is said."""

AFTER_DRAIN = 25.0
"""Seconds that a relay may take after that: 5 until calls that were broken off have told what they came to, 15 to
write it down, and some to spare."""


def told_to(door: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Of an environment what this door is told: all but what is another's alone."""
    return {name: value for name, value in environment.items() if _owner(name) in (door, "")}


def without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """What a process inherits that is no door of ours."""
    return {name: value for name, value in environment.items() if not name.startswith(_PREFIX)}


def relay_stops_within(environment: Mapping[str, str]) -> float:
    """Seconds that a relay in this environment may take to stop; it says itself what is wrong with its settings."""
    told = environment.get(_DRAIN, "")
    return (float(told) if told.isascii() and told.isdigit() else USUAL_DRAIN) + AFTER_DRAIN


def _owner(name: str) -> str:
    """Whose a setting is alone; empty for what several doors read, or anybody. The longest beginning decides."""
    if not name.startswith(_PREFIX):
        return ""
    setting = name.removeprefix(_PREFIX)
    begins = [(len(begin), door) for door, all in _OF_ONE.items() for begin in all if setting.startswith(begin)]
    return max(begins, default=(0, ""))[1]
