"""The client's side of the Agent Client Protocol, version 1: turns over an agent's standard streams.

Lines come in by ``feed``, what is to be sent goes out by ``say``. No agent is named here: where agents differ
in how they speak the protocol, their ``Dialect`` says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import get_args

import msgspec

from remuda import __version__
from remuda.core.events import AnyUpdate, Failure, StopReason, Usage
from remuda.guard.model import Verdict
from remuda.hooks.answer import told
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.acp_course import Course, word
from remuda.runtimes.acp_dialect import Dialect, spent
from remuda.runtimes.acp_guard import Gate
from remuda.runtimes.acp_permission import permitted
from remuda.runtimes.base import Turn, TurnState
from remuda.runtimes.dialogue import RpcDialogue
from remuda.runtimes.failures import failure

__all__ = ("AcpConnection", "Dialect")

_GREETING = {
    "protocolVersion": wire.PROTOCOL_VERSION,
    "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
    "clientInfo": {"name": "remuda", "version": __version__},
}
_STOPS: tuple[StopReason, ...] = get_args(StopReason)


class _Request(msgspec.Struct, frozen=True):
    """A request for permission: what it is about, and the answers that it offers."""

    id: wire.Id
    call: wire.Change
    options: list[wire.Option]

    @property
    def subject(self) -> str:
        return self.call.tool_call_id or ""


class AcpConnection(RpcDialogue):
    """The protocol as a state machine: greet, open the session, then prompt and listen until the answer, as
    often as there are prompts. Updates name no turn: what comes between turns, or tells more of a tool call
    of an earlier one, is not a part of the next."""

    def __init__(self, turn: Turn, dialect: Dialect) -> None:
        super().__init__(turn, TurnState())
        self._dialect = dialect
        self._course = Course(self.state, dialect)
        self._gate = Gate(turn.guard, str(turn.cwd), dialect.manners) if turn.guard else None
        self._unclear: list[_Request] = []
        self._current: set[str] = set()
        self._past: set[str] = set()
        self._answered = 0
        self._over = self._stuck = False
        self._early: Failure | None = None
        unknown = turn.resume and dialect.counted_since == "session"
        self._counted: Usage | None = None if unknown else Usage()
        self._request("initialize", _GREETING, self._greeted)

    def hear(self, line: bytes) -> None:
        """One line of stderr, which may tell of trouble. Between turns it tells of one that has ended; a
        failure that is told before anything else in a turn may belong to the one before, too."""
        if self.phase == "idle":
            return
        before = self.state.failure
        self._dialect.hear(self.state, line)
        if self.state.failure is not before and not self._course.begun:
            self._early = self.state.failure

    # ---- what the agent says

    def _take(self, frame: wire.Frame) -> Iterable[AnyUpdate]:
        if self.phase == "closed":
            return ()
        if frame.method is not None and frame.id is not None:
            return self._answer(frame)
        if frame.method == "session/update":
            return self._update(wire.decode(frame.params, wire.Notice) or wire.Notice())
        if frame.method is None:
            self._conclude(frame)
        return ()

    def _conclude(self, frame: wire.Frame) -> None:
        """The answer to our request, the only one that is open. What fails in a turn fails that turn; an
        error that is not about any request is about the whole."""
        ours = frame.id == self._ident != self._answered
        if frame.error is not None and ours and self.phase == "working":
            self._answered = self._ident
            self._stuck = self._stuck or (self._dialect.gets_stuck and self._aborting)
            self.state.failure = self._refused(frame.error)
            self._finish()
        elif frame.error is not None and (ours or (frame.id is None and self.phase != "idle")):
            self._fail(self._refused(frame.error))
        elif ours and frame.result != wire.NOTHING:
            self._answered = self._ident
            self._then(frame.result)
        else:
            self.state.skipped += 1

    def _refused(self, error: wire.FrameError) -> Failure:
        """Why our request failed. An agent's own words may come in the data only."""
        data = wire.decode(error.data, object)
        words = f"{error.message}: {msgspec.json.encode(data).decode()}" if data else error.message
        if error.code == wire.AUTH_REQUIRED:
            return Failure("auth", words[:2000])
        return failure(words, error.code if error.code in wire.HTTP_FAILURES else None, default=self._blame)

    # ---- the session

    def _greeted(self, result: msgspec.Raw) -> None:
        greeting = wire.decode(result, wire.Greeting) or wire.Greeting()
        if greeting.protocol_version != wire.PROTOCOL_VERSION:
            spoken = greeting.protocol_version
            self._fail(Failure("protocol", f"the agent speaks version {spoken} of the protocol, not 1"))
            return
        if not self._turn.resume:
            self._request("session/new", self._place(), self._opened)
        elif self._can_continue(greeting.agent_capabilities or wire.Abilities()):
            self._request(self._dialect.continues, self._place(self._turn.session), self._opened)
        else:
            self._fail(Failure("start_failed", "the agent cannot continue a session"))

    def _place(self, session: str | None = None) -> dict[str, object]:
        """Where a session is to work, and which it is if there is one."""
        named = {} if session is None else {"sessionId": session}
        return {**named, "cwd": str(self._turn.cwd), "mcpServers": []}

    def _can_continue(self, abilities: wire.Abilities) -> bool:
        if self._dialect.continues == "session/load":
            return bool(abilities.load_session)
        sessions = abilities.session_capabilities
        return sessions is not None and sessions.resume != wire.NULL

    def _opened(self, result: msgspec.Raw) -> None:
        """A session is there. What is told before the first prompt is history."""
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
        self._open()

    def _unknown_session(self) -> Failure:
        return Failure("start_failed", f"the agent has no session {self._turn.session}")

    # ---- a turn

    def _begin(self, text: str) -> None:
        self._past |= self._current
        self._current = set()
        self._course = Course(self.state, self._dialect)
        self._over = False
        self._early = None
        if self._gate is not None:
            self._gate.next_turn()
        if self._stuck:
            self._request("session/fork", self._place(self.state.session), partial(self._forked, text))
        else:
            self._send_prompt(text)

    def _forked(self, text: str, result: msgspec.Raw) -> None:
        """The turn goes on in a copy of the session, which counts anew."""
        copy = (wire.decode(result, wire.Opened) or wire.Opened()).session_id
        self._stuck = not copy
        self._counted = Usage()
        self.state.session = copy or self.state.session
        if copy and not self._aborting:
            self._send_prompt(text)
        else:
            self.state.failure = Failure("protocol", "the agent cannot go on after an interrupted turn")
            self._finish()

    def _send_prompt(self, text: str) -> None:
        blocks = [{"type": "text", "text": part} for part in self._texts(text)]
        self._request("session/prompt", {"sessionId": self.state.session, "prompt": blocks}, self._ended)

    def _texts(self, prompt: str) -> tuple[str, ...]:
        """What the model is told. A note comes first: agents run a prompt that begins with a slash."""
        guard = self._turn.guard
        return (guard.note, prompt) if guard and guard.note else (prompt,)

    def _cancel(self) -> None:
        self._cancel_unclear()
        self._outbox += wire.notification("session/cancel", {"sessionId": self.state.session})

    def _ended(self, result: msgspec.Raw) -> None:
        """The turn is over. Its tokens may tell that the model never answered."""
        state = self.state
        outcome = wire.decode(result, wire.Outcome) or wire.Outcome()
        state.stop_reason = word(outcome.stop_reason, _STOPS, "end_turn")
        counted = self._count(self._dialect.usage(outcome))
        self.acknowledged = True
        if self._dialect.uncounted_is_failed and not self._aborting:
            if not counted:
                state.failure = state.failure or state.trouble or self._unanswered()
            elif state.failure is self._early:
                state.failure = None
        if state.failure is not None:
            state.text = ""
        self._finish()

    def _count(self, usage: Usage | None) -> bool:
        """Note the tokens of this turn, as far as the agent's count tells; whether it has told of any."""
        since, before = self._dialect.counted_since, self._counted
        if usage is None:
            return False
        if since == "turn":
            self.state.usage = usage
        elif since == "call":
            self.state.usage = None if self._course.acts else usage
        else:
            self._counted = usage
            self.state.usage = None if before is None else spent(usage, before)
        return self.state.usage != Usage()

    def _unanswered(self) -> Failure:
        """Why the model was not asked: as the text says, or because there is no such session."""
        said = self.state.text
        return self._unknown_session() if self._turn.resume and not said else failure(said)

    def _finish(self) -> None:
        """The turn is over, and nobody decides any more on what is still open. At the very end nobody waits
        for that answer, either."""
        self._over = True
        self._cancel_unclear()
        self._end()
        if self._closing and not self._prompts:
            self._outbox.clear()

    # ---- what the agent asks

    def _answer(self, frame: wire.Frame) -> Iterable[AnyUpdate]:
        """Answer a request: permission as the guard, a person or the turn allows, all else as we declared."""
        if frame.method != "session/request_permission":
            self._outbox += wire.rejection(frame.id, wire.METHOD_NOT_FOUND, "this client does not offer that")
            return ()
        asked = wire.decode(frame.params, wire.PermissionRequest) or wire.PermissionRequest()
        request = _Request(frame.id, asked.tool_call, asked.options)
        if self.phase != "working" or self._aborting:
            self._cancel_request(request)
            return ()
        self.acknowledged = True
        self._meet(request.subject)
        if self._gate is not None:
            self._unclear.append(request)
            return self._rule(self._gate)
        if not self._choose(request, permitted(self._turn, request.call)):
            self.state.refused.append(request.call.title or request.call.kind or "a tool")
        return ()

    def _rule(self, gate: Gate) -> list[AnyUpdate]:
        """Have the requests answered of which enough is known."""
        ready = [request for request in self._unclear if gate.enough(request.subject)]
        self._unclear = [request for request in self._unclear if request not in ready]
        return [update for request in ready for update in self._put(gate, request)]

    def _put(self, gate: Gate, request: _Request) -> Iterable[AnyUpdate]:
        call, verdict = gate.rule(request.call)

        def reply(verdict: Verdict) -> Iterable[AnyUpdate]:
            if self._aborting or self._over:
                self._cancel_request(request)
                gate.settle(request.subject, call, verdict, granted=False)
                return ()
            granted = self._choose(request, verdict.decision == "allow")
            gate.settle(request.subject, call, verdict, granted=granted)
            return () if granted else self._course.refuse(request.call, call.tool, told(verdict))

        return self._settle(call, verdict, reply)

    def _choose(self, request: _Request, allowed: bool) -> bool:
        """Answer for this once, never for good. What cannot be answered so is not allowed."""
        kind = "allow_once" if allowed else "reject_once"
        option = next((option.option_id for option in request.options if option.kind == kind), None)
        outcome = {"outcome": "selected", "optionId": option} if option else {"outcome": "cancelled"}
        self._outbox += wire.reply(request.id, {"outcome": outcome})
        granted = allowed and option is not None
        if granted:
            self._granted(request.call)
        return granted

    def _granted(self, call: wire.Change) -> None:
        """A request was granted."""

    def _cancel_request(self, request: _Request) -> None:
        """Nobody will decide on this."""
        self._outbox += wire.reply(request.id, {"outcome": {"outcome": "cancelled"}})

    def _cancel_unclear(self) -> None:
        for request in self._unclear:
            self._cancel_request(request)
        self._unclear.clear()

    # ---- what the agent tells

    def _update(self, notice: wire.Notice) -> Iterable[AnyUpdate]:
        update, working = notice.update, self.phase == "working"
        if notice.session_id != self.state.session or not (working or self._over):
            return ()
        if update.session_update in ("tool_call", "tool_call_update") and update.tool_call_id:
            return self._noted(update, update.tool_call_id)
        if working and update.session_update == "usage_update":
            return self._course.filled(update)
        if not working or update.session_update not in ("agent_message_chunk", "agent_thought_chunk"):
            return ()
        updates = self._course.chunk(update)
        self.acknowledged = self.acknowledged or self._course.begun
        return updates

    def _noted(self, update: wire.Change, ident: str) -> Iterable[AnyUpdate]:
        """What is told of a tool call; the guard hears it first, between turns, too."""
        if self.phase == "working" and (update.session_update == "tool_call" or ident not in self._past):
            self._meet(ident)
        if self._gate is not None and (trespass := self._gate.note(ident, update)):
            self._fail(trespass)
            return ()
        if self.phase != "working" or ident in self._past:
            return ()
        self.acknowledged = True
        updates = self._course.tool(update, ident)
        return updates if self._gate is None else [*updates, *self._rule(self._gate)]

    def _meet(self, ident: str) -> None:
        """A tool call of this turn. One that begins now is not one of an earlier turn, whatever its name."""
        self._current.add(ident)
        if ident in self._past:
            self._past.discard(ident)
            if self._gate is not None:
                self._gate.forget(ident)
