"""A headless session: one child, one turn, its output as events and its end as a result."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from typing import Literal, TypeVar

from remuda.core.children import Child, Line, followed
from remuda.core.events import AnyUpdate, Event, Failure, Result
from remuda.core.files import read_left
from remuda.core.processes import Process, exit_status, killed_by
from remuda.runtimes.base import Parser, TurnState
from remuda.runtimes.failures import by_text
from remuda.sessions.job import Job, Limits, envelope

Got = TypeVar("Got")

_MOST_LEFT = 16 * 1024 * 1024
"""Bytes of the file that a program leaves of its turn: it lies where an agent may write."""


class Stopped(Exception):  # noqa: N818 - not an error: the reason why a run was cut short
    """The run was cut short by us."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.kind)
        self.failure = failure


Named = Callable[[str], object]
"""Hears the program's own id of the session, as soon as it is told."""


async def follow(
    job: Job, process: Process, stop: asyncio.Event, named: Named = lambda _: None
) -> AsyncGenerator[Event]:
    """Follow a started job; the last event carries the result. Setting ``stop`` ends it, as cancelled."""
    numbers = itertools.count(1)
    parser = job.parser
    async with followed(process) as child:
        try:
            async with contextlib.aclosing(_updates(child, parser, job.limits, stop, named)) as updates:
                async for update in updates:
                    yield envelope(job.session, job.agent, next(numbers), update=update)
            code = await child.wait()
            for line in child.unread():
                parser.hear(line.data)
            parser.finish(read_left(job.leftover, _MOST_LEFT) if job.leftover else None)
            result = conclude(parser.state, code, child.stderr_tail)
        except Stopped as stopped:
            await child.stop()
            result = conclude_turn(parser.state, stopped.failure)
    yield envelope(job.session, job.agent, next(numbers), result=result)


async def _updates(
    child: Child, parser: Parser, limits: Limits, stop: asyncio.Event, named: Named
) -> AsyncGenerator[AnyUpdate]:
    """Updates until the child has ended; raises Stopped when a limit is passed or a stop was asked for."""
    watch = _Watch(limits, child)
    stopping = asyncio.ensure_future(stop.wait())
    session: str | None = None
    try:
        child.answer(parser.say)
        while (line := await _watched(child.line(), watch, parser.state, stopping)) is not None:
            updates = tuple(_read(parser, line))
            if parser.state.session and parser.state.session != session:
                session = parser.state.session
                named(session)
            _check_refusal(parser.state)
            for update in updates:
                _check_guard(parser.state)
                watch.progress()
                yield update
            watch.note(parser.state.trouble)
            child.answer(parser.say)
        await _watched(child.wait(), watch, parser.state, stopping)
    finally:
        stopping.cancel()


UNGUARDED = Failure(
    "refused", "the guard did not report at the start of the session: its hooks are not loaded"
)


def _check_guard(state: TurnState) -> None:
    """Nothing an agent does counts before its guard has reported."""
    if state.guard == "awaited":
        raise Stopped(UNGUARDED)


def _check_refusal(state: TurnState) -> None:
    """A turn in which something happened without the guard's consent goes no further."""
    if state.failure is not None and state.failure.kind == "refused":
        raise Stopped(state.failure)


def _read(parser: Parser, line: Line) -> Iterable[AnyUpdate]:
    if line.stream == "stdout":
        return parser.feed(line.data)
    parser.hear(line.data)
    return ()


async def _watched(
    what: Coroutine[None, None, Got], watch: _Watch, state: TurnState, stopping: asyncio.Future[Literal[True]]
) -> Got:
    """What is waited for, unless a stop or the end of a clock comes first."""
    waiting = asyncio.ensure_future(what)
    first: set[asyncio.Future[Got] | asyncio.Future[Literal[True]]] = {waiting, stopping}
    try:
        while True:
            await asyncio.wait(first, timeout=watch.next(), return_when=asyncio.FIRST_COMPLETED)
            if stopping.done():
                raise Stopped(Failure("cancelled", "interrupted"))
            watch.check(state.trouble)
            if waiting.done():
                return waiting.result()
    finally:
        waiting.cancel()


