"""Hermes over a connection. Under guard every tool asks on it, by a plugin of ours (see ``plugin``)."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from remuda.core.events import AnyUpdate, Failure
from remuda.guard.tools import ToolCall
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.acp import AcpConnection
from remuda.runtimes.acp_guard import Manners, Told
from remuda.runtimes.base import Connection, Turn
from remuda.runtimes.hermes import plugin
from remuda.runtimes.hermes.stream import DIALECT

_GIVEN_UP = re.compile(rb"^[\d: -]+\[WARNING\] acp_adapter\.\w+: \w+ request timed out")
"""Hermes waits a minute for an answer, and then goes on as if it was a no."""


class _Question(msgspec.Struct, frozen=True):
    """Hermes' own question about a dangerous command, or the plugin's, whose command is a tool call."""

    command: str
    description: str


class _Edit(msgspec.Struct, frozen=True):
    """A question of Hermes' own, about a change to a file."""

    tool: str
    arguments: dict[str, object]


class _Shown(msgspec.Struct, frozen=True):
    """A tool call, as the plugin shows it."""

    tool: str
    cwd: str
    input: dict[str, object]


def understood(raw: msgspec.Raw, mark: str, cwd: str) -> tuple[ToolCall | None, bool]:
    """The tool call that a question is about, if it can be told, and whether it is the plugin's question."""
    if (question := wire.decode(raw, _Question)) is not None:
        if question.description != mark:
            return ToolCall("terminal", {"command": question.command}, cwd), False
        shown = wire.decode(question.command.encode("utf-8", "replace"), _Shown)
        return (ToolCall(shown.tool, shown.input, shown.cwd) if shown else None), True
    if (edit := wire.decode(raw, _Edit)) is not None:
        return ToolCall(edit.tool, edit.arguments, cwd), False
    return None, False


class HermesConnection(AcpConnection):
    """A conversation with Hermes, which asks by itself about edits and dangerous commands.

    Under a binding guard no prompt is sent before the plugin has reported, and for each tool call that begins
    one must have been allowed before, in the same turn: questions and calls do not name each other.
    """

    def __init__(self, turn: Turn) -> None:
        self._mark = plugin.mark(turn)
        dialect = msgspec.structs.replace(DIALECT, manners=Manners(understands=self._understand))
        super().__init__(turn, dialect)
        self._bound = turn.guard is not None and turn.guard.binding
        self.state.guard = "awaited" if self._bound else "none"
        self._allowed = 0
        self._running: set[str] = set()

    def hear(self, line: bytes) -> None:
        """One line of stderr: the plugin's report, trouble, or that Hermes waits no longer for a person."""
        if self._bound and line.strip() == self._mark.encode():
            self.state.guard = "reported"
        if _GIVEN_UP.search(line) and (question := next(iter(self.questions), None)):
            self.decide(question.id, False, "Hermes waited no longer for an answer")
        super().hear(line)

    def _opened(self, result: msgspec.Raw) -> None:
        if self.state.guard == "awaited":
            self._fail(Failure("refused", "the guard did not report at the start of the session"))
            return
        super()._opened(result)

    def _begin(self, text: str) -> None:
        self._allowed = 0
        super()._begin(text)

    def _understand(self, call: wire.Change, _told: Told, cwd: str) -> ToolCall | None:
        return understood(call.raw_input, self._mark, cwd)[0]

    def _granted(self, call: wire.Change) -> None:
        self._allowed += understood(call.raw_input, self._mark, "")[1]

    def _noted(self, update: wire.Change, ident: str) -> Iterable[AnyUpdate]:
        again = ident in self._past and update.session_update == "tool_call"
        if self._bound and (again or ident not in self._running):
            self._running.add(ident)
            self._allowed -= 1
        if self._allowed < 0:
            self._fail(Failure("refused", "a tool ran that had not asked the guard"))
            return ()
        return super()._noted(update, ident)


def connection(turn: Turn) -> Connection:
    """A conversation, under the guard or in a person's own session."""
    return HermesConnection(turn)
