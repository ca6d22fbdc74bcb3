"""Ports on the loopback address: the usual ones where they are free."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

HOST = "127.0.0.1"

_LOWEST = 10_000
_GIVEN = Path("/proc/sys/net/ipv4/ip_local_port_range")


def choose(preferred: Sequence[int]) -> list[int]:
    """For each preferred port that port, or any free one where it is taken; 0 means any.

    Nothing keeps a port reserved between this answer and its use. So all are probed together, that no two
    be the same; and any free one is drawn from below the ports that the kernel gives to outgoing
    connections, which would take it meanwhile.
    """
    with ExitStack() as probes:
        return [_bound(probes.enter_context(socket.socket()), port) for port in preferred]


def _bound(probe: socket.socket, port: int) -> int:
    # Connections that ended a moment ago do not keep a server off its port, so they are no obstacle here.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    drawn = random.sample(range(_LOWEST, _given_from()), 20)
    for candidate in (port, *drawn) if port and _is_ours(port) else drawn:
        try:
            probe.bind((HOST, candidate))
        except OSError:
            continue
        return candidate
    probe.bind((HOST, 0))
    return int(probe.getsockname()[1])


_OURS: dict[int, socket.socket] = {}


def _is_ours(port: int) -> bool:
    """Whether no other process of this machine means to use its usual port, which all prefer and may choose at once.

    It is said by a name that the kernel gives to one socket, and takes back when the process ends.
    """
    if port not in _OURS:
        sign = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            sign.bind(f"\0watchbill-port-{port}")
        except OSError:
            sign.close()
            return False
        _OURS[port] = sign
    return True


def _given_from() -> int:
    """The first port that the kernel gives to outgoing connections; Linux's default where it does not say."""
    try:
        return max(int(_GIVEN.read_text().split()[0]), 2 * _LOWEST)
    except OSError:
        return 32_768


def listening(port: int) -> bool:
    """Whether somebody accepts connections there."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


def url(port: int) -> str:
    return f"http://{HOST}:{port}"
