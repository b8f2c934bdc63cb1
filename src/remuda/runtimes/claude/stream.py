"""Claude Code's stream-json output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from remuda.core.events import AnyUpdate, StopReason, ToolCall, ToolKind, Usage, message, thought, tool_output
from remuda.runtimes.base import Parser, Turn, TurnState
from remuda.runtimes.failures import failure
from remuda.runtimes.jsonlines import JsonLineParser

_KINDS: dict[str, ToolKind] = {
    **dict.fromkeys(("Bash", "Monitor", "TaskStop"), "execute"),
    **dict.fromkeys(("Read", "NotebookRead"), "read"),
    **dict.fromkeys(("Edit", "Write", "MultiEdit", "NotebookEdit"), "edit"),
    **dict.fromkeys(("Grep", "Glob", "ToolSearch"), "search"),
    **dict.fromkeys(("WebFetch", "WebSearch"), "fetch"),
    **dict.fromkeys(("Task", "Agent"), "think"),
}
_ASKED = 3000.0
"""Milliseconds; by itself Claude begins with a shorter pause."""

_STOPS: dict[str, StopReason] = {
    "max_tokens": "max_tokens",
    "refusal": "refusal",
    "tool_use": "max_turn_requests",
}


class _Block(msgspec.Struct, frozen=True):
    """A content block of a message; which fields it has depends on its type."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")
    tool_use_id: str = ""
    content: msgspec.Raw = msgspec.Raw(b'""')
    is_error: bool = False


class _Message(msgspec.Struct, frozen=True):
    model: str = ""
    content: list[_Block] | str = []


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


class _Denial(msgspec.Struct, frozen=True):
    tool_name: str = ""


class _Error(msgspec.Struct, frozen=True):
    """An error of a program that imitates this stream; Claude itself tells a word."""

    message: str = ""


class _Line(msgspec.Struct, frozen=True):
    """Any line. The key order varies, so lines are told apart by their decoded type only."""

    type: str = ""
    subtype: str = ""
    session_id: str | None = None
    model: str | None = None
    message: _Message | str = _Message()
    error_status: int | None = None
    attempt: int = 0
    retry_delay_ms: float = 0.0
    error: str | _Error | None = None
    is_error: bool = False
    api_error_status: int | None = None
    result: str = ""
    stop_reason: str | None = None
    usage: _Usage = _Usage()
    total_cost_usd: float | None = None
    permission_denials: list[_Denial] = []


def _blocks(line: _Line) -> list[_Block]:
    """The content blocks of a line's message; a bare text has none."""
    if isinstance(line.message, str) or isinstance(line.message.content, str):
        return []
    return line.message.content


def _block_text(raw: msgspec.Raw) -> str:
    """The text of a tool result: a string, or a list of text blocks."""
    try:
        content = msgspec.json.decode(raw, type=str | list[_Block])
    except msgspec.MsgspecError:
        return ""
    return content if isinstance(content, str) else "\n".join(block.text for block in content if block.text)


def _assistant(state: TurnState, line: _Line) -> Iterator[AnyUpdate]:
    if isinstance(line.message, _Message):
        state.model = line.message.model or state.model
    for block in _blocks(line):
        if block.type == "text" and block.text:
            yield message(block.text)
        elif block.type == "thinking" and block.thinking:
            yield thought(block.thinking)
        elif block.type == "tool_use":
            yield ToolCall(
                tool_call_id=block.id,
                title=block.name,
                kind=_KINDS.get(block.name, "other"),
                status="in_progress",
                raw_input=block.input,
            )


def _user(line: _Line) -> Iterator[AnyUpdate]:
    for block in _blocks(line):
        if block.type == "tool_result":
            text = _block_text(block.content)
            yield tool_output(block.tool_use_id, "failed" if block.is_error else "completed", text)


def _reason(line: _Line) -> str:
    return line.error.message if isinstance(line.error, _Error) else line.error or ""


def _result(state: TurnState, line: _Line) -> None:
    """The last line. A failed API call is called a success here: only ``is_error`` tells."""
    usage = line.usage
    state.text = line.result
    state.usage = Usage(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_input_tokens,
        usage.cache_creation_input_tokens,
    )
    state.cost_usd = line.total_cost_usd
    state.stop_reason = _STOPS.get(line.stop_reason or "", "end_turn")
    state.refused = [denial.tool_name for denial in line.permission_denials]
    if line.is_error:
        state.text = ""
        state.failure = failure(line.result or _reason(line) or line.subtype, line.api_error_status)


def _retried(line: _Line) -> str:
    """Why a call of the model is tried again. A first pause of seconds is what the endpoint asked for."""
    asked = line.attempt == 1 and line.retry_delay_ms >= _ASKED
    after = f", retry after {line.retry_delay_ms / 1000:g} s" if asked else ""
    return f"the model endpoint failed: {_reason(line) or 'unknown'}{after}"


def _read(state: TurnState, line: _Line) -> Iterable[AnyUpdate]:
    state.session = line.session_id or state.session
    if line.type == "system" and line.subtype == "api_retry":
        state.trouble = failure(_retried(line), line.error_status)
        return ()
    if line.type == "system" and line.subtype == "init":
        state.model = line.model
    if line.type == "assistant" and not line.error:
        state.trouble = None
        return _assistant(state, line)
    if line.type == "user":
        return _user(line)
    if line.type == "result":
        _result(state, line)
    return ()


def parser(_turn: Turn, _prompt: str) -> Parser:
    """A parser for one turn."""
    return JsonLineParser(_Line, _read)
