"""A connected agent: drives a conversation over the standard streams of a child, over any number of turns.

The conversation itself is a state machine without input and output (``runtimes.base.Connection``); here it
meets the process: its lines, its silence and its death.
"""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from remuda.core.children import Child, Line
from remuda.core.errors import RemudaError
from remuda.core.events import AnyUpdate, Failure, Question, Result, ToolCall, ToolCallUpdate
from remuda.runtimes.base import Connection, Phase, TurnState
from remuda.sessions.headless import UNGUARDED, conclude, conclude_turn

GONE = Failure("crashed", "the agent has ended")

Happening = AnyUpdate | Question | Result | Phase
"""What is told of a conversation: an update, a question to a person, the result of a turn, a new phase."""


class Patience(msgspec.Struct, frozen=True):
    """How long to wait, in seconds; 0 means without end.

    ``start``: until the first prompt can be sent. ``idle``: for any line in the middle of a turn, unless a
    person is asked meanwhile. ``abort``: for the end of a turn that was asked to end, before the process is
    ended. ``trouble``: while the program repeats a request that failed.
    """

    start: float = 120.0
    idle: float = 0
    abort: float = 10.0
    trouble: float = 120.0


class ConnectionState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a connected agent is doing."""

    status: Literal["idle", "working", "error"]
    current_tool: str | None = None


class LostError(RemudaError):
    """A prompt that no agent will answer any more."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Sent(msgspec.Struct, frozen=True):
    """What becomes of a prompt: confirmed by the agent, and then answered."""

    text: str
    leaving: Callable[[], None]
    arrived: asyncio.Future[None]
    answered: asyncio.Future[Result]


def _unnoticed() -> None:
    """Nobody has to know."""


