"""Who asked what: requests without their tokens, as many as there is room for; and the scripts of each token."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

from rehearsal.models.script import Script

MOST_REQUESTS = 500
MOST_BYTES = 32 << 20

EVERYBODY = ""
"""Stands for the fingerprint of every token that has no script of its own."""


def fingerprint(token: str) -> str:
    """What is kept of a token: its SHA-256 in hex; nothing for none."""
    return hashlib.sha256(token.encode()).hexdigest() if token else ""


@dataclass(frozen=True)
class Asked:
    """A request that was received. `messages` is the API's own list of messages or input items, as JSON.

    `token` is a fingerprint, `tools` are names, `status` is what was answered; `faults` are the kinds that
    struck. `main` tells the agent's own loop from what a CLI asks beside it.
    """

    api: str
    model: str
    token: str
    main: bool
    stream: bool
    tools: tuple[str, ...]
    status: int
    faults: tuple[str, ...]
    messages: str

    def shown(self) -> dict[str, Any]:
        return {**asdict(self), "messages": json.loads(self.messages)}


class Ledger:
    """In memory only, and used by one thread, the server's: a stand-in that starts again knows nothing of before."""

    def __init__(self) -> None:
        self._asked: deque[Asked] = deque()
        self._bytes = 0
        self._scripts: dict[str, Script] = {}

    def keep(self, asked: Asked) -> None:
        self._asked.append(asked)
        self._bytes += len(asked.messages)
        while self._asked and (len(self._asked) > MOST_REQUESTS or self._bytes > MOST_BYTES):
            self._bytes -= len(self._asked.popleft().messages)

    def asked(self) -> list[Asked]:
        """The newest requests, oldest first."""
        return list(self._asked)

    def forget(self) -> None:
        self._asked.clear()
        self._bytes = 0

    def script(self, token: str) -> Script:
        """The script for this fingerprint; what is set for everybody, and that is nothing at first."""
        return self._scripts.get(token) or self._scripts.setdefault(EVERYBODY, Script())

    def set_script(self, token: str, script: Script) -> None:
        """Replaces what was set for this fingerprint before."""
        self._scripts[token] = script
