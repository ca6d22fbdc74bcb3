"""What the relay is told from outside. It is given no private key, and so can mint nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from doors.told import DoorSettings, HostPort, WebAddress
from relay.upstreams import Upstream, upstream


class RelaySettings(DoorSettings):
    models: WebAddress = ""
    """The stand-in's address, `http://127.0.0.1:8280/models`: with it no other provider is asked, whatever is set."""
    anthropic_url: WebAddress = ""
    """Where Anthropic's API is; its own address where a key file is set."""
    anthropic_key_file: Path | None = None
    openai_url: WebAddress = ""
    """Where OpenAI's API is, or another that speaks it, with or without `/v1`; its own where a key file is set."""
    openai_key_file: Path | None = None
    gemini_url: WebAddress = ""
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
    relay_metrics: HostPort = ""
    """`host:port` to serve Prometheus metrics on."""
    relay_patience: int = Field(60, ge=0)
    """Seconds for which a call waits for money that is held for others; 0 refuses it at once."""
    relay_drain: int = Field(60, ge=0)
    """Seconds that streams may go on for after the door was told to stop."""

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        if not self.relay_metrics:
            return None
        host, _, port = self.relay_metrics.rpartition(":")
        return host.strip("[]"), int(port)

    @property
    def upstreams(self) -> Mapping[str, Upstream]:
        """The model providers that there are. Raises Misconfigured for a key that cannot be read."""
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
