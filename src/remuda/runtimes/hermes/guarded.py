"""Hermes under guard: every tool asks over the connection, by a plugin of ours (see ``plugin``)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from remuda.core.events import AnyUpdate, Failure
from remuda.guard.tools import ToolCall
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.acp import AcpParser
from remuda.runtimes.acp_guard import Manners, Told
from remuda.runtimes.base import Parser, Turn
from remuda.runtimes.hermes import plugin
from remuda.runtimes.hermes.stream import DIALECT


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


class GuardedParser(AcpParser):
    """One guarded turn. The prompt is sent once the plugin has reported, and for each tool call that begins
    one must have been allowed before: questions and calls do not name each other."""

    def __init__(self, turn: Turn, prompt: str) -> None:
        dialect = msgspec.structs.replace(DIALECT, manners=Manners(understands=self._understand))
        super().__init__(turn, prompt, dialect)
        self.state.guard = "awaited"
        self._mark = plugin.mark(turn)
        self._plugin_asks = False
        self._granted = 0
        self._running: set[str] = set()

    def hear(self, line: bytes) -> None:
        """One line of stderr: the plugin's report, or trouble."""
        if line.strip() == self._mark.encode():
            self.state.guard = "reported"
        super().hear(line)

    def _opened(self, result: msgspec.Raw) -> None:
        if self.state.guard != "reported":
            self._fail(Failure("refused", "the guard did not report at the start of the session"))
            return
        super()._opened(result)

    def _understand(self, call: wire.Change, _told: Told, cwd: str) -> ToolCall | None:
        asked, self._plugin_asks = understood(call.raw_input, self._mark, cwd)
        return asked

    def _choose(self, ident: wire.Id, options: list[wire.Option], allowed: bool) -> bool:
        granted = super()._choose(ident, options, allowed)
        self._granted += granted and self._plugin_asks
        return granted

    def _noted(self, update: wire.Change, ident: str) -> Iterable[AnyUpdate]:
        if ident not in self._running:
            self._running.add(ident)
            self._granted -= 1
        if self._granted < 0:
            self._fail(Failure("refused", "a tool ran that had not asked the guard"))
            return ()
        return super()._noted(update, ident)


def parser(turn: Turn, prompt: str) -> Parser:
    """A parser for one guarded turn."""
    return GuardedParser(turn, prompt)
