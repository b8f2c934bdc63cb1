"""The rehearsal agent's JSON-lines output."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Literal

import msgspec

from remuda.core.events import AnyUpdate, ToolCall, ToolKind, Usage, message, thought, tool_output
from remuda.runtimes.base import Parser, Turn, TurnState
from remuda.runtimes.failures import failure
from remuda.runtimes.jsonlines import JsonLineParser

_KINDS: dict[str, ToolKind] = {"Bash": "execute", "Read": "read", "Write": "edit"}


class _Tokens(msgspec.Struct, frozen=True):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


class _Error(msgspec.Struct, frozen=True):
    status: int | None = None
    message: str = ""


class _Line(msgspec.Struct, frozen=True):
    type: str = ""
    session_id: str | None = None
    model: str | None = None
    text: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")
    status: Literal["completed", "failed", "refused"] | int | None = None
    output: str = ""
    message: str = ""
    usage: _Tokens = _Tokens()
    stop_reason: str | None = None
    error: _Error | None = None


def _ended(state: TurnState, line: _Line) -> None:
    state.text = line.text
    state.usage = Usage(*msgspec.structs.astuple(line.usage))
    state.stop_reason = "max_tokens" if line.stop_reason == "max_tokens" else "end_turn"
    if line.error is not None:
        state.failure = failure(line.error.message, line.error.status)


def _read(names: dict[str, str], state: TurnState, line: _Line) -> Iterable[AnyUpdate]:
    state.session = line.session_id or state.session
    state.model = line.model or state.model
    match line.type:
        case "text":
            state.trouble = None
            return (message(line.text),)
        case "thought":
            return (thought(line.text),)
        case "tool_call":
            state.trouble = None
            names[line.id] = line.name
            kind = _KINDS.get(line.name, "other")
            return (
                ToolCall(
                    tool_call_id=line.id,
                    title=line.name,
                    kind=kind,
                    status="in_progress",
                    raw_input=line.input,
                ),
            )
        case "tool_result":
            if line.status == "refused":
                state.refused.append(names.get(line.id) or line.id)
            return (
                tool_output(line.id, "completed" if line.status == "completed" else "failed", line.output),
            )
        case "retry":
            state.trouble = failure(line.message, line.status if isinstance(line.status, int) else None)
        case "result":
            _ended(state, line)
    return ()


def parser(_turn: Turn, _prompt: str) -> Parser:
    """A parser for one turn; it remembers the tools' names, which are told only when a call starts."""
    names: dict[str, str] = {}
    return JsonLineParser(_Line, partial(_read, names))
