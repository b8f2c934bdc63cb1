"""What can become of a session: its states, and the one table of the steps between them."""

from __future__ import annotations

from typing import Literal, get_args

State = Literal["starting", "dialog", "ready", "working", "waiting", "exited"]
"""Not yet usable; a dialog is in the way; ready for a prompt; in a turn; a tool call waits for a person's
word; over."""

STATES: tuple[State, ...] = get_args(State)

_ALIVE: frozenset[State] = frozenset(("starting", "dialog", "ready", "working", "waiting"))
STEPS: dict[State, frozenset[State]] = {
    "starting": frozenset(("dialog", "ready", "working", "waiting", "exited")),
    "dialog": _ALIVE - {"dialog"} | {"exited"},
    "ready": frozenset(("dialog", "working", "waiting", "exited")),
    "working": frozenset(("dialog", "ready", "waiting", "exited")),
    "waiting": frozenset(("dialog", "ready", "working", "exited")),
    "exited": frozenset(),
}
"""An end is final: only a resumption leads out of it, and that begins anew."""


def may_become(now: State, then: State) -> bool:
    """Whether a session can step from one state to another; to be seen in the same one again is no step."""
    return now == then or then in STEPS[now]
