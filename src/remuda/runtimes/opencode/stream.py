"""OpenCode's ``run --format json`` output, and the log that tells what the output does not."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
from remuda.runtimes.failures import failure
from remuda.runtimes.jsonlines import JsonLineParser

_KINDS: dict[str, ToolKind] = {
    **dict.fromkeys(("bash",), "execute"),
    **dict.fromkeys(("read", "list", "lsp", "skill"), "read"),
    **dict.fromkeys(("edit", "write", "patch", "apply_patch", "multiedit"), "edit"),
    **dict.fromkeys(("grep", "glob", "codesearch"), "search"),
    **dict.fromkeys(("webfetch", "websearch"), "fetch"),
    **dict.fromkeys(("task", "todowrite", "todoread"), "think"),
}
_STOPS: dict[str, StopReason] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content-filter": "refusal",
    "other": "end_turn",
    "unknown": "end_turn",
}
_REFUSALS = ("The user rejected permission", "The user has specified a rule which prevents")
_CREATED = re.compile(rb" message=created id=(ses_\w+) ")
_CALL = re.compile(rb" message=stream providerID=\S+ modelID=(\S+) .*small=false .*mode=primary")
_USAGE = b"opencode run [message..]"
_RETRIED = re.compile(rb' message="stream error" .*small=false .*mode=primary error\.error="(.*)"')


class _ToolState(msgspec.Struct, frozen=True):
    status: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")
    output: str = ""
    error: str = ""


class _Cache(msgspec.Struct, frozen=True):
    read: int = 0
    write: int = 0


class _Tokens(msgspec.Struct, frozen=True):
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: _Cache = _Cache()


class _Part(msgspec.Struct, frozen=True, rename={"call_id": "callID"}):
    """A piece of the turn; which fields it has depends on the line's type."""

    text: str = ""
    tool: str = ""
    call_id: str = ""
    state: _ToolState = _ToolState()
    reason: str = ""
    tokens: _Tokens = _Tokens()
    cost: float = 0


class _ErrorData(msgspec.Struct, frozen=True, rename={"status_code": "statusCode"}):
    message: str = ""
    status_code: int | None = None


class _Error(msgspec.Struct, frozen=True):
    name: str = ""
    data: _ErrorData = _ErrorData()


class _Line(msgspec.Struct, frozen=True, rename={"session_id": "sessionID"}):
    type: str = ""
    session_id: str | None = None
    part: _Part = _Part()
    error: _Error = _Error()


def _tool(state: TurnState, part: _Part) -> tuple[AnyUpdate, AnyUpdate]:
    """A call and its outcome: OpenCode tells of a call when it is over."""
    failed = part.state.status == "error"
    if failed and part.state.error.startswith(_REFUSALS):
        state.refused.append(part.tool)
    call = ToolCall(
        tool_call_id=part.call_id,
        title=part.tool,
        kind=_KINDS.get(part.tool, "other"),
        status="in_progress",
        raw_input=part.state.input,
    )
    outcome = tool_output(
        part.call_id, "failed" if failed else "completed", part.state.error if failed else part.state.output
    )
    return call, outcome


def _step_finished(state: TurnState, part: _Part) -> None:
    """There is no line for the end of the turn: the last step's reason is all there is."""
    tokens = part.tokens
    step = Usage(tokens.input, tokens.output, tokens.cache.read, tokens.cache.write, tokens.reasoning)
    state.usage = (state.usage or Usage()) + step
    state.cost_usd = ((state.cost_usd or 0) + part.cost) or None
    state.stop_reason = _STOPS.get(part.reason)


def _read(state: TurnState, line: _Line) -> Iterable[AnyUpdate]:
    state.session = line.session_id or state.session
    if line.type == "error":
        data = line.error.data
        state.failure = failure(data.message or line.error.name, data.status_code)
        return ()
    state.trouble = None
    match line.type:
        case "text":
            state.text = line.part.text
            return (message(line.part.text),)
        case "reasoning":
            return (thought(line.part.text),)
        case "tool_use":
            return _tool(state, line.part)
        case "step_finish":
            _step_finished(state, line.part)
    return ()


def hear(state: TurnState, line: bytes) -> bool:
    """Whether a line of the log tells of a call of the model, or of trouble with one; it is taken note of."""
    if call := _CALL.search(line):
        state.model = call[1].decode("utf-8", "replace")
    elif retried := _RETRIED.search(line):
        reason = retried[1].decode("utf-8", "replace").replace('\\"', '"')
        state.trouble = failure(reason.removeprefix("AI_APICallError: "))
    else:
        return False
    return True


class _OpenCodeParser(JsonLineParser[_Line]):
    """Reads stderr, too: the log names session and model, and it alone tells of a model call that will be
    repeated.

    Arguments that OpenCode does not know are answered with its usage, and no word about which they are.
    """

    def __init__(self, given: tuple[str, ...]) -> None:
        super().__init__(_Line, _read)
        self._given = [argument.partition("=")[0] for argument in given if argument.startswith("-")]

    def hear(self, line: bytes) -> None:
        if hear(self.state, line) or self.state.session is not None:
            return
        if created := _CREATED.search(line):
            self.state.session = created[1].decode()
        elif line.strip() == _USAGE:
            among = f", among them {' '.join(self._given)}" if self._given else ""
            self.state.failure = Failure("start_failed", f"OpenCode does not understand its arguments{among}")


def parser(turn: Turn, _prompt: str) -> Parser:
    """A parser for one turn."""
    return _OpenCodeParser(turn.extra)
