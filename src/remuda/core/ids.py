"""Identifiers: ULIDs, which sort by time and are safe in file names, environments and URLs."""

from __future__ import annotations

import os
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ulid() -> str:
    """A new 26-character ULID: 48 bits of milliseconds, 80 bits of randomness."""
    number = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -5, -5))
