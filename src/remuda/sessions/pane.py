"""A session in a pane: what is on its screen, what to press, and whether a text has arrived.

Decisions are pure; whoever calls has captured the screen.
"""

from __future__ import annotations

import msgspec

from remuda.runtimes.screens import Screen
from remuda.sessions.lifecycle import State

SOURCE, UNKNOWN = "screen", "screen: not known"
ARROWS = frozenset({"Up", "Down", "Left", "Right"})
PRESSES = 5
"""How often a dialog is answered before it is taken for one that cannot be answered so."""


def state_of(screen: Screen, before: State) -> State:
    """The state of a session with this screen. One that nobody knows says nothing new."""
    match screen.state:
        case "dialog":
            return "waiting" if screen.kind == "permission" else "dialog"
        case "working" | "ready":
            return screen.state
    return before


def source_of(screen: Screen) -> str:
    """Where that is known from."""
    return UNKNOWN if screen.rule is None else f"{SOURCE}: {screen.rule}"


def may_answer(screen: Screen, consent: frozenset[str]) -> bool:
    """Whether a dialog may be answered for the user: one that decides about safety, with their word only. A
    tool call that asks for permission is never answered so."""
    if screen.state != "dialog" or not screen.keys or screen.kind == "permission":
        return False
    return not screen.consent or screen.kind in consent


def taken(key: str, asked: Screen, now: Screen, *, changed: bool, late: bool) -> bool | None:
    """Whether a dialog has taken a key, by the screen that ``asked`` and the one that there is ``now``; None
    as long as it may still show. An arrow moves a mark, and another rule tells that it did: that something
    else on the screen has changed means nothing. A digit names its answer, which may have been marked
    before."""
    moved = now.kind == asked.kind and now.rule != asked.rule
    if moved if key in ARROWS else changed:
        return True
    return key.isdigit() if late else None


class Waited(msgspec.Struct, frozen=True, kw_only=True):
    """How waiting for a screen has ended: what it is, and its text where somebody has to look at it."""

    screen: Screen
    text: str
