"""What an agent may not do: one policy, whatever CLI it works in.

A hook asks for the rules before every use of a tool (runtimes.hooks). Whatever a hook can be talked around
with is looked for once more in what the agent left (forge.collect).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from domain.globs import path_pattern, text_pattern


@dataclass(frozen=True)
class Policy:
    """What is refused; everything else is allowed.

    All are patterns as domain.globs has them. `tools` are names of tools, whatever the CLI calls them
    (`WebFetch`, `mcp__*`), in upper or lower case; `commands` are matched against every command in a line
    (`git push*`, `rm -rf /*`); `paths` are files that no tool may write and no commit may change
    (`.github/**`), relative to the workspace. Outside of the workspace and the run's private folders no
    tool may write at all.
    """

    tools: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


NOTHING_REFUSED = Policy()


def both(one: Policy, other: Policy) -> Policy:
    """The policy that refuses whatever either of them refuses."""
    return Policy(*(_without_repeats(getattr(one, rule.name) + getattr(other, rule.name)) for rule in fields(Policy)))


def pattern_problem(rule: str, pattern: str) -> str:
    """Why this is no pattern for `tools`, `commands` or `paths`, or nothing."""
    try:
        _PATTERNS[rule](pattern)
    except ValueError as error:
        return str(error)
    return ""


def policy_of(table: Mapping[str, Any]) -> Policy:
    """An owner's policy from a table with the keys of a plan's front matter: refuse_tools and so on.

    ValueError says everything that is wrong with it.
    """
    keys = {f"refuse_{rule.name}": rule.name for rule in fields(Policy)}
    problems = [f"{key} is none of {', '.join(keys)}" for key in table if key not in keys]
    rules: dict[str, tuple[str, ...]] = {}
    for key, rule in keys.items():
        patterns = table.get(key, [])
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) and pattern for pattern in patterns):
            problems.append(f"{key} is no list of patterns, each a text")
            continue
        problems += [f"{key}: {problem}" for pattern in patterns if (problem := pattern_problem(rule, pattern))]
        rules[rule] = _without_repeats(tuple(patterns))
    if problems:
        raise ValueError("; ".join(problems))
    return Policy(**rules)


def _without_repeats(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(patterns))


_PATTERNS: dict[str, Callable[[str], object]] = {
    "tools": text_pattern,
    "commands": text_pattern,
    "paths": path_pattern,
}
