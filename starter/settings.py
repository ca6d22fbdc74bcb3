"""What the command is told from outside. Nothing else in the starter reads the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from domain.errors import Misconfigured
from domain.identity import OWNER
from doors.temporal import DEFAULT_ADDRESS, has_profile, own_variables
from doors.typed import is_utf8
from starter.local import addresses


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

    Misconfigured when a value cannot be used.
    """
    odd = [name for name, value in environment.items() if name.startswith("WATCHBILL_") and not is_utf8(value)]
    if odd:
        raise Misconfigured(f"these settings are no UTF-8: {', '.join(sorted(odd))}")
    home = _home(environment.get("WATCHBILL_HOME") or "~/.watchbill")
    owner = environment.get("WATCHBILL_OWNER") or "local"
    require_owner("WATCHBILL_OWNER", owner)
    address = environment.get("WATCHBILL_TEMPORAL_ADDRESS", "")
    namespace = environment.get("WATCHBILL_TEMPORAL_NAMESPACE", "")
    if not address and not own_variables(environment):
        up = addresses.read(home)
        address = up.temporal if up else ""
    profile = has_profile(environment, address)
    down = "" if address else addresses.why_down(home)
    if not profile:
        address, namespace = address or ("" if down else DEFAULT_ADDRESS), namespace or "default"
    store_url = environment.get("WATCHBILL_STORE_URL") or f"sqlite:///{home / 'graph.db'}"
    return Settings(home, owner, address, namespace, store_url, profile, down, dict(environment))


def require_owner(named: str, owner: str) -> None:
    """Misconfigured for what is no owner's name; `named` says where it was given."""
    if not OWNER.fullmatch(owner):
        raise Misconfigured(f"{named} is {owner!r}; use at most 40 of a-z, 0-9 and hyphens between them")


def _home(told: str) -> Path:
    try:
        return Path(told).expanduser().absolute()
    except RuntimeError:
        raise Misconfigured(f"WATCHBILL_HOME is {told!r}, and nobody of that name has a home here") from None


def debugging(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a person asked for tracebacks with WATCHBILL_DEBUG."""
    return bool(environment.get("WATCHBILL_DEBUG"))
