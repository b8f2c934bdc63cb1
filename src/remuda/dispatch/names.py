"""What counts as an agent's name: the one rule for every place a name can come from."""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

MAX_BYTES = 32
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f/\\]|\.\.")


class Rejected(msgspec.Struct, frozen=True):
    """Why something cannot be used: a fixed word, fit for a warning, that never holds the value."""

    reason: str


def check_name(raw: str, names: Collection[str]) -> str | Rejected | None:
    """The name that a raw value stands for; None when it is empty, which means unset.

    Spaces around the name and upper case are forgiven, everything else is not: no prefix matches, and no
    Unicode folding, so a look-alike stays unknown.
    """
    if _FORBIDDEN.search(raw):
        return Rejected("forbidden_character")
    value = raw.strip(" ")
    if not value:
        return None
    if len(value.encode("utf-8", "replace")) > MAX_BYTES:
        return Rejected("too_long")
    if any(character.isspace() for character in value):
        return Rejected("inner_whitespace")
    name = value.lower() if value.isascii() else value
    return name if name in names else Rejected("unknown_name")
