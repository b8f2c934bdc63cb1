"""Copilot's JSON-lines output, and the usage file it leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import msgspec

from remuda.core.events import AnyUpdate, ToolCall, ToolKind, Usage, message, thought, tool_output
from remuda.runtimes.base import Parser, Turn, TurnState
from remuda.runtimes.failures import failure
from remuda.runtimes.jsonlines import JsonLineParser

_KINDS: dict[str, ToolKind] = {
    **dict.fromkeys(("bash", "read_bash", "stop_bash", "write_bash", "powershell"), "execute"),
    **dict.fromkeys(("view",), "read"),
    **dict.fromkeys(("edit", "create", "apply_patch", "str_replace_editor"), "edit"),
    **dict.fromkeys(("grep", "rg", "glob"), "search"),
    **dict.fromkeys(("web_fetch", "web_search"), "fetch"),
    **dict.fromkeys(("task",), "think"),
}


class _ToolResult(msgspec.Struct, frozen=True):
    content: str = ""


class _Error(msgspec.Struct, frozen=True):
    message: str = ""
    code: str = ""


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    """What a line carries; which fields it has depends on the line's type."""

    content: str = ""
    model: str | None = None
    reasoning_text: str = ""
    tool_call_id: str = ""
    tool_name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    success: bool = True
    result: _ToolResult | str = ""
    error: _Error = _Error()
    status_code: int | None = None
    error_message: str = ""
    message: str = ""
    reason: str = ""


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    data: _Data = _Data()
    session_id: str | None = None
    exit_code: int = 0


class _Tokens(msgspec.Struct, frozen=True, rename="camel"):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


class _ModelMetrics(msgspec.Struct, frozen=True):
    usage: _Tokens = _Tokens()


class _UsageFile(msgspec.Struct, frozen=True, rename="camel"):
    model_metrics: dict[str, _ModelMetrics] = {}


def _assistant(state: TurnState, data: _Data) -> Iterator[AnyUpdate]:
    state.trouble = None
    state.model = data.model or state.model
    if data.reasoning_text:
        yield thought(data.reasoning_text)
    if data.content:
        state.text = data.content
        yield message(data.content)


def _tool_start(names: dict[str, str], data: _Data) -> ToolCall:
    names[data.tool_call_id] = data.tool_name
    return ToolCall(
        tool_call_id=data.tool_call_id,
        title=data.tool_name,
        kind=_KINDS.get(data.tool_name, "other"),
        status="in_progress",
        raw_input=data.arguments,
    )


def _tool_end(names: dict[str, str], state: TurnState, data: _Data) -> AnyUpdate:
    if not data.success and data.error.code in ("denied", "rejected"):
        state.refused.append(names.get(data.tool_call_id) or data.tool_call_id)
    output = data.result if isinstance(data.result, str) else data.result.content
    text = output if data.success else data.error.message
    return tool_output(data.tool_call_id, "completed" if data.success else "failed", text)


def _ended(state: TurnState, line: _Line) -> None:
    state.session = line.session_id or state.session
    state.stop_reason = "end_turn"
    if line.exit_code and state.failure is None:
        state.failure = state.trouble or failure(f"Copilot reported exit code {line.exit_code}")


def _plain(text: str) -> str:
    """An error message without the JSON that it may be wrapped in."""
    try:
        error = msgspec.json.decode(text, type=_Error | str)
    except (msgspec.MsgspecError, RecursionError):
        return text
    return error if isinstance(error, str) else error.message or text


def _read(names: dict[str, str], state: TurnState, line: _Line) -> Iterable[AnyUpdate]:
    match line.type:
        case "assistant.message":
            return _assistant(state, line.data)
        case "tool.execution_start":
            return (_tool_start(names, line.data),)
        case "tool.execution_complete":
            return (_tool_end(names, state, line.data),)
        case "model.call_failure":
            state.trouble = failure(_plain(line.data.error_message), line.data.status_code)
        case "session.error":
            state.failure = state.trouble or failure(line.data.message, line.data.status_code)
        case "result":
            _ended(state, line)
    return ()


def _usage(state: TurnState, content: bytes) -> None:
    try:
        models = msgspec.json.decode(content, type=_UsageFile).model_metrics
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
    used = [Usage(*msgspec.structs.astuple(metrics.usage)) for metrics in models.values()]
    state.usage = sum(used, Usage()) if used else None


def parser(_turn: Turn, _prompt: str) -> Parser:
    """A parser for one turn; it remembers the tools' names, which are told only when a call starts."""
    names: dict[str, str] = {}
    return JsonLineParser(_Line, partial(_read, names), _usage)
