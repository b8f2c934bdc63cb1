"""The client's side of the control protocol of Claude Code: turns over the standard streams.

The agent asks twice before a tool call: as a hook, which comes for every call, and for permission. Both times
the turn's guard answers. Everything else that the agent prints is read by its runtime's own stream parser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from remuda.core.events import AnyUpdate, Failure, ToolCallUpdate
from remuda.guard.model import Verdict
from remuda.guard.tools import ToolCall
from remuda.hooks.answer import told
from remuda.runtimes.base import Parser, Turn, TurnState
from remuda.runtimes.dialogue import Dialogue
from remuda.runtimes.failures import failure

Wanted = TypeVar("Wanted")

NULL = msgspec.Raw(b"null")
GREETING, PROMPT_HOOK, TOOL_HOOK = "remuda-1", "remuda-prompt", "remuda-tool"
HOOKS = {
    "UserPromptSubmit": [{"matcher": "", "hookCallbackIds": [PROMPT_HOOK]}],
    "PreToolUse": [{"matcher": "", "hookCallbackIds": [TOOL_HOOK]}],
}
"""The first fires before the model is called, which tells that the prompt has arrived and that the second is
loaded, too."""

_NOTICE = "<task-notification>"
"""How a prompt begins that the agent gives itself, when its work in the background has ended."""

_UNREADABLE = Verdict(
    decision="deny",
    rule="connection.input",
    reason="the tool call cannot be read",
    hint="Try it another way.",
)


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
    """What a hook is told about a tool call, or a prompt."""

    prompt: str = ""
    tool_name: str = ""
    tool_use_id: str = ""
    tool_input: msgspec.Raw = NULL
    cwd: str = ""


class ControlConnection(Dialogue):
    """The protocol as a state machine: greet, then send prompts, and answer until the stream tells of each
    turn's end. ``stream`` makes the parser of one turn."""

    def __init__(self, turn: Turn, stream: Callable[[], Parser]) -> None:
        super().__init__(turn)
        self._make_stream = stream
        self._stream = stream()
        self.state = self._stream.state
        self._sent = 0
        self._text = ""
        self._spent = 0.0
        self._tells_prompts = False
        self._granted: set[str] = set()
        self._folders: dict[str, str] = {}
        greeting = {"subtype": "initialize", "hooks": HOOKS}
        self._send({"type": "control_request", "request_id": GREETING, "request": greeting})

    def feed(self, line: bytes) -> Iterable[AnyUpdate]:
        """The updates in one line of stdout."""
        frame = _decoded(line, _Frame)
        if frame is None and b"control_request" in line and self.phase != "closed":
            self._fail(Failure("protocol", "the agent asked something that cannot be read"))
        match frame and frame.type:
            case "control_request":
                return self._answer(frame or _Frame())
            case "control_response":
                self._hear_reply(_decoded((frame or _Frame()).response, _Reply) or _Reply())
            case "control_cancel_request":
                self._withdraw(bytes((frame or _Frame()).request_id))
            case _:
                return self._read(line)
        return ()

    def hear(self, line: bytes) -> None:
        """One line of stderr, which may tell of trouble."""
        self._stream.hear(line)

    def finish(self, leftover: bytes | None) -> None:
        """The output has ended."""
        self._stream.finish(leftover)
        self._break_off()

    def _begin(self, text: str) -> None:
        self._text = text
        self._renew()
        self.state.guard = "awaited" if self._binding else "none"
        content = [{"type": "text", "text": text}]
        self._send({"type": "user", "message": {"role": "user", "content": content}})

    def _cancel(self) -> None:
        self._sent += 1
        ident, request = f"remuda-interrupt-{self._sent}", {"subtype": "interrupt"}
        self._send({"type": "control_request", "request_id": ident, "request": request})

    @property
    def _binding(self) -> bool:
        return self._turn.guard is not None and self._turn.guard.binding

    def _send(self, message: Mapping[str, object]) -> None:
        self._outbox += msgspec.json.encode(message) + b"\n"

    def _hear_reply(self, reply: _Reply) -> None:
        """The agent knows of the hooks: now it may hear the prompt."""
        if reply.request_id != GREETING or self.phase != "opening":
            return
        if reply.subtype != "success":
            words = reply.error or "the agent takes no hooks over its connection"
            self._fail(failure(words, default="start_failed"))
        else:
            self._open()

    def _read(self, line: bytes) -> Iterable[AnyUpdate]:
        """A line of the stream. What was done without our consent ends the conversation."""
        updates = self._heard(line)
        if self._unasked():
            self._renew()
            return updates
        if self._binding and any(self._trespasses(update) for update in updates):
            self._fail(Failure("refused", "the agent ran a tool without asking the guard"))
        elif self.state.stop_reason is not None or self.state.failure is not None:
            self._end()
        return updates

    def _heard(self, line: bytes) -> tuple[AnyUpdate, ...]:
        """What the stream tells. Costs are those of the whole conversation there; what was spent before the
        turn is left out."""
        before = self.state.cost_usd
        self.state.cost_usd = None
        updates = tuple(self._stream.feed(line))
        self._account(self.state, before)
        return updates

    def _account(self, state: TurnState, before: float | None) -> None:
        total = state.cost_usd
        state.cost_usd = before if total is None else round(max(0.0, total - self._spent), 9)
        self._spent = self._spent if total is None else total

    def _unasked(self) -> bool:
        """Whether a turn has ended well that nobody had asked for: work in the background ends when it likes,
        and then the agent speaks up by itself. An agent that tells of prompts has told of the one under way
        before it ends."""
        ended = self.state.stop_reason is not None and self.state.failure is None
        return ended and self._tells_prompts and not (self.acknowledged or self._aborting)

    def _renew(self) -> None:
        """A new parser, which knows of the conversation and not of what was said in it."""
        before = self.state
        self._stream = self._make_stream()
        self.state = self._stream.state
        self.state.session, self.state.model, self.state.guard = before.session, before.model, before.guard

    def _trespasses(self, update: AnyUpdate) -> bool:
        return (
            isinstance(update, ToolCallUpdate)
            and update.status == "completed"
            and update.tool_call_id not in self._granted
        )

    def _answer(self, frame: _Frame) -> Iterable[AnyUpdate]:
        """Answer a request of the agent's, every one exactly once."""
        asked = _decoded(frame.request, _Request)
        if asked is None:
            self._reject(frame, "this cannot be read")
        elif asked.subtype == "can_use_tool":
            return self._permission(frame, asked)
        elif asked.subtype == "hook_callback" and asked.callback_id == TOOL_HOOK:
            self._grant(frame, self._veto(asked))
        elif asked.subtype == "hook_callback" and asked.callback_id == PROMPT_HOOK:
            told = _decoded(asked.input, _Told) or _Told()
            if not told.prompt.startswith(_NOTICE) or self._text.startswith(_NOTICE):
                self.acknowledged = self._tells_prompts = True
            if self.state.guard == "awaited":
                self.state.guard = "reported"
            self._grant(frame, {})
        else:
            self._reject(frame, "this client does not offer that")
        return ()

    def _grant(self, frame: _Frame, response: Mapping[str, object]) -> None:
        reply = {"subtype": "success", "request_id": frame.request_id, "response": response}
        self._send({"type": "control_response", "response": reply})

    def _reject(self, frame: _Frame, words: str) -> None:
        reply = {"subtype": "error", "request_id": frame.request_id, "error": words}
        self._send({"type": "control_response", "response": reply})

    def _veto(self, asked: _Request) -> Mapping[str, object]:
        """The answer of the hook. It says nothing to what may pass, or what a person has to be asked about:
        the request for permission comes next. In a person's own session only that one counts, and what they
        have granted beforehand passes."""
        call = _decoded(asked.input, _Told) or _Told()
        ident = call.tool_use_id or asked.tool_use_id
        self._folders[ident] = call.cwd
        if self._turn.guard is not None and not self._binding:
            return {}
        understood = self._call(ident, call.tool_name, call.tool_input)
        verdict = self._verdict(understood) if understood else _UNREADABLE
        self._note(ident, verdict)
        if verdict.decision != "deny":
            return {}
        decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}
        return {"hookSpecificOutput": {**decision, "permissionDecisionReason": told(verdict)}}

    def _permission(self, frame: _Frame, asked: _Request) -> Iterable[AnyUpdate]:
        """The answer to a request for permission: what is allowed runs as it was judged."""

        def reply(verdict: Verdict) -> Iterable[AnyUpdate]:
            self._note(asked.tool_use_id, verdict)
            if verdict.decision == "allow":
                self._grant(frame, {"behavior": "allow", "updatedInput": asked.input})
            else:
                self._grant(frame, {"behavior": "deny", "message": told(verdict)})
            return ()

        call = self._call(asked.tool_use_id, asked.tool_name, asked.input)
        return reply(_UNREADABLE) if call is None else self._judge(call, reply, bytes(frame.request_id))

    def _call(self, ident: str, tool: str, raw: msgspec.Raw) -> ToolCall | None:
        """The tool call that is asked about, if it can be read."""
        given = _decoded(raw, dict[str, object])
        cwd = self._folders.get(ident) or str(self._turn.cwd)
        return ToolCall(tool, given, cwd) if given is not None and tool else None

    def _note(self, ident: str, verdict: Verdict) -> None:
        """Remember who may run."""
        if verdict.decision == "allow":
            self._granted.add(ident)
        else:
            self._granted.discard(ident)


def _decoded(raw: bytes | msgspec.Raw, wanted: type[Wanted]) -> Wanted | None:
    try:
        return msgspec.json.decode(raw, type=wanted)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
