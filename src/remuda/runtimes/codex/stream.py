"""Codex's ``exec --json`` output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from remuda.core.events import AnyUpdate, ToolCall, ToolKind, Usage, message, thought, tool_output
from remuda.runtimes.base import Parser, Turn, TurnState
from remuda.runtimes.failures import failure
from remuda.runtimes.jsonlines import JsonLineParser

TOOLS: dict[str, ToolKind] = {
    "command_execution": "execute",
    "file_change": "edit",
    "mcp_tool_call": "other",
    "web_search": "fetch",
    "collab_tool_call": "think",
}


class Change(msgspec.Struct, frozen=True):
    """A file that is changed, and how."""

    path: str = ""
    kind: str = ""


class Item(msgspec.Struct, frozen=True):
    """A thing in a turn; which fields it has depends on its type."""

    id: str = ""
    type: str = ""
    text: str = ""
    command: str = ""
    aggregated_output: str = ""
    exit_code: int | None = None
    status: str = ""
    server: str = ""
    tool: str = ""
    query: str = ""
    changes: list[Change] = []


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    reasoning_output_tokens: int = 0


class _Error(msgspec.Struct, frozen=True):
    message: str = ""


class _Line(msgspec.Struct, frozen=True):
    type: str = ""
    thread_id: str | None = None
    item: Item = Item()
    usage: _Usage = _Usage()
    message: str = ""
    error: _Error = _Error()


def title(item: Item) -> str:
    """What a tool call is about, in a few words."""
    if item.type == "file_change":
        return ", ".join(change.path for change in item.changes) or "edit"
    if item.type == "mcp_tool_call":
        return f"{item.server}.{item.tool}"
    return item.command or item.query or item.tool or item.type


def called(item: Item) -> ToolCall:
    """A tool call that begins."""
    shown = {"command": item.command} if item.command else {"title": title(item)}
    return ToolCall(
        tool_call_id=item.id,
        title=title(item),
        kind=TOOLS[item.type],
        status="in_progress",
        raw_input=msgspec.Raw(msgspec.json.encode(shown)),
    )


def completed(state: TurnState, item: Item, started: set[str]) -> Iterator[AnyUpdate]:
    """What a thing that is complete tells; ``started`` are the tool calls that were seen to begin."""
    if item.type == "agent_message":
        state.text = item.text
        yield message(item.text)
    elif item.type == "reasoning":
        yield thought(item.text)
    elif item.type in TOOLS:
        if item.id not in started:
            yield called(item)
        failed = item.status in ("failed", "declined") or bool(item.exit_code)
        if item.status == "declined":
            state.refused.append(title(item))
        yield tool_output(item.id, "failed" if failed else "completed", item.aggregated_output)


def _turn_completed(state: TurnState, usage: _Usage) -> None:
    state.stop_reason = "end_turn"
    state.usage = Usage(
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_input_tokens,
        usage.cache_write_input_tokens,
        usage.reasoning_output_tokens,
    )


def parser(_turn: Turn, _prompt: str) -> Parser:
    """A parser for one turn. An ``error`` line is trouble Codex may get over; ``turn.failed`` is final."""
    started: set[str] = set()

    def read(state: TurnState, line: _Line) -> Iterable[AnyUpdate]:
        match line.type:
            case "thread.started":
                state.session = line.thread_id
            case "error":
                state.trouble = failure(line.message)
            case "turn.failed":
                state.failure = failure(line.error.message)
            case "turn.completed":
                _turn_completed(state, line.usage)
            case "item.started" if line.item.type in TOOLS:
                state.trouble = None
                started.add(line.item.id)
                return (called(line.item),)
            case "item.completed" if line.item.type != "error":
                state.trouble = None
                return completed(state, line.item, started)
        return ()

    return JsonLineParser(_Line, read)
