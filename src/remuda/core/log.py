"""Structured logging: one JSON object a line, with fields apart from the message.

A value that may be hostile or private goes into a field made by :func:`redacted`, never into the message.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Protocol

FIELDS = "remuda_fields"


class Warn(Protocol):
    """Where structured warnings go: a message and its fields."""

    def __call__(self, message: str, **fields: object) -> None: ...


def redacted(value: str) -> str:
    """A value's length only: enough to recognise a mistake, nothing to leak."""
    return f"<{len(value.encode('utf-8', 'replace'))} bytes>"


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON line."""

    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, object] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        document.update(getattr(record, FIELDS, {}))
        return json.dumps(document, default=str, ensure_ascii=True)


def warn(message: str, **fields: object) -> None:
    """Log a structured warning."""
    logging.getLogger("remuda").warning(message, extra={FIELDS: fields})


def info(message: str, **fields: object) -> None:
    """Log what is worth knowing and nothing to worry about."""
    logging.getLogger("remuda").info(message, extra={FIELDS: fields})


def configure(level: int = logging.WARNING) -> None:
    """Send Remuda's log to stderr as JSON lines. Called once by a surface, never by a library."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("remuda")
    logger.handlers = [handler]
    logger.setLevel(level)
    logger.propagate = False
