"""What the webhooks' door is told from outside. The secret comes as a file, never as a value."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from doors.told import TemporalSettings


class WebhookSettings(TemporalSettings):
    webhook_secret_file: Path
    """The file that holds the secret which GitHub signs with."""
    webhooks_host: str = "127.0.0.1"
    webhooks_port: int = Field(8270, ge=0, le=65535)
    webhooks_limit: int = Field(25 * 1024 * 1024, ge=1024)
    """Bytes of the largest body that is read; GitHub sends none above 25 MiB."""
