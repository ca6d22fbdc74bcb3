"""Where Temporal is and how to be let in, for the command and for every door alike.

Watchbill's own settings say the address and the namespace. Temporal's `TEMPORAL_*` variables and the profile in its
`temporal.toml` say these too, and bring TLS and API keys; they are read as Temporal's own tools read them.
https://docs.temporal.io/develop/environment-configuration
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from domain.errors import Misconfigured, said
from doors.typed import host_port

DEFAULT_ADDRESS = "127.0.0.1:7233"

_OWN = "TEMPORAL_"


def own_variables(environment: Mapping[str, str]) -> frozenset[str]:
    """The names of Temporal's own variables that say something here."""
    return frozenset(name for name, value in environment.items() if name.startswith(_OWN) and value)


def has_profile(environment: Mapping[str, str], address: str) -> bool:
    """Whether Temporal's own configuration is to be asked beside an address of ours, which may be empty.

    A variable is meant for this process. A profile in a file is meant for whoever names no address: it may be
    that of another Temporal, with another one's keys.
    """
    return bool(own_variables(environment)) or (not address and _profile_file(environment).exists())


def connection(
    environment: Mapping[str, str], address: str = "", namespace: str = "", otherwise: str = DEFAULT_ADDRESS
) -> dict[str, Any]:
    """The arguments of `Client.connect`. `target_host` is `otherwise` where nobody names an address.

    What is given here counts before what Temporal's own configuration says. The result may hold an API key and a
    private key: do not show it. Misconfigured, with no value shown but an address, for what cannot be used.
    """
    options = _profile(environment) if has_profile(environment, address) else {}
    if "target_host" in options and not address:
        _require_address("TEMPORAL_ADDRESS", str(options["target_host"]))
    if address:
        _require_address("WATCHBILL_TEMPORAL_ADDRESS", address)
        options["target_host"] = address
    options.setdefault("target_host", otherwise)
    if namespace:
        options["namespace"] = namespace
    return options


def _require_address(setting: str, address: str) -> None:
    try:
        host_port(address)
    except ValueError as error:
        raise Misconfigured(f"{setting} is {address!r}; {error}") from None


def _profile(environment: Mapping[str, str]) -> dict[str, Any]:
    from temporalio.envconfig import ClientConfig

    # The SDK would look for the file by this process's own environment, which need not be this one.
    told = {"TEMPORAL_CONFIG_FILE": str(_profile_file(environment)), **environment}
    try:
        return dict(ClientConfig.load_client_connect_config(override_env_vars=told))
    except (RuntimeError, ValueError) as error:
        # Below its first line a message shows the line of the file, and a key may stand in it.
        raise Misconfigured(f"Temporal's own configuration cannot be read: {str(error).splitlines()[0]}") from None
    except OSError as error:
        raise Misconfigured(f"Temporal's own configuration names {said(error)}") from None


def _profile_file(environment: Mapping[str, str]) -> Path:
    """Where Temporal's own tools keep profiles."""
    config = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME") or "~", ".config"))
    return Path(config).expanduser() / "temporalio" / "temporal.toml"
