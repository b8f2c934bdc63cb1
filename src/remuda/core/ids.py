"""Identifiers: ULIDs, which sort by time and are safe in file names, environments and URLs."""

from __future__ import annotations

import os
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

ULID = 26
"""How many characters a ULID has."""


def ulid() -> str:
    """A new 26-character ULID: 48 bits of milliseconds, 80 bits of randomness."""
    number = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -5, -5))


def is_ulid_part(text: str) -> bool:
    """Whether a ULID can begin like this."""
    return 0 < len(text) <= ULID and set(text) <= set(_ALPHABET)


def uuid4() -> str:
    """A random UUID, for programs that want one, without the slow import of the standard module."""
    number = int.from_bytes(os.urandom(16), "big") & ~(0xF << 76) & ~(0x3 << 62) | 4 << 76 | 2 << 62
    text = f"{number:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
