"""A host at the other end of the standard streams: prompts come from it, and tool calls ask it.

It is the control protocol of Claude Code, as far as turns need it: prompts, one after the other, until the
host closes its end. A host that is gone, or whose answer cannot be read, allows nothing.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Mapping
from typing import BinaryIO, TypeVar

import msgspec
from msgspec import Raw, Struct

from remuda.rehearsal.agent.hooks import Occasion, Verdict, answered
from remuda.rehearsal.agent.interrupts import Turns
from remuda.rehearsal.agent.loop import Agent
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
    content: str | tuple[Text, ...] = ()

    @property
    def text(self) -> str:
        """The prompt."""
        return (
            self.content if isinstance(self.content, str) else "".join(block.text for block in self.content)
        )


class _Line(Struct, frozen=True):
    """Whatever the host sends."""

    type: str = ""
    uuid: str = ""
    request_id: str = ""
    request: _Request = _Request()
    response: _Reply = _Reply()
    message: _Message = _Message()


class _Permission(Struct, frozen=True):
    behavior: str = ""
    message: str = ""


class Host:
    """Who gives the prompts, interrupts turns and answers for the tools."""

    def __init__(self, source: BinaryIO, sink: BinaryIO, *, replay: bool = False) -> None:
        self._source = source.fileno()
        self._sink = sink
        self._replay = replay
        self._asked = 0
        self._callbacks: dict[str, list[str]] = {}
        self._turns = Turns()
        self._prompts: queue.SimpleQueue[_Line | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[_Reply | None] = queue.SimpleQueue()
        self._interruptions: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def prompt(self) -> str | None:
        """Wait for the next prompt; None when the host has closed its end."""
        line = self._prompts.get()
        if line is None:
            return None
        if self._replay:
            message = {"role": "user", "content": line.message.content}
            self._say({"type": "user", "message": message, "uuid": line.uuid, "isReplay": True})
        return line.message.text

    def converse(self, agent: Agent, first: str) -> bool:
        """Answer prompts until the host has no more; tells whether the last one was."""
        prompt: str | None = first
        succeeded = True
        while prompt is not None:
            succeeded = self._turn(agent, prompt)
            prompt = self.prompt()
        return succeeded

    def _turn(self, agent: Agent, prompt: str) -> bool:
        result = self._turns.run(lambda: agent.answer(prompt))
        self._accept_interruptions()
        return agent.conclude(result).error is None

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
        while (reply := self._replies.get()) is not None:
            if reply.request_id == ident:
                return reply.response if reply.subtype == "success" else _NOTHING
        self._replies.put(None)
        return _NOTHING

    def _listen(self) -> None:
        """Read all that the host sends, also while a turn runs."""
        rest = b""
        while data := self._read():
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                self._take(line)
        self._take(rest)
        self._prompts.put(None)
        self._replies.put(None)

    def _read(self) -> bytes:
        try:
            return os.read(self._source, 65536)
        except OSError:
            return b""

    def _take(self, data: bytes) -> None:
        """Pass a line on to whoever waits for it."""
        line = _decoded(data, _Line) or _Line()
        match line.type:
            case "user":
                self._prompts.put(line)
            case "control_response":
                self._replies.put(line.response)
            case "control_request":
                self._obey(line)

    def _obey(self, line: _Line) -> None:
        match line.request.subtype:
            case "initialize":
                for event, groups in (line.request.hooks or {}).items():
                    self._callbacks[event] = [name for group in groups for name in group.hook_callback_ids]
                self._accept(line.request_id)
            case "interrupt":
                self._interruptions.put(line.request_id)
                if not self._turns.interrupt():
                    self._accept_interruptions()
            case _:
                error = "this agent does not do that"
                reply = {"subtype": "error", "request_id": line.request_id, "error": error}
                self._say({"type": "control_response", "response": reply})

    def _accept_interruptions(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._accept(self._interruptions.get_nowait())

    def _accept(self, ident: str) -> None:
        reply: dict[str, object] = {"subtype": "success", "request_id": ident, "response": {}}
        self._say({"type": "control_response", "response": reply})

    def _say(self, message: Mapping[str, object]) -> None:
        self._sink.write(msgspec.json.encode(message) + b"\n")
        self._sink.flush()


def _decoded(raw: bytes | Raw, wanted: type[Wanted]) -> Wanted | None:
    try:
        return msgspec.json.decode(raw, type=wanted)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
