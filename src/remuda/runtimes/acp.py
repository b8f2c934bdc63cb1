"""The client's side of the Agent Client Protocol, version 1: one turn over an agent's standard streams.

Lines come in by ``feed``, what is to be sent goes out by ``say``. No agent is named here: where agents differ
in how they speak the protocol, their ``Dialect`` says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, get_args

import msgspec

from remuda import __version__
from remuda.core.events import (
    AnyUpdate,
    Failure,
    StopReason,
    ToolCall,
    ToolKind,
    ToolStatus,
    UsageUpdate,
    message,
    thought,
    tool_output,
)
from remuda.hooks.answer import told
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.acp_dialect import Dialect
from remuda.runtimes.acp_guard import Gate, Ruling
from remuda.runtimes.acp_permission import permitted
from remuda.runtimes.base import Turn, TurnState
from remuda.runtimes.dialogue import RpcDialogue
from remuda.runtimes.failures import failure

__all__ = ("AcpParser", "Dialect")

Word = TypeVar("Word", bound=str)

_KINDS: tuple[ToolKind, ...] = get_args(ToolKind)
_STATUSES: tuple[ToolStatus, ...] = get_args(ToolStatus)
_STOPS: tuple[StopReason, ...] = get_args(StopReason)


class AcpParser(RpcDialogue):
    """The protocol as a state machine: greet, open the session, prompt, and listen until the answer."""

    def __init__(self, turn: Turn, prompt: str, dialect: Dialect) -> None:
        super().__init__(TurnState())
        self._turn = turn
        self._prompt = prompt
        self._dialect = dialect
        self._statuses: dict[str, ToolStatus] = {}
        self._calls: dict[str, ToolCall] = {}
        self._begun = self._between = False
        guard = turn.guard
        self._gate = Gate(guard, str(turn.cwd), dialect.manners) if guard else None
        self._waiting: list[tuple[wire.Id, wire.Change, list[wire.Option]]] = []
        self._refusals: set[str] = set()
        self._request(
            "initialize",
            {
                "protocolVersion": wire.PROTOCOL_VERSION,
                "clientCapabilities": {
                    "fs": {"readTextFile": False, "writeTextFile": False},
                    "terminal": False,
                },
                "clientInfo": {"name": "remuda", "version": __version__},
            },
            self._greeted,
        )

    def hear(self, line: bytes) -> None:
        """One line of stderr, which may tell of trouble."""
        self._dialect.hear(self.state, line)

    def _take(self, frame: wire.Frame) -> Iterable[AnyUpdate]:
        if self._over:
            return ()
        if frame.method is not None and frame.id is not None:
            return self._answer(frame)
        if frame.method == "session/update":
            return self._update(wire.decode(frame.params, wire.Notice) or wire.Notice())
        if frame.method is None and frame.error is not None and frame.id in (self._ident, None):
            self._fail(self._refused(frame.error))
        elif frame.method is None and frame.id == self._ident and frame.result != wire.NOTHING:
            self._then(frame.result)
        elif frame.method is None:
            self.state.skipped += 1
        return ()

    def _refused(self, error: wire.FrameError) -> Failure:
        """Why our request failed. An agent's own words may come in the data only."""
        data = wire.decode(error.data, object)
        words = f"{error.message}: {msgspec.json.encode(data).decode()}" if data else error.message
        if error.code == wire.AUTH_REQUIRED:
            return Failure("auth", words[:2000])
        return failure(words, error.code if error.code in wire.HTTP_FAILURES else None, default=self._blame)

    def _greeted(self, result: msgspec.Raw) -> None:
        greeting = wire.decode(result, wire.Greeting) or wire.Greeting()
        if greeting.protocol_version != wire.PROTOCOL_VERSION:
            spoken = greeting.protocol_version
            self._fail(Failure("protocol", f"the agent speaks version {spoken} of the protocol, not 1"))
            return
        place: dict[str, object] = {"cwd": str(self._turn.cwd), "mcpServers": []}
        if not self._turn.resume:
            self._request("session/new", place, self._opened)
        elif self._can_continue(greeting.agent_capabilities or wire.Abilities()):
            self._request(self._dialect.continues, {"sessionId": self._turn.session, **place}, self._opened)
        else:
            self._fail(Failure("start_failed", "the agent cannot continue a session"))

    def _can_continue(self, abilities: wire.Abilities) -> bool:
        if self._dialect.continues == "session/load":
            return bool(abilities.load_session)
        sessions = abilities.session_capabilities
        return sessions is not None and sessions.resume != wire.NULL

    def _opened(self, result: msgspec.Raw) -> None:
        """A session is there: send the prompt. What was told before is history, not this turn."""
        opened = wire.decode(result, wire.Opened) or wire.Opened()
        session = self._turn.session if self._turn.resume else opened.session_id
        if result == wire.NULL or not session:
            self._fail(self._unknown_session())
            return
        self.state.session = session
        if model := opened.model:
            self.state.model = self._dialect.model(model)
        if self._turn.resume and (mode := self._dialect.settles):
            self._request("session/set_mode", {"sessionId": session, "modeId": mode}, self._settled)
        else:
            self._settled(result)

    def _settled(self, _result: msgspec.Raw) -> None:
        self._blame = "model"
        self._prompted = True
        blocks = [{"type": "text", "text": text} for text in self._texts()]
        self._request("session/prompt", {"sessionId": self.state.session, "prompt": blocks}, self._ended)

    def _texts(self) -> tuple[str, ...]:
        """What the model is told. A note comes first: agents run a prompt that begins with a slash."""
        guard = self._turn.guard
        return (guard.note, self._prompt) if guard and guard.note else (self._prompt,)

    def _ended(self, result: msgspec.Raw) -> None:
        state, dialect = self.state, self._dialect
        outcome = wire.decode(result, wire.Outcome) or wire.Outcome()
        usage = dialect.usage(outcome)
        self._over = True
        state.stop_reason = _word(outcome.stop_reason, _STOPS, "end_turn")
        if not {"session": self._turn.resume, "call": self._statuses}.get(dialect.counted_since):
            state.usage = usage
        if usage is None and dialect.uncounted_is_failed:
            state.failure = state.failure or state.trouble or self._unanswered()
        if state.failure is not None:
            state.text = ""

    def _unanswered(self) -> Failure:
        """Why the model was not asked: as the text says, or because there is no such session."""
        return (
            self._unknown_session() if self._turn.resume and not self.state.text else failure(self.state.text)
        )

    def _unknown_session(self) -> Failure:
        return Failure("start_failed", f"the agent has no session {self._turn.session}")

    def _answer(self, frame: wire.Frame) -> Iterable[AnyUpdate]:
        """Answer a request: permission as the guard or the turn allows, all else as we declared."""
        if frame.method != "session/request_permission":
            self._outbox += wire.rejection(frame.id, wire.METHOD_NOT_FOUND, "this client does not offer that")
            return ()
        asked = wire.decode(frame.params, wire.PermissionRequest) or wire.PermissionRequest()
        call = asked.tool_call
        if self._gate is not None:
            self._waiting.append((frame.id, call, asked.options))
            return self._rule(self._gate)
        if not self._choose(frame.id, asked.options, permitted(self._turn, call)):
            self.state.refused.append(call.title or call.kind or "a tool")
        return ()

    def _choose(self, ident: wire.Id, options: list[wire.Option], allowed: bool) -> bool:
        """Answer for this once, never for good. What cannot be answered so is not allowed."""
        kind = "allow_once" if allowed else "reject_once"
        option = next((option.option_id for option in options if option.kind == kind), None)
        outcome = {"outcome": "selected", "optionId": option} if option else {"outcome": "cancelled"}
        self._outbox += wire.reply(ident, {"outcome": outcome})
        return allowed and option is not None

    def _rule(self, gate: Gate) -> list[AnyUpdate]:
        """Answer the requests of which enough is known."""
        ready = [each for each in self._waiting if gate.enough(each[1].tool_call_id or "")]
        self._waiting = [each for each in self._waiting if each not in ready]
        updates: list[AnyUpdate] = []
        for ident, call, options in ready:
            ruling = gate.rule(call)
            if not self._choose(ident, options, ruling.allowed):
                updates += self._tell(call, ruling)
        return updates

    def _tell(self, call: wire.Change, ruling: Ruling) -> Iterable[AnyUpdate]:
        """A refusal, as a tool call that failed."""
        ident = call.tool_call_id or "unnamed"
        if ident in self._refusals:
            return ()
        self._refusals.add(ident)
        self.state.refused.append(ruling.tool)
        self._progress()
        self._between = True
        outcome = tool_output(ident, "failed", told(ruling.verdict))
        known, self._statuses[ident] = ident in self._statuses, "failed"
        return (outcome,) if known else (self._call(call, ident, "failed"), outcome)

    def _update(self, notice: wire.Notice) -> Iterable[AnyUpdate]:
        if not self._prompted or notice.session_id != self.state.session:
            return ()
        update = notice.update
        match update.session_update:
            case "agent_message_chunk" | "agent_thought_chunk":
                return self._chunk(update)
            case "tool_call" | "tool_call_update" if update.tool_call_id:
                return self._noted(update, update.tool_call_id)
            case "usage_update" if self._begun and update.used is not None:
                return (UsageUpdate(used=update.used, size=update.size or 0),)
        return ()

    def _chunk(self, update: wire.Change) -> Iterable[AnyUpdate]:
        """A piece of text. What agents put in front of it to set it off from a tool call is left out."""
        text = (wire.decode(update.content, wire.Block) or wire.Block()).text or ""
        spoken = update.session_update == "agent_message_chunk"
        if spoken and self._between:
            text = text.lstrip("\n")
        if not text or (spoken and self._dialect.chatter(text)):
            return ()
        self._progress()
        if not spoken:
            return (thought(text),)
        self.state.text = text if self._between else self.state.text + text
        self._between = False
        return (message(text),)

    def _noted(self, update: wire.Change, ident: str) -> Iterable[AnyUpdate]:
        """What is told of a tool call; the guard hears it first."""
        if self._gate is None:
            return self._tool(update, ident)
        if trespass := self._gate.note(ident, update):
            self._fail(trespass)
            return ()
        return [*self._tool(update, ident), *self._rule(self._gate)]

    def _tool(self, update: wire.Change, ident: str) -> Iterable[AnyUpdate]:
        self._progress()
        self._between = True
        if ident in self._refusals:
            return ()
        status = _word(update.status, _STATUSES, self._statuses.get(ident, "pending"))
        known, self._statuses[ident] = ident in self._statuses, status
        call = self._call(update, ident, status)
        text = wire.output(update)
        if status == "failed" and self._dialect.refuses(text):
            self.state.refused.append(self._dialect.tool(call))
        outcome = tool_output(ident, status, text)
        if known:
            return (outcome,)
        return (call, outcome) if status in ("completed", "failed") else (call,)

    def _call(self, change: wire.Change, ident: str, status: ToolStatus) -> ToolCall:
        """A tool call as it was first told."""
        call = ToolCall(
            tool_call_id=ident,
            title=change.title or change.kind or "tool",
            kind=_word(change.kind, _KINDS, "other"),
            status=status,
            raw_input=_input(change),
        )
        return self._calls.setdefault(ident, call)

    def _progress(self) -> None:
        self._begun = True
        self.state.trouble = None


def _word(word: str | None, known: tuple[Word, ...], otherwise: Word) -> Word:
    return next((entry for entry in known if entry == word), otherwise)


def _input(update: wire.Change) -> msgspec.Raw:
    """What a tool was called with; an agent that does not tell shows it in the title and the content."""
    given = wire.decode(update.raw_input, object)
    shown = {"title": update.title or "", "text": wire.texts(update.content)}
    return msgspec.Raw(msgspec.json.encode(shown if given is None else given))
