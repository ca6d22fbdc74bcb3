"""What the relay is told from outside. It is given no private key, and so can mint nothing."""

from __future__ import annotations

from pydantic import Field

from doors.told import DoorSettings, WebAddress


class RelaySettings(DoorSettings):
    models: WebAddress = ""
    """The address that model calls are passed on to, such as `http://127.0.0.1:8280/models`."""
    relay_host: str = "127.0.0.1"
    relay_port: int = Field(8271, ge=0, le=65535)
    relay_names: str = ""
    """Names besides `relay_host` under which agents reach the door, with commas between them."""
    relay_limit: int = Field(1024 * 1024, ge=1024)
    """Bytes of the largest body that is read, of a tool call or of a batch of events."""
    relay_models_limit: int = Field(32 * 1024 * 1024, ge=1024)
    """Bytes of the largest body of a model call; Anthropic takes none above 32 MB."""
    relay_drain: int = Field(60, ge=0)
    """Seconds that streams may go on for after the door was told to stop."""

    @property
    def names(self) -> frozenset[str]:
        """What a request may call the door."""
        return frozenset({self.relay_host, *(name.strip() for name in self.relay_names.split(",") if name.strip())})
