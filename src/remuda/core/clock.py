"""Time as text: RFC 3339 in UTC, and back."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now() -> float:
    """Seconds since the epoch."""
    return time.time()


def rfc3339(seconds: float) -> str:
    """``2026-04-29T04:12:55.123Z``"""
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def rfc3339_seconds(seconds: float) -> str:
    """``2026-04-29T04:12:55Z``"""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def seconds(text: str) -> float:
    """Seconds since the epoch of a time in RFC 3339; 0 for what is none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return 0.0
