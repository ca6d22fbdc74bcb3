"""Structured logs, one JSON object a line on stderr, with secrets taken out."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import structlog

from telemetry.secrets import without_secrets


def configure(*wanted: Callable[[logging.LogRecord], bool]) -> None:
    """Send our own and the libraries' logs through one pipeline. Call once, at a door's start.

    A library's record that one of `wanted` says no to is dropped.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer(default=str), redact],
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared[1:3], structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(default=str),
                redact,
            ],
        )
    )
    for filter_ in wanted:
        handler.addFilter(filter_)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("temporalio").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)


def redact(_: Any, __: str, line: Any) -> str:
    """The finished line without what looks like a credential, however deep in it that stood."""
    return without_secrets(line)
