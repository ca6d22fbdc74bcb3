"""What the worker is told from outside. Secrets come as files, never as values."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field

from domain.confinement import Confine
from domain.heartbeat import HeartbeatPolicy
from doors.told import HostPort, TemporalSettings, WebAddress
from runtimes.logins import Logins
from store.contents import folder_beside

_SQLITE_FILES = ("", "-wal", "-shm", "-journal")


class WorkerSettings(TemporalSettings):
    github_api: WebAddress = "https://api.github.com"
    github_app_id: int | None = None
    github_app_key_file: Path | None = None
    github_token_file: Path | None = None
    """A personal token, for those without a GitHub App."""
    github_pause: float = Field(1.0, ge=0)
    """Seconds between two writes to GitHub, which asks for one; 0 for a stand-in on this machine."""
    seal_key_file: Path | None = None
    """The private key that seals chain heads; made in the home folder where none is named."""
    capability_key_file: Path | None = None
    """The private key that signs agents' capabilities; made in the home folder where none is named."""
    relay: WebAddress = ""
    """The address of the agents' door, such as `http://127.0.0.1:8095`; without it no agent can work."""
    merge_method: Literal["merge", "squash", "rebase"] = "squash"
    interval: float = Field(60.0, gt=0)
    """Seconds between two ticks of an owner's heartbeat."""
    follow: float = Field(900.0, gt=0)
    """Seconds between two readings of an open pull request that nobody hinted at."""
    slots: int = Field(4, ge=1)
    """Tasks of one owner that may be under way at once."""
    lease: float = Field(120.0, ge=2)
    """Seconds that a run goes on without a word from a worker; longer than a worker's restart."""
    agent_path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    """The PATH that runs are given."""
    confine: Confine = Confine.AUTO
    """`auto`: runs are confined where this host can; `required`: or are not run; `off`."""
    confine_read: str = ""
    """What confined runs may read besides, with colons between the paths."""
    logins: Path | None = None
    """The folder in which agents' CLIs have logged in, for plans whose agents are unmetered; `logins` in the home."""
    models: WebAddress = ""
    """The stand-in's address for model calls, which unmetered agents then reach alone."""
    anthropic_url: WebAddress = ""
    """Where unmetered agents find Anthropic's API; where their CLIs find it by themselves, when empty."""
    openai_url: WebAddress = ""
    """Where they find OpenAI's API, or another that speaks it, with or without `/v1`."""
    adopt: bool = False
    """Take the work graph over for a Temporal that it does not know; `watchbill rebuild` does so by hand."""
    metrics: HostPort = ""
    """`host:port` to serve Prometheus metrics on; empty for none."""

    @property
    def seal_key(self) -> Path:
        return (self.seal_key_file or self.folder / "keys" / "seal.pem").expanduser()

    @property
    def capability_key(self) -> Path:
        return (self.capability_key_file or self.folder / "keys" / "capability.pem").expanduser()

    @property
    def own_logins(self) -> Logins:
        folder = (self.logins or self.folder / "logins").expanduser().absolute()
        return Logins(folder, self.models, self.anthropic_url, self.openai_url)

    @property
    def hidden(self) -> tuple[Path, ...]:
        """What no run may see: this folder, the work graph's files, logins, and whatever is named as a secret."""
        graph = self.store.removeprefix("sqlite:///") if self.store.startswith("sqlite:///") else ""
        named = (self.github_app_key_file, self.github_token_file, self.seal_key, self.capability_key)
        files = [file.expanduser().absolute() for file in named if file]
        kept = (*(Path(graph + end).absolute() for end in _SQLITE_FILES), folder_beside(graph)) if graph else ()
        return (self.folder, self.own_logins.folder, *files, *kept)

    @property
    def readable(self) -> tuple[Path, ...]:
        return tuple(Path(path).expanduser() for path in self.confine_read.split(":") if path)

    @property
    def policy(self) -> HeartbeatPolicy:
        return HeartbeatPolicy(self.interval, self.follow, self.slots)

    @property
    def lease_time(self) -> timedelta:
        return timedelta(seconds=self.lease)
