"""What every conversation with an agent's process has in common: prompts that wait, words that wait to be
sent, questions that wait for a person, the end of a turn and of the whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping

import msgspec

from remuda.core.errors import ErrorKind
from remuda.core.events import AnyUpdate, Failure, Question
from remuda.guard.model import Verdict
from remuda.guard.tools import ToolCall
from remuda.hooks.text import printable
from remuda.runtimes import acp_frames as wire
from remuda.runtimes.base import Connection, Phase, Turn, TurnState

Reply = Callable[[Verdict], Iterable[AnyUpdate]]
"""Answers a request of the agent's as a verdict has it, and tells what is to be told of that."""

_LONGEST_TITLE = 4000
UNGUARDED = Verdict(decision="deny", rule="connection.guard", reason="nobody is there to judge it", hint="")
INTERRUPTED = Verdict(
    decision="deny", rule="connection.interrupted", reason="the turn was interrupted", hint=""
)
BYPASS = Verdict(decision="allow", rule="connection.bypass", reason="the user wants no questions", hint="")


class _Waiting(msgspec.Struct, frozen=True):
    """A request of the agent's that a person is asked about; ``key`` is what the protocol knows it by."""

    question: Question
    reply: Reply
    key: object = None


class Dialogue(ABC):
    """Turns that are spoken over the standard streams, one after the other.

    A protocol opens its session by itself and says so by ``_open``; it sends a prompt in ``_begin``, and
    says by ``_end`` that the turn is over. ``_fail`` ends the whole conversation.
    """

    state: TurnState

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.phase: Phase = "opening"
        self.acknowledged = False
        self._outbox = bytearray()
        self._prompts: deque[str] = deque()
        self._waiting: dict[str, _Waiting] = {}
        self._asked = 0
        self._closing = self._aborting = False

    # ---- what the driver calls

    @property
    def questions(self) -> tuple[Question, ...]:
        """What waits for a person's word."""
        return tuple(waiting.question for waiting in self._waiting.values())

    def prompt(self, text: str) -> None:
        """Begin a turn with this, now or after those before it."""
        self._prompts.append(text)

    def close(self) -> None:
        """End once all turns have ended."""
        self._closing = True

    def abort(self) -> None:
        """Ask the program to end the turn under way; prompts that wait are dropped."""
        self._prompts.clear()
        if self.phase == "working" and not self._aborting:
            self._aborting = True
            self._refuse_waiting()
            self._cancel()

    def decide(self, question: str, allowed: bool, reason: str) -> Iterable[AnyUpdate] | None:
        """A person's word, and the updates that it brings; None when nobody waits for it any more."""
        waiting = self._waiting.pop(question, None)
        if waiting is None:
            return None
        return waiting.reply(Verdict(decision="allow" if allowed else "deny", rule="person", reason=reason))

    def say(self) -> bytes | None:
        """What to send now, the next prompt if none is under way; None closes the connection."""
        if self.phase == "idle" and self._prompts:
            self._start(self._prompts.popleft())
        words = bytes(self._outbox)
        self._outbox.clear()
        if self.phase == "idle" and self._closing and not words:
            self.phase = "closed"
        return None if self.phase == "closed" else words

    # ---- what a protocol calls

    def _open(self) -> None:
        """The session is there, and a prompt can be sent."""
        if self.phase == "opening":
            self.phase = "idle"

    def _end(self) -> None:
        """The turn is over; the conversation may go on."""
        if self.phase != "working":
            return
        self._refuse_waiting()
        self.phase = "idle"
        if self._aborting:
            self.state.failure = Failure("cancelled", "interrupted")
            self.state.stop_reason = "cancelled"

    def _fail(self, reason: Failure) -> None:
        """The conversation is over."""
        self.state.failure = reason
        self.phase = "closed"
        self._waiting.clear()
        self._outbox.clear()

    def _break_off(self) -> None:
        """The output has ended. In the middle of a turn the agent's last words may quote the prompt, so they
        are not repeated."""
        if self.phase == "working" and self.state.failure is None:
            self.state.failure = self.state.trouble or Failure("crashed", "the agent went away in mid-turn")
        self.phase = "closed"
        self._waiting.clear()

    def _judge(self, call: ToolCall, reply: Reply, key: object = None) -> Iterable[AnyUpdate]:
        """Have a tool call judged and answered: now, or once a person has been asked."""
        return self._settle(call, self._verdict(call), reply, key)

    def _verdict(self, call: ToolCall) -> Verdict:
        """What the guard says. Without one, only a user who asked for a bypass gets everything. In a turn
        that is to end, nothing begins any more."""
        if self._aborting and self.phase == "working":
            return INTERRUPTED
        guard = self._turn.guard
        if guard is not None:
            return guard.judge(call)
        return BYPASS if self._turn.permission == "bypass" else UNGUARDED

    def _settle(
        self, call: ToolCall, verdict: Verdict, reply: Reply, key: object = None
    ) -> Iterable[AnyUpdate]:
        """Answer as a verdict has it, or let a person decide."""
        if verdict.decision != "ask":
            return reply(verdict)
        self._asked += 1
        ident = f"p{self._asked}"
        question = Question(id=ident, tool=call.tool, title=described(call), reason=verdict.reason)
        self._waiting[ident] = _Waiting(question, reply, key)
        return ()

    def _withdraw(self, key: object) -> None:
        """The agent has taken a request back, and wants no answer any more."""
        for ident in [ident for ident, waiting in self._waiting.items() if waiting.key == key]:
            del self._waiting[ident]

    def _refuse_waiting(self) -> None:
        """Nobody will be asked any more: what waits is denied."""
        for ident in tuple(self._waiting):
            tuple(self.decide(ident, False, INTERRUPTED.reason) or ())

    def _start(self, text: str) -> None:
        """A new turn. What belongs to the whole conversation is carried over."""
        before = self.state
        self.acknowledged = self._aborting = False
        self.phase = "working"
        self.state = TurnState(session=before.session, model=before.model, guard=before.guard)
        self._begin(text)

    @abstractmethod
    def _begin(self, text: str) -> None:
        """Send a prompt."""

    @abstractmethod
    def _cancel(self) -> None:
        """Ask the program to end the turn."""


