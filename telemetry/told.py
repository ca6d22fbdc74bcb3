"""What a door is told from outside, read so that a person can mend what is wrong with it."""

from __future__ import annotations

import sys
from typing import TypeVar

from pydantic import ValidationError
from pydantic_settings import BaseSettings

T = TypeVar("T", bound=BaseSettings)

UNREADABLE = 2
"""The exit code of a door whose settings cannot be read."""


def read(kind: type[T]) -> T:
    """The settings of this kind. Exits with one sentence about everything that cannot be read, and no value shown
    that might be a secret.
    """
    try:
        return kind()
    except ValidationError as error:
        prefix = kind.model_config.get("env_prefix", "")
        named = ((f"{prefix}{'_'.join(map(str, each['loc'])).upper()}", each["msg"].lower()) for each in error.errors())
        faults = "; ".join(f"{name}: {fault}" for name, fault in named)
        sys.stdout.write(f"these settings cannot be read: {faults}\n")
        sys.stdout.flush()
        raise SystemExit(UNREADABLE) from None
