"""Where agents differ in how they speak the Agent Client Protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from remuda.core.events import ToolCall, ToolKind, Usage
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.acp_guard import Manners
from remuda.runtimes.base import TurnState


def _never(_output: str) -> bool:
    """A failed tool call has failed, and was not refused."""
    return False


def _title(call: ToolCall) -> str:
    return call.title


def _deaf(_state: TurnState, _line: bytes) -> None:
    """Standard error tells nothing."""


def _no_chatter(_text: str) -> bool:
    """All that is said is the model's answer."""
    return False


def _as_is(name: str) -> str:
    return name


def counted(outcome: wire.Outcome) -> Usage | None:
    """The tokens where the protocol puts them."""
    counts = outcome.usage
    if counts is None:
        return None
    return Usage(
        counts.input_tokens or 0,
        counts.output_tokens or 0,
        counts.cached_read_tokens or 0,
        counts.cached_write_tokens or 0,
        counts.thought_tokens or 0,
    )


def spent(now: Usage, before: Usage) -> Usage:
    """The tokens that a count has grown by."""
    counts = zip(msgspec.structs.astuple(now), msgspec.structs.astuple(before), strict=True)
    return Usage(*(max(0, new - old) for new, old in counts))


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """Where agents differ in how they speak the protocol.

    ``continues`` is the method that takes up an earlier session. ``gets_stuck``: a session in which ending a
    turn has failed takes no prompt any more, but a copy of it does. ``settles`` is a mode that is asked for
    between that and the prompt, where history is told for a while after the answer. ``usage`` finds the
    tokens in the answer to a prompt; they are counted since the ``turn`` began, or the ``process``, or the
    ``session``, which says nothing about the first turn that continues one, or since the last ``call`` of
    the model, which says nothing about a turn with tool calls. ``uncounted_is_failed``: an answer without
    tokens never came from the model, its text is an error message. ``refuses`` tells by the output of a
    failed tool call that a rule of the agent's own kept it from running, and ``tool`` the name of its tool.
    ``kinds`` are those of tool calls by their titles, where the agent itself does not tell. ``chatter`` is
    what the program says itself in its model's place. ``manners`` is how it asks before it acts.
    """

    continues: Literal["session/load", "session/resume"] = "session/load"
    gets_stuck: bool = False
    settles: str | None = None
    usage: Callable[[wire.Outcome], Usage | None] = counted
    counted_since: Literal["turn", "process", "session", "call"] = "turn"
    uncounted_is_failed: bool = False
    refuses: Callable[[str], bool] = _never
    tool: Callable[[ToolCall], str] = _title
    kinds: Mapping[str, ToolKind] = {}
    model: Callable[[str], str] = _as_is
    hear: Callable[[TurnState, bytes], None] = _deaf
    chatter: Callable[[str], bool] = _no_chatter
    manners: Manners = Manners()
