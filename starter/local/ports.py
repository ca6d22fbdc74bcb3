"""Ports on the loopback address: the usual ones where they are free."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import ExitStack

HOST = "127.0.0.1"


def choose(preferred: Sequence[int]) -> list[int]:
    """For each preferred port that port, or any free one where it is taken; 0 means any.

    Nothing keeps a port reserved between this answer and its use; all are probed together, so that
    no two of them are the same.
    """
    with ExitStack() as probes:
        return [_bound(probes.enter_context(socket.socket()), port) for port in preferred]


def _bound(probe: socket.socket, port: int) -> int:
    # Connections that ended a moment ago do not keep a server off its port, so they are no obstacle here.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        probe.bind((HOST, port))
    except OSError:
        probe.bind((HOST, 0))
    return int(probe.getsockname()[1])


def listening(port: int) -> bool:
    """Whether somebody accepts connections there."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


def url(port: int) -> str:
    return f"http://{HOST}:{port}"
