"""Amplifier's ``json-trace`` output: one object over many lines at the end, after lines of other kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from remuda.core.events import AnyUpdate, ToolCall, ToolKind, message, tool_output
from remuda.runtimes.base import Parser, Turn, TurnState
from remuda.runtimes.failures import failure

_KINDS: dict[str, ToolKind] = {
    **dict.fromkeys(("bash",), "execute"),
    **dict.fromkeys(("read_file",), "read"),
    **dict.fromkeys(("write_file", "edit_file", "apply_patch"), "edit"),
    **dict.fromkeys(("grep", "glob", "search"), "search"),
    **dict.fromkeys(("web_fetch", "web_search"), "fetch"),
    **dict.fromkeys(("task", "delegate", "todo"), "think"),
}


class _Step(msgspec.Struct, frozen=True):
    """One entry of the trace. The result is text made for people, whatever the tool gave."""

    tool: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    result: object = ""
    sequence: int = 0


class _Outcome(msgspec.Struct, frozen=True):
    status: str = ""
    response: str | None = None
    error: str = ""
    error_type: str = ""
    session_id: str | None = None
    model: str = ""
    execution_trace: list[_Step] = []


_decoder = msgspec.json.Decoder(_Outcome, strict=False)


class AmplifierParser:
    """Waits for the object, which begins and ends with a brace alone on its line. What goes wrong before
    there is a session is told as a line of text instead."""

    def __init__(self) -> None:
        self.state = TurnState()
        self._object: list[bytes] | None = None

    def feed(self, line: bytes) -> Iterable[AnyUpdate]:
        """The updates in one line of stdout: all of them come with the last."""
        line = line.rstrip(b"\r\n")
        if self._object is None:
            if line == b"{":
                self._object = [line]
            elif line.startswith(b"Error"):
                self.state.failure = failure(line.decode(errors="replace"), default="start_failed")
            return ()
        self._object.append(line)
        if line != b"}":
            return ()
        whole, self._object = b"".join(map(bytes.strip, self._object)), None
        return self._outcome(whole)

    def hear(self, line: bytes) -> None:
        """Standard error tells of modules that could not be fetched, which is no failure."""

    def say(self) -> bytes | None:
        """There is nothing to answer."""
        return None

    def finish(self, leftover: bytes | None) -> None:
        """The object has told everything."""

    def _outcome(self, whole: bytes) -> Iterable[AnyUpdate]:
        try:
            outcome = _decoder.decode(whole)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self.state.skipped += 1
            return ()
        return tuple(_read(self.state, outcome))


def _read(state: TurnState, outcome: _Outcome) -> Iterator[AnyUpdate]:
    state.session = outcome.session_id
    if outcome.status != "success":
        state.failure = failure(f"{outcome.error_type}: {outcome.error}".removeprefix(": "))
        return
    state.failure = None
    state.model = outcome.model.partition("/")[2] or outcome.model or None
    for number, step in enumerate(outcome.execution_trace, 1):
        yield from _tool(step, f"call-{step.sequence or number}")
    state.stop_reason = "end_turn"
    state.text = outcome.response or ""
    if state.text:
        yield message(state.text)


def _tool(step: _Step, call_id: str) -> Iterator[AnyUpdate]:
    yield ToolCall(
        tool_call_id=call_id,
        title=step.tool,
        kind=_KINDS.get(step.tool, "other"),
        status="in_progress",
        raw_input=step.arguments,
    )
    yield tool_output(call_id, "completed", step.result if isinstance(step.result, str) else str(step.result))


def parser(_turn: Turn, _prompt: str) -> Parser:
    """A parser for one turn."""
    return AmplifierParser()
