"""What each process of an installation is told: no secret goes to one that has no use for it, not even its file's name.

What a door reads stands in its own settings, which nothing here may load; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

_OF_SOME = {
    "worker": (
        *("GITHUB_", "SEAL_", "CAPABILITY_", "RELAY", "ADOPT", "AGENT_PATH", "LOGINS"),
        *("ANTHROPIC_URL", "OPENAI_URL", "MODELS"),
    ),
    "webhooks": ("WEBHOOK",),
    "relay": ("RELAY_", "ANTHROPIC_", "OPENAI_", "GEMINI_", "ANTHROPIC_URL", "OPENAI_URL", "MODELS", "PRICES"),
}
"""How the names of settings begin, after `WATCHBILL_`, that are these doors' alone."""

_PREFIX = "WATCHBILL_"

_DRAIN = f"{_PREFIX}RELAY_DRAIN"
USUAL_DRAIN = 60.0
"""Seconds that a relay lets streams go on for where nothing else is said."""

AFTER_DRAIN = 25.0
"""Seconds that a relay may take after that: 5 until calls that were broken off have told what they came to, 15 to
write it down, and some to spare."""


def told_to(door: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Of an environment what this door is told: all but what is another's alone."""
    return {name: value for name, value in environment.items() if door in _owners(name)}


def without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """What a process inherits that is no door of ours."""
    return {name: value for name, value in environment.items() if not name.startswith(_PREFIX)}


def relay_stops_within(environment: Mapping[str, str]) -> float:
    """Seconds that a relay in this environment may take to stop; it says itself what is wrong with its settings."""
    told = environment.get(_DRAIN, "")
    return (float(told) if told.isascii() and told.isdigit() else USUAL_DRAIN) + AFTER_DRAIN


def _owners(name: str) -> Collection[str]:
    """Which doors a setting is for, all of them unless it is some doors' alone. The longest beginning decides."""
    setting = name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else ""
    begins = [(len(begin), door) for door, all in _OF_SOME.items() for begin in all if setting.startswith(begin)]
    longest = max(begins, default=(0, ""))[0]
    return {door for length, door in begins if length == longest} or _OF_SOME.keys()
