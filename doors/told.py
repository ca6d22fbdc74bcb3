"""What a door is told from outside, read so that a person can mend what is wrong with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from domain.errors import Misconfigured, said
from doors.typed import host_port, is_utf8, web_address

HostPort = Annotated[str, AfterValidator(lambda text: text and host_port(text))]
"""`host:port`, or empty."""

WebAddress = Annotated[str, AfterValidator(lambda text: text and web_address(text))]
"""An http or https URL, or empty."""


def _of_somebody(path: Path) -> Path:
    try:
        path.expanduser()
    except RuntimeError:
        raise ValueError("nobody of that name has a home here") from None
    return path


class DoorSettings(BaseSettings):
    """What every door is told. Read once from `WATCHBILL_*` in the environment."""

    model_config = SettingsConfigDict(env_prefix="WATCHBILL_", frozen=True, extra="ignore")

    home: Annotated[Path, AfterValidator(_of_somebody)] = Path("~/.watchbill")
    """This host's folder, in which the work graph lies when no store URL is given."""
    store_url: str = Field("", repr=False)
    """SQLAlchemy URL of the work graph; empty for SQLite in the home folder."""

    @property
    def folder(self) -> Path:
        return self.home.expanduser().absolute()

    @property
    def store(self) -> str:
        return self.store_url or f"sqlite:///{self.folder / 'graph.db'}"


class TemporalSettings(DoorSettings):
    """What a door is told that speaks with Temporal; `doors.temporal` finds out the rest."""

    temporal_address: HostPort = ""
    """`host:port`; empty: as Temporal's own configuration says, else where its dev server listens."""
    temporal_namespace: str = ""
    """Empty: as Temporal's own configuration says, else `default`."""


T = TypeVar("T", bound=BaseSettings)


def read(kind: type[T]) -> T:
    """The settings of this kind.

    Misconfigured with one sentence about everything that cannot be read, and no value shown that might be a secret.
    """
    prefix = str(kind.model_config.get("env_prefix", ""))
    try:
        _require_text(prefix)
        return kind()
    except ValidationError as error:
        named = ((f"{prefix}{'_'.join(map(str, each['loc'])).upper()}", each["msg"]) for each in error.errors())
        faults = "; ".join(f"{name}: {_said(message)}" for name, message in named)
        raise Misconfigured(f"these settings cannot be read: {faults}") from None


def secret(settings: BaseSettings, field: str) -> str:
    """What is in the file that this setting names, without the space around it.

    Misconfigured for one that is not there, is empty, or is no text.
    """
    name = f"{settings.model_config.get('env_prefix', '')}{field.upper()}"
    file: Path = getattr(settings, field)
    try:
        found = file.expanduser().read_text().strip()
    except OSError as error:
        raise Misconfigured(f"{name} names {said(error)}") from None
    except ValueError:
        raise Misconfigured(f"{name} names {file}, which is no text") from None
    if not found:
        raise Misconfigured(f"{name} names {file}, which is empty; put the secret into it")
    return found


def _said(message: str) -> str:
    # `Value error` is pydantic's word for what we say ourselves, of which nothing is to be changed.
    ours = message.removeprefix("Value error, ")
    return ours if ours != message else message[:1].lower() + message[1:]


def _require_text(prefix: str) -> None:
    """Misconfigured for a value that is no UTF-8: it could be passed on to nobody."""
    odd = [name for name, value in os.environ.items() if name.startswith(prefix) and not is_utf8(value)]
    if odd:
        raise Misconfigured(f"these settings are no UTF-8: {', '.join(sorted(odd))}")