class _Watch:
    """Keeps the three clocks of a turn: its deadline, its silence, its patience with trouble."""

    def __init__(self, limits: Limits, child: Child) -> None:
        self._limits = limits
        self._child = child
        self._time = asyncio.get_running_loop().time
        self._started = self._time()
        self._trouble_since: float | None = None
        self._trouble: Failure | None = None
        self._answered = False

    def progress(self) -> None:
        """The agent has begun to answer."""
        self._answered = True

    def note(self, trouble: Failure | None) -> None:
        """Remember since when the program has been in trouble."""
        self._trouble = trouble
        if trouble is None:
            self._trouble_since = None
        elif self._trouble_since is None:
            self._trouble_since = self._time()

    def _patience(self) -> float:
        """How long the present trouble may last."""
        limits = self._limits
        if self._answered:
            return limits.patience_midway
        hasty = self._trouble is not None and self._trouble.kind in limits.hasty
        return min(limits.patience, limits.haste) if hasty else limits.patience

    def _ends(self) -> Iterator[float]:
        if self._limits.timeout:
            yield self._started + self._limits.timeout
        if self._limits.idle:
            yield self._child.last_activity + self._limits.idle
        if self._trouble_since is not None:
            yield self._trouble_since + self._patience()

    def next(self) -> float | None:
        """Seconds until the next clock may run out."""
        end = min(self._ends(), default=None)
        return None if end is None else max(0.0, end - self._time())

    def check(self, trouble: Failure | None) -> None:
        """Raise Stopped if a clock has run out."""
        now, limits = self._time(), self._limits
        if trouble and self._trouble_since is not None and now >= self._trouble_since + self._patience():
            raise Stopped(trouble)
        if limits.timeout and now >= self._started + limits.timeout:
            raise Stopped(trouble or Failure("timeout", f"no result within {limits.timeout:g} s"))
        if limits.idle and now >= self._child.last_activity + limits.idle:
            raise Stopped(trouble or Failure("timeout", f"no output for {limits.idle:g} s"))


_OURS = "remuda: "
"""What begins the last words of the walls around an agent."""

_NO_WALLS = ("bwrap: ", f"{_OURS}the sandbox ")
"""What begins the words of walls that could not be built: a refusal, for nobody is to be called without."""


def conclude(state: TurnState, returncode: int, stderr: str) -> Result:
    """The result of a turn whose process ended by itself."""
    code = exit_status(returncode)
    if state.failure is None and code == 0 and state.stop_reason is not None:
        return _result(state, code, None)
    return _result(state, code, state.failure or _verdict(state, code, stderr))


def _verdict(state: TurnState, code: int, stderr: str) -> Failure:
    """Why a process that gave no final word failed."""
    if state.trouble:
        return state.trouble
    reason = _reason(stderr)
    if signal := killed_by(code):
        ours = "".join(f": {line}" for line in stderr.splitlines()[-1:] if line.startswith(_OURS))
        return Failure("crashed", f"the agent was killed by signal {signal}{ours.replace(_OURS, '')}")
    if code == 0:
        return Failure("protocol", "the agent ended without a result")
    if state.session is None and not state.answered:
        kind = "refused" if reason.startswith(_NO_WALLS) else by_text(reason) or "start_failed"
        return Failure(kind, f"the agent did not start (exit code {code}): {reason}")
    return Failure(by_text(reason) or "crashed", f"the agent failed (exit code {code}): {reason}")


def _reason(stderr: str) -> str:
    """The last line that names an error, or the last line: many programs put their usage below the error."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    named = [line for line in lines if "error" in line.lower()]
    return (named or lines or ["it gave no reason"])[-1]


def conclude_turn(state: TurnState, failure: Failure | None) -> Result:
    """The result of a turn whose process goes on, or was ended by us."""
    return _result(state, None, failure)


def _result(state: TurnState, code: int | None, failure: Failure | None) -> Result:
    reason = (
        "cancelled" if failure and failure.kind == "cancelled" else "error" if failure else state.stop_reason
    )
    return Result(
        stop_reason=reason or "end_turn",
        text=state.text,
        usage=state.usage,
        cost_usd=state.cost_usd,
        exit_code=code,
        error=failure,
        model=state.model,
        runtime_session=state.session,
        refused=tuple(state.refused),
    )