class RpcDialogue(Dialogue, ABC):
    """Turns in JSON-RPC, in which we have one request open at a time. What fails without telling why is
    blamed on the start first, and on the model once it was asked."""

    def __init__(self, turn: Turn, state: TurnState) -> None:
        super().__init__(turn)
        self.state = state
        self._ident = 0
        self._then: Callable[[msgspec.Raw], None] = _ignored
        self._blame: ErrorKind = "start_failed"

    def feed(self, line: bytes) -> Iterable[AnyUpdate]:
        """The updates in one line of stdout."""
        found, noise = wire.frames(line)
        self.state.skipped += noise
        return [update for frame in found for update in self._take(frame)]

    def finish(self, _leftover: bytes | None) -> None:
        """The output has ended."""
        self._break_off()

    @abstractmethod
    def _take(self, frame: wire.Frame) -> Iterable[AnyUpdate]:
        """The updates in one message."""

    def _request(
        self, method: str, params: Mapping[str, object], then: Callable[[msgspec.Raw], None]
    ) -> None:
        self._ident += 1
        self._then = then
        self._outbox += wire.request(self._ident, method, params)


def one_turn(connection: Connection, prompt: str) -> Connection:
    """A conversation that is over after this one prompt."""
    connection.prompt(prompt)
    connection.close()
    return connection


def described(call: ToolCall) -> str:
    """What a tool call is about, for a person who has to decide on it: its command or path, or all of it."""
    given = call.input if isinstance(call.input, dict) else {}
    named = (given.get(key) for key in ("command", "cmd", "file_path", "path", "url"))
    text = next((value for value in named if isinstance(value, str)), None)
    return printable(text or msgspec.json.encode(call.input).decode("utf-8", "replace"), _LONGEST_TITLE)


def _ignored(_result: msgspec.Raw) -> None:
    """Nothing was asked yet."""
