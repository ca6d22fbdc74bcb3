"""What the command is told from outside. Nothing else in the starter reads the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from domain.identity import OWNER
from starter.exits import CommandFailed, Exit
from starter.local import addresses

DEFAULT_ADDRESS = "127.0.0.1:7233"


@dataclass(frozen=True)
class Settings:
    """Where things are and whose they are.

    `temporal_address` and `temporal_namespace` are empty where a Temporal profile says them; `profile`
    then, and wherever TEMPORAL_* variables are set, adds TLS and the API key. `down` says why the home's own
    Temporal does not answer, where no other is named: whoever is at the usual address is not meant then, and
    `temporal_address` is empty. `store_url` may hold a
    password: do not show it. `environment` is what the doors inherit.
    """

    home: Path
    owner: str
    temporal_address: str
    temporal_namespace: str
    store_url: str = field(repr=False)
    profile: bool = False
    down: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def door_environment(self) -> dict[str, str]:
        """What a door is started with: what was inherited, and what was found out here."""
        found = {
            "WATCHBILL_HOME": str(self.home),
            "WATCHBILL_OWNER": self.owner,
            "WATCHBILL_STORE_URL": self.store_url,
            "WATCHBILL_TEMPORAL_ADDRESS": self.temporal_address,
            "WATCHBILL_TEMPORAL_NAMESPACE": self.temporal_namespace,
        }
        return {**self.environment, **{name: value for name, value in found.items() if value}}


def load(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings: the environment's word first, then what `watchbill up` wrote down, then defaults.

    CommandFailed when a value cannot be used.
    """
    home = Path(environment.get("WATCHBILL_HOME") or "~/.watchbill").expanduser().absolute()
    owner = environment.get("WATCHBILL_OWNER") or "local"
    if not OWNER.fullmatch(owner):
        raise CommandFailed(
            Exit.USAGE, f"WATCHBILL_OWNER is {owner!r}; use at most 40 of a-z, 0-9 and hyphens between them"
        )
    address = environment.get("WATCHBILL_TEMPORAL_ADDRESS", "")
    namespace = environment.get("WATCHBILL_TEMPORAL_NAMESPACE", "")
    profile = any(name.startswith("TEMPORAL_") for name in environment)
    if not address and not profile:
        up = addresses.read(home)
        address = up.temporal if up else ""
        profile = not address and _profile_file(environment).exists()
    down = "" if address else addresses.why_down(home)
    if not profile:
        address, namespace = address or ("" if down else DEFAULT_ADDRESS), namespace or "default"
    store_url = environment.get("WATCHBILL_STORE_URL") or f"sqlite:///{home / 'graph.db'}"
    return Settings(home, owner, address, namespace, store_url, profile, down, dict(environment))


def debugging(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a person asked for tracebacks with WATCHBILL_DEBUG."""
    return bool(environment.get("WATCHBILL_DEBUG"))


def _profile_file(environment: Mapping[str, str]) -> Path:
    """Where Temporal's own tools keep profiles. https://docs.temporal.io/develop/environment-configuration"""
    config = environment.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(config).expanduser() / "temporalio" / "temporal.toml"
