"""The supervisor's side of a confined run: what it starts instead of the agent, and what it is told back."""

from __future__ import annotations

import os

from runtimes.files import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runtimes.passage import Carrier

_REPORT_BYTES = 1 << 13
_BY_SIGNAL = 128
"""What a shell, and bubblewrap, add to a signal's number to make an exit status of it."""


class Cell:
    """`spec` is the run's whole specification. To be made before the fork that becomes the agent."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec, self._cell = spec, spec["cell"]
        self._ours, self._theirs = os.pipe()
        os.set_blocking(self._ours, False)
        self._carrier = _carrier(self._cell)
        self.leftovers = 0

    def command(self) -> tuple[str, list[str]]:
        """In the fork: the program to become and its arguments."""
        os.set_inheritable(self._theirs, True)
        channel = -1
        if self._carrier:
            channel = self._carrier.theirs
            os.set_inheritable(channel, True)
        host, port = self._cell["inside"] or ("-", 0)
        own = (self._theirs, channel, host, port, self._spec["program"])
        argv = [*self._cell["argv"], *map(str, own), *self._spec["argv"]]
        return argv[0], argv

    def begin(self) -> None:
        """In the supervisor, once there is the fork."""
        os.close(self._theirs)
        if self._carrier:
            self._carrier.begin()

    def end(self, exit_code: int) -> tuple[int, str]:
        """The agent's exit code, and what kept it from running, by how the cell ended and what was told of it."""
        try:
            told = decode(os.read(self._ours, _REPORT_BYTES))
        except BlockingIOError:
            told = None
        if told is not None:
            self.leftovers = told["leftovers"]
            return told["exit_code"], told["fault"]
        if exit_code > _BY_SIGNAL:
            return _BY_SIGNAL - exit_code, ""
        return exit_code, "" if exit_code < 0 else "its cell could not be made; the output says why"


def _carrier(cell: dict[str, Any]) -> Carrier | None:
    """Its module is loaded by runs that have a way out only: checks have none, and are many."""
    if not cell["outside"]:
        return None
    from runtimes.passage import Carrier

    host, port = cell["outside"]
    return Carrier((host, port))
