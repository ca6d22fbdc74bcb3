"""Structured logs, one JSON object a line on stderr, with secrets taken out."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog
from temporalio import workflow

_SECRET = re.compile(r"gh[a-z]_[A-Za-z0-9._-]{20,}|(?i:(?:basic|bearer)\s+[A-Za-z0-9+/=._-]{8,})|-----BEGIN [^-]+-----")


def configure() -> None:
    """Send our own and the libraries' logs through one pipeline. Call once, at a door's start."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redact,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared[1:3], structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                redact,
                structlog.processors.JSONRenderer(default=str),
            ],
        )
    )
    handler.addFilter(_not_in_replay)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("temporalio").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)


def redact(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace what looks like a credential in every text of a log line."""
    return {key: _SECRET.sub("[redacted]", value) if isinstance(value, str) else value for key, value in event.items()}


def _not_in_replay(_: logging.LogRecord) -> bool:
    return not (workflow.in_workflow() and workflow.unsafe.is_replaying_history_events())