class Live:
    """The documented connection to an agent: prompts, follow-ups, an abort in two stages, its state."""

    def __init__(
        self,
        child: Child,
        connection: Connection,
        tell: Callable[[Happening], None],
        patience: Patience | None = None,
    ) -> None:
        self._child = child
        self._connection = connection
        self._tell = tell
        self._patience = patience or Patience()
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Sent] = deque()
        self._current: Sent | None = None
        self._phase: Phase = connection.phase
        self._asked: set[str] = set()
        self._tool: tuple[str, str] | None = None
        self._began = self._spoken = self._loop.time()
        self._since: float | None = None
        self._troubled: float | None = None
        self._alarm: asyncio.Timeout | None = None
        self._closing = self._broken = self._silent = False
        self._cut_off: Failure | None = None
        self._ended: Failure | None = None

    # ---- for whoever holds the connection

    def send_prompt(self, text: str, leaving: Callable[[], None] = _unnoticed) -> Sent:
        """Send a prompt, after those that wait already; ``leaving`` is called just before it goes out."""
        sent = Sent(text, leaving, self._loop.create_future(), self._loop.create_future())
        for future in (sent.arrived, sent.answered):
            future.add_done_callback(_seen)
        if self._phase == "closed":
            _lose(sent, self._ended or GONE)
        else:
            self._queue.append(sent)
            self._step()
        return sent

    follow_up = send_prompt
    """A further prompt in the same conversation, once the turn under way has ended."""

    def abort(self) -> None:
        """End the turn under way, first by asking; prompts that wait are dropped."""
        self._drop(Failure("cancelled", "interrupted"))
        self._break_off()

    def decide(self, question: str, allowed: bool, reason: str) -> bool:
        """A person's word about a tool call; False when nobody waits for it any more."""
        updates = self._connection.decide(question, allowed, reason)
        if updates is None:
            return False
        self._spoken = self._loop.time()
        self._publish(updates)
        self._step()
        return True

    def get_state(self) -> ConnectionState:
        """What the agent is doing."""
        if self._phase == "closed":
            return ConnectionState("error")
        tool = self._tool[1] if self._tool else None
        return ConnectionState("working" if self._phase == "working" else "idle", tool)

    @property
    def questions(self) -> tuple[Question, ...]:
        """What waits for a person's word."""
        return self._connection.questions

    @property
    def runtime_session(self) -> str | None:
        """What the runtime calls the session."""
        return self._connection.state.session

    def close(self) -> None:
        """End the conversation once the turns that there are have ended."""
        self._closing = True
        self._connection.close()
        self._step()

    # ---- the conversation

    async def run(self) -> Failure | None:
        """Converse until the process has ended; why, unless it was closed."""
        self._step()
        while self._phase != "closed" and (line := await self._line()) is not None:
            if line.stream == "stdout":
                updates = tuple(self._connection.feed(line.data))
                if updates and self._connection.state.guard == "awaited":
                    self._cut_off = UNGUARDED
                    break
                self._publish(updates)
            else:
                self._connection.hear(line.data)
            self._step()
        return await self._end()

    async def _line(self) -> Line | None:
        """The next line, unless a clock runs out before it comes."""
        while True:
            try:
                async with asyncio.timeout_at(self._deadline()) as self._alarm:
                    return await self._heard()
            except TimeoutError:
                if not self._overdue():
                    return None
            finally:
                self._alarm = None

    async def _heard(self) -> Line | None:
        """The next line, or None once the output has ended."""
        line = None if self._silent else await self._child.line()
        self._silent = line is None
        return line

    def _clocks(self) -> Iterator[tuple[float, Failure]]:
        """When something has to have happened, and what it means if it has not. Behind its close there is
        nothing to wait for but the program's end."""
        patience = self._patience
        if self._phase == "closed":
            yield self._began, GONE
        if self._phase == "opening" and patience.start:
            words = f"the agent took no prompt within {patience.start:g} s"
            yield self._began + patience.start, Failure("start_failed", words)
        if self._phase != "working":
            return
        if self._since is not None:
            words = "the agent did not end the turn, and was ended itself"
            if patience.abort:
                yield self._since + patience.abort, Failure("cancelled", words)
            return
        if self._troubled is not None and patience.trouble:
            yield self._troubled + patience.trouble, self._connection.state.trouble or GONE
        if patience.idle and not self._connection.questions:
            last = max(self._child.last_activity, self._spoken)
            yield last + patience.idle, Failure("timeout", f"no output for {patience.idle:g} s")

    def _deadline(self) -> float | None:
        return min((end for end, _ in self._clocks()), default=None)

    def _overdue(self) -> bool:
        """Look at the clocks; whether there is still something to wait for."""
        now = self._loop.time()
        reason = next((reason for end, reason in self._clocks() if end <= now), None)
        if self._phase == "closed" or reason is None:
            return self._phase != "closed"
        self._cut_off = self._cut_off or reason
        if self._phase == "opening" or self._since is not None:
            return False
        self._break_off()
        return True

    def _break_off(self) -> None:
        """Ask for the end of the turn under way."""
        if self._phase == "working":
            self._since = self._since or self._loop.time()
            self._connection.abort()
            self._step()

    def _drop(self, reason: Failure) -> None:
        """Prompts that wait will not be sent any more."""
        for sent in self._queue:
            _lose(sent, reason)
        self._queue.clear()

    def _publish(self, updates: Iterable[AnyUpdate]) -> None:
        for update in updates:
            if isinstance(update, ToolCall):
                self._tool = (update.tool_call_id, update.title)
            elif isinstance(update, ToolCallUpdate) and update.status in ("completed", "failed"):
                self._tool = None
            self._tell(update)

    def _step(self) -> None:
        """Go on as far as possible: tell what is new, answer, and begin the next turn."""
        self._notice()
        if self._connection.phase == "idle" and self._current is None and self._queue:
            self._current = self._queue.popleft()
            self._current.leaving()
            self._spoken = self._loop.time()
            self._connection.prompt(self._current.text)
        self._child.answer(self._connection.say)
        self._notice()
        if self._alarm is not None and not self._alarm.expired():
            self._alarm.reschedule(self._deadline())

    def _notice(self) -> None:
        """Tell what has changed."""
        connection = self._connection
        if self._current is not None and connection.acknowledged and not self._current.arrived.done():
            self._current.arrived.set_result(None)
        for question in connection.questions:
            if question.id not in self._asked:
                self._asked.add(question.id)
                self._tell(question)
        trouble = connection.state.trouble
        self._troubled = None if trouble is None else self._troubled or self._loop.time()
        if connection.phase == self._phase:
            return
        before, self._phase = self._phase, connection.phase
        self._broken = self._phase == "closed" and (before != "idle" or not self._closing)
        if before == "working":
            self._conclude()
        self._tell(self._phase)

    def _conclude(self) -> None:
        """The turn under way has ended."""
        failure = self._cut_off or self._connection.state.failure
        result = conclude_turn(self._connection.state, failure)
        sent, self._current = self._current, None
        self._tool = self._since = self._troubled = None
        self._cut_off = None
        self._tell(result)
        if sent is not None:
            if not sent.answered.done():
                sent.answered.set_result(result)
            if result.error is not None:
                _lose(sent, result.error)
            elif not sent.arrived.done():
                sent.arrived.set_result(None)

    async def _end(self) -> Failure | None:
        """The process has ended, or is ended now; all that wait hear of it at once."""
        closed = self._phase == "closed"
        reason = self._cut_off or (self._connection.state.failure if closed and self._broken else None)
        if reason is None:
            code = await self._ending()
            reason = None if closed else self._cause(code)
        await self._child.stop()
        self._cut_off, self._ended = reason, reason
        self._connection.finish(None)
        self._notice()
        self._drop(reason or GONE)
        return reason

    async def _ending(self) -> int:
        """The exit code of a program that ends by itself, or has had its time to."""
        try:
            async with asyncio.timeout(self._patience.abort or None):
                while await self._heard() is not None:
                    pass
                return await self._child.wait()
        except TimeoutError:
            return -signal.SIGTERM

    def _cause(self, code: int) -> Failure:
        """Why a process has ended that was not asked to. What became of the turns before has nothing to do
        with that."""
        state = self._connection.state
        if self._phase == "idle":
            state = TurnState(session=state.session)
        if self._phase == "idle" and code == 0:
            return GONE
        return conclude(state, code, self._child.stderr_tail).error or GONE


def _lose(sent: Sent, reason: Failure) -> None:
    for future in (sent.arrived, sent.answered):
        if not future.done():
            future.set_exception(LostError(reason))


def _seen(future: asyncio.Future[None] | asyncio.Future[Result]) -> None:
    """Nobody has to wait for what became of a prompt."""
    if not future.cancelled():
        future.exception()
