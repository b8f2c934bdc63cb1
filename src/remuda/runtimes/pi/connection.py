"""Pi's own protocol over the standard streams, with an extension in it that asks before every tool: Pi itself
never asks.

The extension reports when the session starts, and prompts are sent after that only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from remuda.core.events import AnyUpdate, Failure
from remuda.guard.model import Verdict
from remuda.guard.tools import ToolCall
from remuda.hooks.answer import told
from remuda.runtimes.base import Turn
from remuda.runtimes.dialogue import Dialogue
from remuda.runtimes.failures import failure
from remuda.runtimes.pi.extensions import ALLOW, READY, REFUSAL, TITLE
from remuda.runtimes.pi.stream import PiParser

Wanted = TypeVar("Wanted")

_DIALOGS = ("select", "confirm", "input", "editor")
_STATE, _PROMPT, _ABORT = "state", "prompt", "abort"
_UNREADABLE = "the call could not be read"
_NEVER_RAN = re.compile(r"Tool .* not found$|Validation failed for tool ", re.DOTALL)
_ASKED = Verdict(decision="ask", rule="pi.extension", reason="an extension of Pi's asks")


class _Frame(msgspec.Struct, frozen=True, rename="camel"):
    """What the guard looks at in a line. Each may be anything: a line that is odd in one place must not go by
    unseen."""

    type: object = None
    id: object = None
    method: object = None
    title: object = None
    message: object = None
    placeholder: object = None
    status_key: object = None
    status_text: object = None
    success: object = None
    error: object = None
    data: msgspec.Raw = msgspec.Raw(b"null")
    tool_call_id: object = None
    is_error: object = None
    result: msgspec.Raw = msgspec.Raw(b"null")


class _Asked(msgspec.Struct, frozen=True):
    """A tool call, as the extension shows it."""

    id: str
    tool: str
    cwd: str
    input: object


class _Model(msgspec.Struct, frozen=True):
    id: str | None = None


class _State(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str | None = None
    model: _Model | None = None


class _Block(msgspec.Struct, frozen=True):
    text: str = ""


class _Outcome(msgspec.Struct, frozen=True):
    content: list[_Block] = []


def _decoded(raw: str | msgspec.Raw, wanted: type[Wanted]) -> Wanted | None:
    try:
        return msgspec.json.decode(raw, type=wanted)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


class PiConnection(Dialogue, PiParser):
    """Look whether the guard is there, then send prompts, and answer for every tool call until Pi has
    settled. Every question is answered once, with a refusal where it cannot be read."""

    def __init__(self, turn: Turn) -> None:
        Dialogue.__init__(self, turn)
        PiParser.__init__(self)
        self._binding = turn.guard is not None and turn.guard.binding
        self.state.guard = "none" if turn.guard is None else "awaited"
        self._answered: set[str] = set()
        self._allowed: set[str] = set()
        self._refused: set[str] = set()
        self._send({"id": _STATE, "type": "get_state"})

    def feed(self, line: bytes) -> Iterable[AnyUpdate]:
        """The updates in one line of stdout; questions in it are answered."""
        if self.phase == "closed":
            return ()
        frame = _decoded(line.decode("utf-8", "replace"), _Frame) or _Frame()
        match frame.type:
            case "extension_ui_request":
                return self._answer(frame)
            case "response":
                self._respond(frame)
                return ()
            case "tool_execution_update" | "tool_execution_end" if self._slipped_by(frame):
                self._fail(Failure("refused", "a tool ran that had not asked the guard"))
                return ()
        updates = PiParser.feed(self, line)
        if frame.type == "agent_settled":
            self._end()
        return updates

    def finish(self, leftover: bytes | None) -> None:
        """The output has ended."""
        PiParser.finish(self, leftover)
        self._break_off()

    def _send(self, record: Mapping[str, object]) -> None:
        self._outbox += msgspec.json.encode(record) + b"\n"

    def _begin(self, text: str) -> None:
        self._last = None
        self._send({"id": _PROMPT, "type": "prompt", "message": text})

    def _cancel(self) -> None:
        self._send({"id": _ABORT, "type": "abort"})

    # ---- what extensions ask

    def _answer(self, frame: _Frame) -> Iterable[AnyUpdate]:
        """A question of an extension's, or the guard's report that it is there."""
        if frame.method == "setStatus" and (frame.status_key, frame.status_text) == (TITLE, READY):
            self.state.guard = "none" if self._turn.guard is None else "reported"
        ident = frame.id
        if frame.method not in _DIALOGS or not isinstance(ident, str) or ident in self._answered:
            return ()
        self._answered.add(ident)
        if frame.method == "input" and frame.title == TITLE:
            return self._ask_guard(ident, frame.placeholder)
        if frame.method == "confirm" and not self._binding:
            return self._ask_person(ident, frame)
        self._reply(ident, {"cancelled": True})
        return ()

    def _reply(self, ident: str, answer: Mapping[str, object]) -> None:
        self._send({"type": "extension_ui_response", "id": ident, **answer})

    def _ask_guard(self, ident: str, shown: object) -> Iterable[AnyUpdate]:
        """Answer with the word that lets a tool call run, or why it may not."""
        asked = _decoded(shown, _Asked) if isinstance(shown, str) else None
        if asked is None:
            self.state.refused.append("tool")
            self._reply(ident, {"value": f"{REFUSAL} {_UNREADABLE}"})
            return ()
        call = asked

        def reply(verdict: Verdict) -> Iterable[AnyUpdate]:
            if verdict.decision == "allow":
                self._allowed.add(call.id)
                self._reply(ident, {"value": ALLOW})
            else:
                self._refused.add(call.id)
                self.state.refused.append(call.tool)
                self._reply(ident, {"value": told(verdict)})
            return ()

        return self._judge(ToolCall(call.tool, call.input, call.cwd), reply)

    def _ask_person(self, ident: str, frame: _Frame) -> Iterable[AnyUpdate]:
        """An extension of the user's own asks for a yes or no: that is for a person."""

        def reply(verdict: Verdict) -> Iterable[AnyUpdate]:
            self._reply(ident, {"confirmed": verdict.decision == "allow"})
            return ()

        words = f"{frame.title or ''} {frame.message or ''}".strip()
        call = ToolCall("confirm", {"command": words}, str(self._turn.cwd))
        return self._settle(call, self._verdict(call) if self._aborting else _ASKED, reply)

    def _slipped_by(self, frame: _Frame) -> bool:
        """Whether a tool has run unasked. One that is not offered, or whose input is not what it takes, never
        ran, and so nobody was asked."""
        ident = frame.tool_call_id if isinstance(frame.tool_call_id, str) else None
        if ident in self._allowed or not self._binding:
            return False
        if frame.type == "tool_execution_update" or frame.is_error is not True:
            return True
        return not (ident in self._refused or _NEVER_RAN.match(_text(frame.result)))

    # ---- what Pi answers

    def _respond(self, frame: _Frame) -> None:
        """What became of a request of ours: the first tells of the session, and comes behind the report."""
        if frame.id == _ABORT:
            return
        if frame.success is not True:
            self._rejected(failure(str(frame.error or ""), default="start_failed"))
        elif frame.id == _STATE and self.phase == "opening":
            self._opened(_decoded(frame.data, _State) or _State())
        elif frame.id == _PROMPT and self.phase == "working":
            self.acknowledged = True

    def _rejected(self, reason: Failure) -> None:
        """Pi does not take a prompt, or not even a session."""
        if self.phase == "working":
            self.state.failure = reason
            self._end()
        else:
            self._fail(reason)

    def _opened(self, opened: _State) -> None:
        if self.state.guard == "awaited":
            self._fail(Failure("refused", "the guard did not report at the start of the session"))
            return
        self.state.session = opened.session_id
        self.state.model = opened.model.id if opened.model else None
        self._open()


def _text(result: msgspec.Raw) -> str:
    outcome = _decoded(result, _Outcome) or _Outcome()
    return "\n".join(block.text for block in outcome.content)
