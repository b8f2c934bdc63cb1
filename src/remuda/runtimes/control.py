"""The client's side of the control protocol of Claude Code: one guarded turn over the standard streams.

The agent asks twice before a tool call: as a hook, which comes for every call, and for permission. Both times
the turn's guard answers. Everything else that the agent prints is read by its runtime's own stream parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from remuda.core.events import AnyUpdate, Failure, ToolCallUpdate
from remuda.guard.model import Verdict
from remuda.guard.tools import ToolCall
from remuda.hooks.answer import told
from remuda.runtimes.base import Parser, Turn
from remuda.runtimes.dialogue import Dialogue
from remuda.runtimes.failures import failure

Wanted = TypeVar("Wanted")

NULL = msgspec.Raw(b"null")
GREETING, PROMPT_HOOK, TOOL_HOOK = "remuda-1", "remuda-prompt", "remuda-tool"
HOOKS = {
    "UserPromptSubmit": [{"matcher": "", "hookCallbackIds": [PROMPT_HOOK]}],
    "PreToolUse": [{"matcher": "", "hookCallbackIds": [TOOL_HOOK]}],
}
"""The first fires before the model is called and tells that the second is loaded, too."""

_UNREADABLE = Verdict(
    decision="deny",
    rule="connection.input",
    reason="the tool call cannot be read",
    hint="Try it another way.",
)
_UNGUARDED = Verdict(decision="deny", rule="connection.guard", reason="nobody is there to judge it", hint="")


class _Frame(msgspec.Struct, frozen=True):
    """Any line: a request of the agent's, its answer to ours, or a part of its stream."""

    type: str = ""
    request_id: msgspec.Raw = NULL
    request: msgspec.Raw = NULL
    response: msgspec.Raw = NULL


class _Reply(msgspec.Struct, frozen=True):
    """The agent's answer to a request of ours."""

    subtype: str = ""
    request_id: str = ""
    error: str = ""


class _Request(msgspec.Struct, frozen=True):
    """What the agent asks. ``input`` is a tool's, or for a hook what is told to hooks."""

    subtype: str = ""
    callback_id: str = ""
    tool_name: str = ""
    tool_use_id: str = ""
    input: msgspec.Raw = NULL


class _Told(msgspec.Struct, frozen=True):
    """What a hook is told about a tool call."""

    tool_name: str = ""
    tool_use_id: str = ""
    tool_input: msgspec.Raw = NULL
    cwd: str = ""


class ControlParser(Dialogue):
    """The protocol as a state machine: greet, send the prompt, answer until the stream tells of the end."""

    def __init__(self, turn: Turn, prompt: str, stream: Parser) -> None:
        super().__init__()
        self.state = stream.state
        self.state.guard = "awaited"
        self._turn = turn
        self._prompt = prompt
        self._stream = stream
        self._greeted = False
        self._granted: set[str] = set()
        self._folders: dict[str, str] = {}
        greeting = {"subtype": "initialize", "hooks": HOOKS}
        self._send({"type": "control_request", "request_id": GREETING, "request": greeting})

    def feed(self, line: bytes) -> Iterable[AnyUpdate]:
        """The updates in one line of stdout."""
        frame = _decoded(line, _Frame)
        if frame is None and b"control_request" in line and not self._over:
            self._fail(Failure("protocol", "the agent asked something that cannot be read"))
        match frame and frame.type:
            case "control_request":
                self._answer(frame or _Frame())
            case "control_response":
                self._hear_reply(_decoded((frame or _Frame()).response, _Reply) or _Reply())
            case "control_cancel_request":
                pass
            case _:
                return self._read(line)
        return ()

    def hear(self, line: bytes) -> None:
        """One line of stderr, which may tell of trouble."""
        self._stream.hear(line)

    def finish(self, leftover: bytes | None) -> None:
        """The output has ended."""
        self._stream.finish(leftover)

    def _send(self, message: Mapping[str, object]) -> None:
        self._outbox += msgspec.json.encode(message) + b"\n"

    def _hear_reply(self, reply: _Reply) -> None:
        """The agent knows of the hooks: now it may hear the prompt."""
        if reply.request_id != GREETING or self._greeted:
            return
        self._greeted = True
        if reply.subtype != "success":
            words = reply.error or "the agent takes no hooks over its connection"
            self._fail(failure(words, default="start_failed"))
            return
        content = [{"type": "text", "text": self._prompt}]
        self._send({"type": "user", "message": {"role": "user", "content": content}})

    def _read(self, line: bytes) -> Iterable[AnyUpdate]:
        """A line of the stream. What was done without our consent ends the turn."""
        updates = tuple(self._stream.feed(line))
        for update in updates:
            if (
                isinstance(update, ToolCallUpdate)
                and update.status == "completed"
                and update.tool_call_id not in self._granted
            ):
                self._fail(Failure("refused", "the agent ran a tool without asking the guard"))
        if self.state.stop_reason is not None or self.state.failure is not None:
            self._over = True
        return updates

    def _answer(self, frame: _Frame) -> None:
        """Answer a request of the agent's, every one exactly once."""
        asked = _decoded(frame.request, _Request)
        if asked is None:
            self._reject(frame, "this cannot be read")
        elif asked.subtype == "can_use_tool":
            self._grant(frame, self._permission(asked))
        elif asked.subtype == "hook_callback" and asked.callback_id == TOOL_HOOK:
            self._grant(frame, self._veto(asked))
        elif asked.subtype == "hook_callback" and asked.callback_id == PROMPT_HOOK:
            self.state.guard = "reported"
            self._grant(frame, {})
        else:
            self._reject(frame, "this client does not offer that")

    def _grant(self, frame: _Frame, response: Mapping[str, object]) -> None:
        reply = {"subtype": "success", "request_id": frame.request_id, "response": response}
        self._send({"type": "control_response", "response": reply})

    def _reject(self, frame: _Frame, words: str) -> None:
        reply = {"subtype": "error", "request_id": frame.request_id, "error": words}
        self._send({"type": "control_response", "response": reply})

    def _veto(self, asked: _Request) -> Mapping[str, object]:
        """The answer of the hook. It says nothing to what may pass: the request for permission comes next."""
        call = _decoded(asked.input, _Told) or _Told()
        ident = call.tool_use_id or asked.tool_use_id
        self._folders[ident] = call.cwd
        verdict = self._judged(ident, call.tool_name, call.tool_input)
        if verdict.decision == "allow":
            return {}
        decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}
        return {"hookSpecificOutput": {**decision, "permissionDecisionReason": told(verdict)}}

    def _permission(self, asked: _Request) -> Mapping[str, object]:
        """The answer to a request for permission: what is allowed runs as it was judged."""
        verdict = self._judged(asked.tool_use_id, asked.tool_name, asked.input)
        if verdict.decision == "allow":
            return {"behavior": "allow", "updatedInput": asked.input}
        return {"behavior": "deny", "message": told(verdict)}

    def _judged(self, ident: str, tool: str, raw: msgspec.Raw) -> Verdict:
        given = _decoded(raw, dict[str, object])
        if given is None or not tool:
            verdict = _UNREADABLE
        elif self._turn.guard is None:
            verdict = _UNGUARDED
        else:
            cwd = self._folders.get(ident) or str(self._turn.cwd)
            verdict = self._turn.guard.judge(ToolCall(tool, given, cwd))
        if verdict.decision == "allow":
            self._granted.add(ident)
        else:
            self._granted.discard(ident)
        return verdict


def _decoded(raw: bytes | msgspec.Raw, wanted: type[Wanted]) -> Wanted | None:
    try:
        return msgspec.json.decode(raw, type=wanted)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
