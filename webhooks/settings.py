"""What the webhooks' door is told from outside. The secret comes as a file, never as a value."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class WebhookSettings(BaseSettings):
    """Read once from `WATCHBILL_*` in the environment."""

    model_config = SettingsConfigDict(env_prefix="WATCHBILL_", frozen=True, extra="ignore")

    home: Path = Path("~/.watchbill")
    """Where the work graph lies when no store URL is given."""
    temporal_address: str = "127.0.0.1:7233"
    temporal_namespace: str = "default"
    store_url: str = ""
    """SQLAlchemy URL of the work graph; empty for SQLite in the home folder."""
    webhook_secret_file: Path
    """The file that holds the secret which GitHub signs with."""
    webhooks_host: str = "127.0.0.1"
    webhooks_port: int = Field(8270, ge=0, le=65535)
    webhooks_limit: int = Field(25 * 1024 * 1024, ge=1024)
    """Bytes of the largest body that is read; GitHub sends none above 25 MiB."""

    @property
    def store(self) -> str:
        return self.store_url or f"sqlite:///{self.home.expanduser().absolute() / 'graph.db'}"
