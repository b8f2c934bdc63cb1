"""The output formats that a declared runtime can choose from, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Literal

import msgspec

from remuda.core.events import AnyUpdate, Failure, ToolCall, ToolKind, message
from remuda.runtimes.base import Connection, Parser, Turn, TurnState
from remuda.runtimes.failures import failure

Shape = Literal["text", "acp", "claude-stream-json", "codex-jsonl", "gemini-stream-json"]
"""Plain text; the Agent Client Protocol; and the event streams of runtimes that others imitate."""

Counts = Literal["turn", "session"]
"""Since when a program counts the tokens that it tells."""

_IMITATED: dict[Shape, str] = {
    "claude-stream-json": "claude",
    "codex-jsonl": "codex",
    "gemini-stream-json": "gemini",
}


class TextParser:
    """Every line is a part of the answer, and the exit code tells how it went. Silence is no answer."""

    def __init__(self, turn: Turn) -> None:
        self.state = TurnState(session=turn.session)
        self._lines: list[str] = []

    def feed(self, line: bytes) -> Iterable[AnyUpdate]:
        """The line as a part of the answer."""
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        self._lines.append(text)
        return (message(f"{text}\n"),)

    def hear(self, line: bytes) -> None:
        """Standard error counts only when the program fails."""

    def say(self) -> bytes | None:
        """There is nothing to answer."""
        return None

    def finish(self, _leftover: bytes | None) -> None:
        """The answer is complete."""
        self.state.text = "\n".join(self._lines).strip()
        if self.state.text:
            self.state.stop_reason = "end_turn"


class TunedParser:
    """A parser for a program that imitates another: it has tools of its own, words of its own for a failed
    attempt, and may count its tokens since the session began, which says nothing about a turn that continues
    one."""

    def __init__(
        self, inner: Parser, tools: Mapping[str, ToolKind], trouble: Sequence[str], *, counted: bool
    ) -> None:
        self.state = inner.state
        self.say = inner.say
        self._inner = inner
        self._tools = tools
        self._trouble = tuple(map(re.compile, trouble))
        self._counted = counted

    def feed(self, line: bytes) -> Iterable[AnyUpdate]:
        """The updates in one line of stdout, with the kinds of the program's own tools."""
        updates = tuple(map(self._tuned, self._inner.feed(line)))
        if updates and self._trouble:
            self.state.trouble = None
        return updates

    def hear(self, line: bytes) -> None:
        """One line of stderr, which may tell of a failed attempt."""
        self._inner.hear(line)
        self.state.trouble = _trouble(self._trouble, line) or self.state.trouble

    def _tuned(self, update: AnyUpdate) -> AnyUpdate:
        if isinstance(update, ToolCall) and update.title in self._tools:
            return msgspec.structs.replace(update, kind=self._tools[update.title])
        return update

    def finish(self, leftover: bytes | None) -> None:
        """The output has ended."""
        self._inner.finish(leftover)
        if not self._counted:
            self.state.usage = None


def parser(
    shape: Shape,
    counts: Counts = "turn",
    tools: Mapping[str, ToolKind] | None = None,
    trouble: Sequence[str] = (),
) -> Callable[[Turn, str], Parser]:
    """What makes a shape's parser for a turn; no adapter is imported before it is called."""

    def make(turn: Turn, prompt: str) -> Parser:
        if shape == "acp":
            from remuda.runtimes.dialogue import one_turn

            return one_turn(connection(counts, tools, trouble)(turn), prompt)
        counted = counts == "turn" or not turn.resume
        return TunedParser(_made(shape, turn, prompt), tools or {}, trouble, counted=counted)

    return make


def connection(
    counts: Counts, tools: Mapping[str, ToolKind] | None, trouble: Sequence[str]
) -> Callable[[Turn], Connection]:
    """What makes a conversation over the Agent Client Protocol."""
    patterns = tuple(map(re.compile, trouble))

    def hear(state: TurnState, line: bytes) -> None:
        state.trouble = _trouble(patterns, line) or state.trouble

    def make(turn: Turn) -> Connection:
        from remuda.runtimes.acp import AcpConnection, Dialect

        return AcpConnection(turn, Dialect(counted_since=counts, kinds=tools or {}, hear=hear))

    return make


def _trouble(patterns: Sequence[re.Pattern[str]], line: bytes) -> Failure | None:
    """The failed attempt that a line of stderr tells of; a pattern's group holds the reason."""
    text = line.decode("utf-8", "replace")
    found = next(filter(None, (pattern.search(text) for pattern in patterns)), None)
    return failure(found[found.lastindex or 0]) if found else None


def _made(shape: Shape, turn: Turn, prompt: str) -> Parser:
    if shape == "text":
        return TextParser(turn)
    made: Parser = import_module(f"remuda.runtimes.{_IMITATED[shape]}.stream").parser(turn, prompt)
    return made
