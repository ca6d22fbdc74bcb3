"""What an agent may not do: one policy, whatever CLI it works in.

The rules are compiled into each CLI's own mechanism and asked again by our hook. Whatever a hook can be
talked around is looked for once more in what the agent left (domain.scope, forge.collect).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Policy:
    """What is refused; everything else is allowed.

    `tools` are names of tools as fnmatch patterns, whatever the CLI calls them (`WebFetch`, `mcp__*`);
    `commands` are patterns over a shell command, matched against every command in a line (`git push*`,
    `rm -rf /*`); `paths` are globs over files that no tool may write (`.github/**`), relative to the
    workspace; outside of the workspace and the run's private folders no tool may write at all.
    """

    tools: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


NOTHING_REFUSED = Policy()
