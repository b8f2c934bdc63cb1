"""What an agent tells of one turn over the Agent Client Protocol, as updates and as the turn's state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, get_args

from remuda.core.events import (
    AnyUpdate,
    ToolCall,
    ToolKind,
    ToolStatus,
    UsageUpdate,
    message,
    thought,
    tool_output,
)
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.acp_dialect import Dialect
from remuda.runtimes.base import TurnState

Word = TypeVar("Word", bound=str)

_KINDS: tuple[ToolKind, ...] = get_args(ToolKind)
_STATUSES: tuple[ToolStatus, ...] = get_args(ToolStatus)


class Course:
    """The course of one turn: its text so far, its tool calls, and those that were refused."""

    def __init__(self, state: TurnState, dialect: Dialect) -> None:
        self._state = state
        self._dialect = dialect
        self._statuses: dict[str, ToolStatus] = {}
        self._calls: dict[str, ToolCall] = {}
        self._refusals: set[str] = set()
        self._between = False
        self.begun = False

    @property
    def acts(self) -> bool:
        """Whether a tool call was told of."""
        return bool(self._statuses)

    def chunk(self, update: wire.Change) -> Iterable[AnyUpdate]:
        """A piece of text. What agents put in front of it to set it off from a tool call is left out."""
        text = (wire.decode(update.content, wire.Block) or wire.Block()).text or ""
        spoken = update.session_update == "agent_message_chunk"
        if spoken and self._between:
            text = text.lstrip("\n")
        if not text or (spoken and self._dialect.chatter(text)):
            return ()
        self._progress()
        if not spoken:
            return (thought(text),)
        self._state.text = text if self._between else self._state.text + text
        self._between = False
        return (message(text),)

    def filled(self, update: wire.Change) -> Iterable[AnyUpdate]:
        """How full the context is. Before anything is said it tells of the turns before."""
        if not self.begun or update.used is None:
            return ()
        return (UsageUpdate(used=update.used, size=update.size or 0),)

    def tool(self, update: wire.Change, ident: str) -> Iterable[AnyUpdate]:
        """A tool call, or what became of it. One that was refused has been told to its end."""
        self._progress()
        self._between = True
        if ident in self._refusals:
            return ()
        status = word(update.status, _STATUSES, self._statuses.get(ident, "pending"))
        known, self._statuses[ident] = ident in self._statuses, status
        call = self._call(update, ident, status)
        text = wire.output(update)
        if status == "failed" and self._dialect.refuses(text):
            self._state.refused.append(self._dialect.tool(call))
        outcome = tool_output(ident, status, text)
        if known:
            return (outcome,)
        return (call, outcome) if status in ("completed", "failed") else (call,)

    def refuse(self, call: wire.Change, tool: str, words: str) -> Iterable[AnyUpdate]:
        """A refusal, as a tool call that failed."""
        ident = call.tool_call_id or "unnamed"
        if ident in self._refusals:
            return ()
        self._refusals.add(ident)
        self._state.refused.append(tool)
        self._progress()
        self._between = True
        outcome = tool_output(ident, "failed", words)
        known, self._statuses[ident] = ident in self._statuses, "failed"
        return (outcome,) if known else (self._call(call, ident, "failed"), outcome)

    def _call(self, change: wire.Change, ident: str, status: ToolStatus) -> ToolCall:
        """A tool call as it was first told."""
        title = change.title or change.kind or "tool"
        call = ToolCall(
            tool_call_id=ident,
            title=title,
            kind=self._dialect.kinds.get(title) or word(change.kind, _KINDS, "other"),
            status=status,
            raw_input=wire.shown_input(change),
        )
        return self._calls.setdefault(ident, call)

    def _progress(self) -> None:
        self.begun = True
        self._state.trouble = None


def word(given: str | None, known: tuple[Word, ...], otherwise: Word) -> Word:
    """A word of the protocol's, if it is one."""
    return next((entry for entry in known if entry == given), otherwise)
