"""The gate: what has to be in order before anything is started or handed on, and in which order it is looked
at. A refusal is final: never retried, never routed around."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, get_args

import msgspec

from remuda.sandbox.profile import DANGER

Check = Literal["danger", "sandbox", "secrets", "capability", "limits", "trust"]
CHECKS: tuple[Check, ...] = get_args(Check)
"""What is looked at, in this order."""


class Objection(msgspec.Struct, frozen=True):
    """Why something may not be, and what to do about it."""

    message: str
    hint: str = ""


Look = Callable[[], Objection | None]


def first_objection(looks: Mapping[Check, Look]) -> Objection | None:
    """The objection that counts: the first in the gate's order. Nothing behind it is looked at, and a check
    that is missing is an objection."""
    for check in CHECKS:
        look = looks.get(check)
        if look is None:
            return Objection(f"nobody looked at {check}, so nothing is started")
        if objection := look():
            return objection
    return None


def danger(profile: str | None, unsafe_yes: bool) -> Objection | None:
    """The profile that is no sandbox needs a word of its own."""
    if profile is None or profile.lower() != DANGER or unsafe_yes:
        return None
    return Objection(
        f"--sandbox {DANGER} requires --unsafe-yes confirmation. "
        "This profile bypasses all sandbox restrictions.",
        "Add --unsafe-yes if that is what you want, or choose another profile.",
    )
