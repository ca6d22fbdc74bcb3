"""Logins of agents' CLIs on this host, for runs that go around the relay.

In one folder there is one a CLI, and in that a person has logged in. A run gets a copy of what its CLI asks a model
with, in its memory, and never what would renew that: a login that one run renewed would be void for all others, and
for the person.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from domain.errors import Unauthorized
from runtimes.agent import put
from runtimes.files import read_bytes
from runtimes.memory import is_folder
from runtimes.port import Login

KEY = "login-key"
"""The file in a memory that holds a key alone, for a CLI that gets it from a file or by asking a command."""

CLAUDE, CODEX = ".credentials.json", "auth.json"
"""The files in which these two keep a login, in the person's folder as in a run's memory."""

_ALL = (KEY, CLAUDE, CODEX)


@dataclass(frozen=True)
class Logins:
    """`folder` holds a folder for each CLI. `models` is the stand-in's address, and the only one where it is set.

    `anthropic` and `openai` are where the providers' APIs are, with their version or without; empty for their own.
    """

    folder: Path
    models: str = ""
    anthropic: str = ""
    openai: str = ""

    def of(self, cli: str) -> Login:
        """How this CLI reaches its model; whether it has logged in is not asked here."""
        if self.models:
            models = self.models.rstrip("/")
            return Login(self.folder / cli, f"{models}/anthropic", f"{models}/openai")
        anthropic, openai = (url.rstrip("/").removesuffix("/v1") for url in (self.anthropic, self.openai))
        return Login(self.folder / cli, anthropic, openai)


def give(memory: Path, login: Mapping[str, str]) -> None:
    """Put a login into a run's memory, for its user alone, in place of what may be there of another."""
    forget(memory)
    for name, text in login.items():
        put(memory / name, text)


def forget(memory: Path) -> None:
    """Take whatever `give` puts there out of a memory. What stands there in its place is not ours, and stays."""
    if is_folder(memory):
        for name in _ALL:
            with suppress(FileNotFoundError, IsADirectoryError, PermissionError):
                (memory / name).unlink()


def line_in(file: Path) -> str:
    """The one line that a person put into a file; empty where there is none."""
    lines = (read_bytes(str(file)) or b"").decode(errors="replace").split()
    return lines[0] if len(lines) == 1 else ""


class NoLogin(Unauthorized):
    """There is no login that a run could be given. `why` says what there is, `mend` is the command that makes one."""

    def __init__(self, why: str, mend: str) -> None:
        super().__init__(f"{why}; the plan's agents are on logins of their own, so make one with: {mend}")
        self.why, self.mend = why, mend


def require_current(cli: str, folder: Path, ends: float, mend: str) -> None:
    """Raises NoLogin for one that has ended, in seconds since 1970."""
    if ends <= datetime.now(UTC).timestamp():
        at = datetime.fromtimestamp(ends, UTC).isoformat(timespec="seconds")
        raise NoLogin(f"{cli}'s login in {folder} ended at {at}, and no run renews one", mend)
