"""The client's side of the Agent Client Protocol, version 1: one turn over an agent's standard streams.

Lines come in by ``feed``, what is to be sent goes out by ``say``. No agent is named here: where agents differ
in how they speak the protocol, their ``Dialect`` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeVar, get_args

import msgspec

from remuda import __version__
from remuda.core.errors import ErrorKind
from remuda.core.events import (
    AnyUpdate,
    Failure,
    StopReason,
    ToolCall,
    ToolKind,
    ToolStatus,
    Usage,
    UsageUpdate,
    message,
    thought,
    tool_output,
)
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.acp_permission import permitted
from remuda.runtimes.base import Turn, TurnState
from remuda.runtimes.failures import failure

Word = TypeVar("Word", bound=str)

_KINDS: tuple[ToolKind, ...] = get_args(ToolKind)
_STATUSES: tuple[ToolStatus, ...] = get_args(ToolStatus)
_STOPS: tuple[StopReason, ...] = get_args(StopReason)


def _never(_output: str) -> bool:
    """A failed tool call has failed, and was not refused."""
    return False


def _deaf(_state: TurnState, _line: bytes) -> None:
    """Standard error tells nothing."""


def _as_is(name: str) -> str:
    return name


def counted(outcome: wire.Outcome) -> Usage | None:
    """The tokens where the protocol puts them."""
    counts = outcome.usage
    if counts is None:
        return None
    return Usage(
        counts.input_tokens or 0,
        counts.output_tokens or 0,
        counts.cached_read_tokens or 0,
        counts.cached_write_tokens or 0,
        counts.thought_tokens or 0,
    )


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """Where agents differ in how they speak the protocol.

    ``continues`` is the method that takes up an earlier session. ``usage`` finds the tokens in the answer to
    a prompt; they are counted since the ``turn``, or since the ``session`` began, which says nothing about a
    turn that continues one. ``uncounted_is_failed``: an answer without tokens never came from the model, its
    text is an error message. ``refuses`` tells by the output of a failed tool call that a rule of the agent's
    own kept it from running.
    """

    continues: Literal["session/load", "session/resume"] = "session/load"
    usage: Callable[[wire.Outcome], Usage | None] = counted
    counted_since: Literal["turn", "session"] = "turn"
    uncounted_is_failed: bool = False
    refuses: Callable[[str], bool] = _never
    model: Callable[[str], str] = _as_is
    hear: Callable[[TurnState, bytes], None] = _deaf


class AcpParser:
    """The protocol as a state machine: greet, open the session, prompt, and listen until the answer."""

    def __init__(self, turn: Turn, prompt: str, dialect: Dialect) -> None:
        self.state = TurnState()
        self._turn = turn
        self._prompt = prompt
        self._dialect = dialect
        self._outbox = bytearray()
        self._ident = 0
        self._then: Callable[[msgspec.Raw], None] = self._greeted
        self._blame: ErrorKind = "start_failed"
        self._over = False
        self._statuses: dict[str, ToolStatus] = {}
        self._titles: dict[str, str] = {}
        self._prompted = self._begun = self._between = False
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

    def feed(self, line: bytes) -> Iterable[AnyUpdate]:
        """The updates in one line of stdout."""
        found, noise = wire.frames(line)
        self.state.skipped += noise
        return [update for frame in found for update in self._take(frame)]

    def hear(self, line: bytes) -> None:
        """One line of stderr, which may tell of trouble."""
        self._dialect.hear(self.state, line)

    def say(self) -> bytes | None:
        """What to send now; None closes the connection, once the turn is over."""
        if self._over:
            return None
        words = bytes(self._outbox)
        self._outbox.clear()
        return words

    def finish(self, _leftover: bytes | None) -> None:
        """The output has ended. In the middle of a turn the agent's last words may quote the prompt, so they
        are not repeated."""
        if self._prompted and not self._over and self.state.failure is None:
            self.state.failure = self.state.trouble or Failure("crashed", "the agent went away in mid-turn")

    def _request(
        self, method: str, params: Mapping[str, object], then: Callable[[msgspec.Raw], None]
    ) -> None:
        self._ident += 1
        self._then = then
        self._outbox += wire.request(self._ident, method, params)

    def _fail(self, reason: Failure) -> None:
        self.state.failure = reason
        self._over = True

    def _take(self, frame: wire.Frame) -> Iterable[AnyUpdate]:
        if self._over:
            return ()
        if frame.method is not None and frame.id is not None:
            self._answer(frame)
        elif frame.method == "session/update":
            return self._update(wire.decode(frame.params, wire.Notice) or wire.Notice())
        elif frame.method is None and frame.error is not None and frame.id in (self._ident, None):
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
        return failure(words, default=self._blame)

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
        if opened.models and opened.models.current_model_id:
            self.state.model = self._dialect.model(opened.models.current_model_id)
        self._blame = "model"
        self._prompted = True
        blocks = [{"type": "text", "text": self._prompt}]
        self._request("session/prompt", {"sessionId": session, "prompt": blocks}, self._ended)

    def _ended(self, result: msgspec.Raw) -> None:
        state, dialect = self.state, self._dialect
        outcome = wire.decode(result, wire.Outcome) or wire.Outcome()
        usage = dialect.usage(outcome)
        self._over = True
        state.stop_reason = _word(outcome.stop_reason, _STOPS, "end_turn")
        if dialect.counted_since == "turn" or not self._turn.resume:
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

    def _answer(self, frame: wire.Frame) -> None:
        """Answer a request of the agent's: permission as the turn allows, all else as we declared."""
        if frame.method != "session/request_permission":
            self._outbox += wire.rejection(frame.id, wire.METHOD_NOT_FOUND, "this client does not offer that")
            return
        asked = wire.decode(frame.params, wire.PermissionRequest) or wire.PermissionRequest()
        kind = "allow_once" if permitted(self._turn, asked.tool_call) else "reject_once"
        option = next((option.option_id for option in asked.options if option.kind == kind), None)
        if option is None or kind == "reject_once":
            self.state.refused.append(asked.tool_call.title or asked.tool_call.kind or "a tool")
        outcome = {"outcome": "selected", "optionId": option} if option else {"outcome": "cancelled"}
        self._outbox += wire.reply(frame.id, {"outcome": outcome})

    def _update(self, notice: wire.Notice) -> Iterable[AnyUpdate]:
        if not self._prompted or notice.session_id != self.state.session:
            return ()
        update = notice.update
        match update.session_update:
            case "agent_message_chunk" | "agent_thought_chunk":
                return self._chunk(update)
            case "tool_call" | "tool_call_update" if update.tool_call_id:
                return self._tool(update, update.tool_call_id)
            case "usage_update" if self._begun and update.used is not None:
                return (UsageUpdate(used=update.used, size=update.size or 0),)
        return ()

    def _chunk(self, update: wire.Change) -> Iterable[AnyUpdate]:
        """A piece of text. What agents put in front of it to set it off from a tool call is left out."""
        text = (wire.decode(update.content, wire.Block) or wire.Block()).text or ""
        spoken = update.session_update == "agent_message_chunk"
        if spoken and self._between:
            text = text.lstrip("\n")
        if not text:
            return ()
        self._progress()
        if not spoken:
            return (thought(text),)
        self.state.text = text if self._between else self.state.text + text
        self._between = False
        return (message(text),)

    def _tool(self, update: wire.Change, ident: str) -> Iterable[AnyUpdate]:
        self._progress()
        self._between = True
        status = _word(update.status, _STATUSES, self._statuses.get(ident, "pending"))
        known, self._statuses[ident] = ident in self._statuses, status
        title = self._titles.setdefault(ident, update.title or update.kind or "tool")
        text = wire.texts(update.content)
        if status == "failed" and self._dialect.refuses(text):
            self.state.refused.append(title)
        outcome = tool_output(ident, status, text)
        if known:
            return (outcome,)
        call = ToolCall(
            tool_call_id=ident,
            title=title,
            kind=_word(update.kind, _KINDS, "other"),
            status=status,
            raw_input=_input(update),
        )
        return (call, outcome) if status in ("completed", "failed") else (call,)

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
