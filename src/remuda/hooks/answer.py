"""A verdict in the words that agent CLIs honour: a JSON object, a text for the agent, an exit code.

An allow says nothing: an explicit one would grant what the CLI itself may want to ask about. A deny is said
three times over, for not all CLIs heed the same: in JSON, on standard error, and as exit code 2. An ask is
passed on to CLIs that put it to a person, and that refuse where there is none; to others it is a deny.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import msgspec

from remuda.guard.model import Verdict
from remuda.hooks.events import Event
from remuda.hooks.text import printable

Dialect = Literal["claude", "codex", "copilot", "gemini", "hermes"]
"""``claude``: the decision in an object of its own. ``codex``: the same, but an ask would let the tool run.
``copilot``: flat. ``gemini`` and ``hermes``: a decision and a reason, to deny or to block; to Hermes the exit
code means nothing, to Gemini nothing without a text."""

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
GRANTED, DENIED = 0, 2
"""The exit codes. Any other lets the tool run in one CLI or another, whatever is printed."""

ASKING: frozenset[Dialect] = frozenset({"claude", "copilot"})
"""Whose CLI puts an ask to a person, and refuses the tool where nobody is there."""

_ALL: frozenset[Event] = frozenset({"SessionStart", "UserPromptSubmit", "Stop"})
CONTEXTUAL: dict[Dialect, frozenset[Event]] = {
    "claude": _ALL,
    "codex": _ALL,
    "copilot": _ALL,
    "gemini": _ALL,
    "hermes": frozenset({"UserPromptSubmit"}),
}
"""For which events a CLI hands a text on to its model; seen on the real programs."""

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


class _Additional(msgspec.Struct, frozen=True, rename="camel"):
    hook_event_name: str
    additional_context: str


class _Context(msgspec.Struct, frozen=True, rename="camel"):
    hook_specific_output: _Additional


class _Flat(msgspec.Struct, frozen=True, rename="camel"):
    additional_context: str


class _Hermes(msgspec.Struct, frozen=True):
    context: str


class _Plain(msgspec.Struct, frozen=True):
    decision: str
    reason: str


def _in_an_object(decision: str, words: str) -> msgspec.Struct:
    return _Claude(_Decision("PreToolUse", decision, words))


_SHAPES: dict[Dialect, Callable[[str, str], msgspec.Struct]] = {
    "claude": _in_an_object,
    "codex": _in_an_object,
    "copilot": lambda decision, words: _Copilot(decision, words, words),
    "gemini": _Plain,
    "hermes": lambda _decision, words: _Plain("block", words),
}

SILENCE = Answer(b"{}\n", "", GRANTED)


def unattended(verdict: Verdict) -> Verdict:
    """What a verdict amounts to when nobody is there to be asked: an ask is a deny."""
    if verdict.decision != "ask":
        return verdict
    reason = f"a person would have to agree: {verdict.reason}"
    return msgspec.structs.replace(verdict, decision="deny", reason=reason)


def told(verdict: Verdict) -> str:
    """A refusal in one line for the agent: why, by which rule, and what to do instead."""
    reason = printable(f"{verdict.reason} ({verdict.rule})", _LONGEST)
    hint = printable(verdict.hint, _LONGEST)
    return f"{reason}. {hint}" if hint else reason


def answer(verdict: Verdict, dialect: Dialect, *, attended: bool = False) -> Answer:
    """What to answer. An ask is one only where a person may be there, and the CLI would ask them."""
    if verdict.decision == "allow":
        return SILENCE
    if verdict.decision == "ask" and attended and dialect in ASKING:
        return Answer(_said(dialect, "ask", told(verdict)), "", GRANTED)
    words = told(unattended(verdict))
    return Answer(_said(dialect, "deny", words), f"remuda: denied: {words}\n", DENIED)


def refusal(dialect: Dialect, words: str) -> str:
    """A deny of no rule, in JSON: for a shell that finds no guard to ask."""
    return _said(dialect, "deny", words).decode().strip()


def granted(verdict: Verdict, dialect: Dialect) -> Answer:
    """An explicit allow, where a CLI has a word for it that is not an error to it; silence elsewhere."""
    said = _said(dialect, "allow", told(verdict)) if dialect in ASKING else SILENCE.stdout
    return Answer(said, "", GRANTED)


def context_answer(dialect: Dialect, event: Event, text: str) -> Answer:
    """A text for the model, as a CLI takes one for an event; at the end of a turn, why that goes on."""
    assert event in CONTEXTUAL[dialect]
    said = _Plain("block", text) if event == "Stop" else _told(dialect, event, text)
    return Answer(msgspec.json.encode(said) + b"\n", "", GRANTED)


def _told(dialect: Dialect, event: Event, text: str) -> msgspec.Struct:
    if dialect == "copilot":
        return _Flat(text)
    return _Hermes(text) if dialect == "hermes" else _Context(_Additional(event, text))


def openings(dialect: Dialect) -> list[tuple[int, str]]:
    """How an answer that says something begins, with the exit code that belongs to it."""
    spoken = [(DENIED, "deny"), *([(GRANTED, "ask"), (GRANTED, "allow")] if dialect in ASKING else [])]
    return [(code, _said(dialect, decision, "").decode().partition('""')[0]) for code, decision in spoken]


def _said(dialect: Dialect, decision: str, words: str) -> bytes:
    return msgspec.json.encode(_SHAPES[dialect](decision, words)) + b"\n"
