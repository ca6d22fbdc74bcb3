"""Whether it is worth asking Temporal at all: what can be found out without its client, which takes long to load."""

from __future__ import annotations

import socket

from domain.errors import Unavailable
from starter.settings import Settings

_THIS_MACHINE = ("127.0.0.1", "localhost", "[::1]")
_SECONDS = 1.0
"""This machine answers at once, whatever it answers."""


def require_temporal(settings: Settings) -> None:
    """Raises Unavailable where the home's own Temporal is down, or nobody listens at an address of this machine.

    Anything else is for the client to find out.
    """
    if settings.profile:
        return
    if settings.down:
        raise Unavailable(settings.down)
    host, _, port = settings.temporal_address.rpartition(":")
    if host in _THIS_MACHINE and port.isdecimal() and _is_refused(host.strip("[]"), int(port)):
        raise no_temporal(settings.temporal_address)


def no_temporal(address: str) -> Unavailable:
    return Unavailable(
        f"Temporal does not answer at {address}; start it with `watchbill up`, "
        "or say where it is in WATCHBILL_TEMPORAL_ADDRESS"
    )


def _is_refused(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), _SECONDS):
            return False
    except ConnectionRefusedError:
        return True
    except (OSError, OverflowError):
        # A port that there is none of is for the client to refuse.
        return False
