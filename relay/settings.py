"""What the relay is told from outside. It is given no private key, and so can mint nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from domain.errors import WatchbillError
from relay.upstreams import Upstream, upstream


class RelaySettings(BaseSettings):
    """Read once from `WATCHBILL_*` in the environment."""

    model_config = SettingsConfigDict(env_prefix="WATCHBILL_", frozen=True, extra="ignore")

    home: Path = Path("~/.watchbill")
    """Where the work graph lies when no store URL is given."""
    store_url: str = Field("", repr=False)
    """SQLAlchemy URL of the work graph; empty for SQLite in the home folder."""
    models: str = ""
    """The stand-in's address, `http://127.0.0.1:8280/models`: with it no other provider is asked, whatever is set."""
    anthropic_url: str = ""
    """Where Anthropic's API is; its own address where a key file is set."""
    anthropic_key_file: Path | None = None
    openai_url: str = ""
    """Where OpenAI's API is, or another that speaks it, with or without `/v1`; its own where a key file is set."""
    openai_key_file: Path | None = None
    gemini_url: str = ""
    """Where Google's API is; its own address where a key file is set."""
    gemini_key_file: Path | None = None
    prices: Path | None = None
    """The owner's own prices, TOML or JSON."""
    relay_host: str = "127.0.0.1"
    relay_port: int = Field(8271, ge=0, le=65535)
    relay_names: str = ""
    """Names besides `relay_host` under which agents reach the door, with commas between them."""
    relay_limit: int = Field(1024 * 1024, ge=1024)
    """Bytes of the largest body that is read, of a tool call or of a batch of events."""
    relay_models_limit: int = Field(32 * 1024 * 1024, ge=1024)
    """Bytes of the largest body of a model call; Anthropic takes none above 32 MB."""
    relay_output: int = Field(16_384, ge=1024)
    """Tokens of the longest answer to a model call that names no cap itself."""
    relay_metrics: str = ""
    """`host:port` to serve Prometheus metrics on."""
    relay_drain: int = Field(60, ge=0)
    """Seconds that streams may go on for after the door was told to stop."""

    @property
    def store(self) -> str:
        return self.store_url or f"sqlite:///{self.home.expanduser().absolute() / 'graph.db'}"

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """Raises WatchbillError for what is no `host:port`."""
        if not self.relay_metrics:
            return None
        host, _, port = self.relay_metrics.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise WatchbillError(f"WATCHBILL_RELAY_METRICS is host:port, and not {self.relay_metrics!r}")
        return host, int(port)

    @property
    def upstreams(self) -> Mapping[str, Upstream]:
        """The model providers that there are. Raises WatchbillError for a key that cannot be read."""
        told = {
            "anthropic": (self.anthropic_url, self.anthropic_key_file),
            "openai": (self.openai_url, self.openai_key_file),
            "gemini": (self.gemini_url, self.gemini_key_file),
        }
        found = {name: upstream(name, url, file, self.models) for name, (url, file) in told.items()}
        return {name: each for name, each in found.items() if each is not None}

    @property
    def names(self) -> frozenset[str]:
        """What a request may call the door."""
        return frozenset({self.relay_host, *(name.strip() for name in self.relay_names.split(",") if name.strip())})
