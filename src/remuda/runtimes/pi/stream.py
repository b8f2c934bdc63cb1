"""Pi's ``--mode json`` output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from remuda.core.events import (
    AnyUpdate,
    Failure,
    StopReason,
    ToolCall,
    ToolKind,
    Usage,
    message,
    thought,
    tool_output,
)
from remuda.runtimes.base import Parser, Turn, TurnState
from remuda.runtimes.failures import failure, old_node
from remuda.runtimes.jsonlines import JsonLineParser
from remuda.runtimes.pi.extensions import REFUSAL

NODE = (22, 19)
_KINDS: dict[str, ToolKind] = {
    **dict.fromkeys(("bash", "powershell"), "execute"),
    **dict.fromkeys(("read", "ls"), "read"),
    **dict.fromkeys(("edit", "write"), "edit"),
    **dict.fromkeys(("grep", "find"), "search"),
}
_STOPS: dict[str, StopReason] = {"stop": "end_turn", "length": "max_tokens"}
_NO_KEY = b"No API key found"
_ELSEWHERE = b"Session found in different project"
_STATUS = re.compile(r"(\d{3})\b")


class _Cost(msgspec.Struct, frozen=True):
    total: float = 0


class _Usage(msgspec.Struct, frozen=True, rename="camel"):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: _Cost = _Cost()


class _Block(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    thinking: str = ""


class _Message(msgspec.Struct, frozen=True, rename="camel"):
    role: str = ""
    content: list[_Block] | str = ""
    model: str | None = None
    usage: _Usage = _Usage()
    stop_reason: str = ""
    error_message: str = ""

    @property
    def blocks(self) -> list[_Block]:
        return [_Block("text", self.content)] if isinstance(self.content, str) else self.content


class _ToolResult(msgspec.Struct, frozen=True):
    content: list[_Block] = []


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    """One event; which fields it has depends on its type."""

    type: str = ""
    id: str | None = None
    message: _Message = _Message()
    tool_call_id: str = ""
    tool_name: str = ""
    args: msgspec.Raw = msgspec.Raw(b"{}")
    result: _ToolResult = _ToolResult()
    is_error: bool = False


def _trouble(text: str) -> Failure:
    """Errors of the provider begin with their HTTP status."""
    status = _STATUS.match(text)
    return failure(text, int(status[1]) if status else None)


def _answered(state: TurnState, answer: _Message) -> Iterator[AnyUpdate]:
    """A whole answer of the model. One that failed may be repeated, and what there is of it counts for
    nothing but tokens."""
    used = answer.usage
    spent = Usage(used.input, used.output, used.cache_read, used.cache_write, used.reasoning)
    state.usage = (state.usage or Usage()) + spent
    state.cost_usd = ((state.cost_usd or 0) + used.cost.total) or None
    state.model = answer.model or state.model
    if answer.stop_reason in ("error", "aborted"):
        state.trouble = _trouble(answer.error_message)
        return
    state.trouble = None
    texts = [block.text for block in answer.blocks if block.text]
    state.text = "\n".join(texts) if texts else state.text
    for block in answer.blocks:
        if block.thinking:
            yield thought(block.thinking)
        elif block.text:
            yield message(block.text)


def _tool_end(state: TurnState, line: _Line) -> AnyUpdate:
    text = "\n".join(block.text for block in line.result.content if block.text)
    if line.is_error and text.startswith(REFUSAL):
        state.refused.append(line.tool_name)
    return tool_output(line.tool_call_id, "failed" if line.is_error else "completed", text)


def _call(line: _Line) -> ToolCall:
    return ToolCall(
        tool_call_id=line.tool_call_id,
        title=line.tool_name,
        kind=_KINDS.get(line.tool_name, "other"),
        status="in_progress",
        raw_input=line.args,
    )


class PiParser(JsonLineParser[_Line]):
    """Pi's exit code tells nothing: the turn has ended well when Pi has settled and the last answer of the
    model was not an error."""

    def __init__(self) -> None:
        super().__init__(_Line, self._line)
        self._last: StopReason | None = None

    def _line(self, state: TurnState, line: _Line) -> Iterable[AnyUpdate]:
        match line.type:
            case "session":
                state.session = line.id
            case "message_end" if line.message.role == "assistant":
                self._last = _STOPS.get(line.message.stop_reason, "end_turn")
                return _answered(state, line.message)
            case "tool_execution_start":
                return (_call(line),)
            case "tool_execution_end":
                return (_tool_end(state, line),)
            case "agent_settled":
                state.failure = state.trouble
                state.stop_reason = self._last
        return ()

    def hear(self, line: bytes) -> None:
        """What keeps Pi from starting is only told on stderr, and not always in its last words."""
        if line.startswith(_NO_KEY):
            self.state.failure = Failure("auth", line.decode("utf-8", "replace").strip())
        elif _ELSEWHERE in line:
            self.state.failure = Failure("start_failed", "the session belongs to another folder")
        elif node := old_node(line.decode("utf-8", "replace"), NODE):
            self.state.failure = Failure("start_failed", f"Pi did not start: {node}")


def parser(_turn: Turn, _prompt: str) -> Parser:
    """A parser for one turn."""
    return PiParser()
