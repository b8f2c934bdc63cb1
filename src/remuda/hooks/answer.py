"""A verdict in the words that agent CLIs honour: a JSON object, a text for the agent, an exit code.

An allow says nothing: an explicit one would grant what the CLI itself may want to ask about. A deny is said
three times over, for not all CLIs heed the same: in JSON, on standard error, and as exit code 2.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from remuda.guard.model import Verdict
from remuda.hooks.text import printable

Dialect = Literal["claude", "copilot"]
"""``claude``: the decision in an object of its own, as Claude and Codex read it. ``copilot``: flat."""

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
GRANTED, DENIED = 0, 2
"""The exit codes. Any other lets the tool run in one CLI or another, whatever is printed."""

_LONGEST = 2000


class Answer(msgspec.Struct, frozen=True):
    """What a hook prints, what it tells, and how it exits."""

    stdout: bytes
    stderr: str
    code: int


class _Decision(msgspec.Struct, frozen=True, rename="camel"):
    hook_event_name: str
    permission_decision: str
    permission_decision_reason: str


class _Claude(msgspec.Struct, frozen=True, rename="camel"):
    hook_specific_output: _Decision


class _Copilot(msgspec.Struct, frozen=True, rename="camel"):
    permission_decision: str
    permission_decision_reason: str
    message: str


SILENCE = Answer(b"{}\n", "", GRANTED)


def answer(verdict: Verdict, dialect: Dialect) -> Answer:
    """What to answer. Nobody is there to be asked, so that an ask is a deny."""
    if verdict.decision == "allow":
        return SILENCE
    asks = "a person would have to agree: " if verdict.decision == "ask" else ""
    reason = printable(f"{asks}{verdict.reason} ({verdict.rule})", _LONGEST)
    hint = printable(verdict.hint, _LONGEST)
    told = f"{reason}. {hint}" if hint else reason
    said = (
        _Copilot("deny", told, told)
        if dialect == "copilot"
        else _Claude(_Decision("PreToolUse", "deny", told))
    )
    return Answer(msgspec.json.encode(said) + b"\n", f"remuda: denied: {told}\n", DENIED)
