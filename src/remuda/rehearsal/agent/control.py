"""A host at the other end of the standard streams: prompts come from it, and tool calls ask it.

It is the control protocol of Claude Code, as far as one turn needs it. A host that is gone, or whose answer
cannot be read, allows nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO, TypeVar

import msgspec
from msgspec import Raw, Struct

from remuda.rehearsal.agent.hooks import Occasion, Verdict, answered
from remuda.rehearsal.agent.messages import Text, ToolUse

Wanted = TypeVar("Wanted")

_NOTHING = Raw(b"null")
_GONE = "The host is gone, and nobody else may allow it."


class _Callbacks(Struct, frozen=True, rename="camel"):
    """Hooks that the host wants to be asked as, by their names."""

    hook_callback_ids: tuple[str, ...] = ()


class _Request(Struct, frozen=True):
    subtype: str = ""
    hooks: dict[str, tuple[_Callbacks, ...]] | None = None


class _Reply(Struct, frozen=True):
    subtype: str = ""
    request_id: str = ""
    response: Raw = _NOTHING


class _Message(Struct, frozen=True):
    content: tuple[Text, ...] = ()


class _Line(Struct, frozen=True):
    """Whatever the host sends."""

    type: str = ""
    request_id: str = ""
    request: _Request = _Request()
    response: _Reply = _Reply()
    message: _Message = _Message()


class _Permission(Struct, frozen=True):
    behavior: str = ""
    message: str = ""


class Host:
    """Who gives the prompt and answers for the tools."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink
        self._asked = 0
        self._callbacks: dict[str, list[str]] = {}

    def prompt(self) -> str:
        """Greet the host and wait for its prompt."""
        while (line := self._hear()) is not None:
            if line.type == "control_request":
                self._greet(line)
            elif line.type == "user":
                return "".join(block.text for block in line.message.content)
        return ""

    def _greet(self, line: _Line) -> None:
        for event, groups in (line.request.hooks or {}).items():
            self._callbacks[event] = [name for group in groups for name in group.hook_callback_ids]
        reply: dict[str, object] = {"subtype": "success", "request_id": line.request_id, "response": {}}
        if line.request.subtype != "initialize":
            reply = {
                "subtype": "error",
                "request_id": line.request_id,
                "error": "this agent does not do that",
            }
        self._say({"type": "control_response", "response": reply})

    def consult(self, occasion: Occasion, payload: Mapping[str, object]) -> list[Verdict]:
        """What the host says as a hook, once for each hook that it announced for the occasion."""
        return [
            answered(occasion.hook_event_name, self._ask("hook_callback", callback_id=name, input=payload))
            for name in self._callbacks.get(occasion.hook_event_name, ())
        ]

    def approve(self, call: ToolUse) -> str | None:
        """Why a tool call may not run, or None."""
        reply = self._ask("can_use_tool", tool_name=call.name, input=call.input, tool_use_id=call.id)
        permission = _decoded(reply, _Permission) or _Permission(message=_GONE)
        return None if permission.behavior == "allow" else permission.message or "The host does not allow it."

    def _ask(self, subtype: str, **fields: object) -> Raw:
        """Ask and wait for the answer; none is the answer of a host that is gone."""
        self._asked += 1
        ident = f"rehearsal-{self._asked}"
        request = {"subtype": subtype, **fields}
        self._say({"type": "control_request", "request_id": ident, "request": request})
        while (line := self._hear()) is not None:
            if line.type == "control_response" and line.response.request_id == ident:
                return line.response.response if line.response.subtype == "success" else _NOTHING
        return _NOTHING

    def _hear(self) -> _Line | None:
        """The next line that says something, or None at the end."""
        for line in self._source:
            if (heard := _decoded(line, _Line)) is not None:
                return heard
        return None

    def _say(self, message: Mapping[str, object]) -> None:
        self._sink.write(msgspec.json.encode(message) + b"\n")
        self._sink.flush()


def _decoded(raw: bytes | Raw, wanted: type[Wanted]) -> Wanted | None:
    try:
        return msgspec.json.decode(raw, type=wanted)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
