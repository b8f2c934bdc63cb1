"""A connection on which tmux tells by itself what its panes do, so that nobody has to keep looking.

It is a control client of one session. Of what panes write, a bounded tail is kept and the rest counted: who
waits is woken by output, and takes a fresh look at the screen after it. Screens do not travel here, because a
text on one could imitate the end of a reply. The end of the connection leaves the session as it is.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator

import msgspec

from remuda.core.errors import RemudaError, StartError
from remuda.sessions.tmux import errors, protocol
from remuda.sessions.tmux.client import TIMEOUT, Client

TAIL = 256 * 1024
"""Bytes of a pane's output that are kept for who reads them; older ones are dropped and counted."""

_CHUNK = 64 * 1024
_ENDED = "remuda_ended"
_FLAGS = "ignore-size,pause-after=5"


class Heard(msgspec.Struct, frozen=True):
    """What a pane has written since the last time, and how many bytes in front of it were dropped."""

    data: bytes
    dropped: int = 0


class _Feed:
    """One pane's output: how much there has been, when, and its tail."""

    def __init__(self) -> None:
        self.total = 0
        self.latest = 0.0
        self.ended = False
        self.tail = bytearray()
        self.dropped = 0

    def add(self, data: bytes, now: float) -> None:
        self.total += len(data)
        self.latest = now
        self.tail += data
        if (over := len(self.tail) - TAIL) > 0:
            del self.tail[:over]
            self.dropped += over

    def take(self) -> Heard:
        heard = Heard(bytes(self.tail), self.dropped)
        self.tail.clear()
        self.dropped = 0
        return heard


class Control:
    """A control client that is attached to a session; made by :func:`attached`."""

    def __init__(self, process: asyncio.subprocess.Process, session: str) -> None:
        self._process = process
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._feeds: dict[str, _Feed] = {}
        self._pending: deque[asyncio.Future[protocol.Reply]] = deque()
        self._greeting: asyncio.Future[protocol.Reply] = self._loop.create_future()
        self._changed = asyncio.Event()
        self._over: RemudaError | None = None
        self._reason: str | None = None
        self._said = b""
        self._reading = asyncio.create_task(self._read())

    async def command(self, *words: str, timeout: float = TIMEOUT) -> tuple[str, ...]:
        """One command, and the lines that it gave. Not for screens, nor for commands that run others."""
        reply = await self._answered(self._send(words), timeout)
        if not reply.ok:
            raise errors.told(reply.text, self._session)
        return reply.lines

    def written(self, pane: str) -> int:
        """How many bytes the pane has written since the connection began."""
        return self._feed(pane).total

    def ended(self, pane: str) -> bool:
        """Whether the pane's program is known to have ended; tmux tells within a second."""
        return self._feed(pane).ended

    async def more(self, pane: str, seen: int) -> int:
        """Wait until the pane has written more than that, or its program has ended; how much it has now."""
        feed = self._feed(pane)
        while feed.total <= seen and not feed.ended:
            await self._change()
        return feed.total

    async def quiet(self, pane: str, seconds: float, within: float) -> bool:
        """Wait until the pane has written nothing for so long; False if that takes longer than ``within``."""
        feed, start = self._feed(pane), self._loop.time()
        while True:
            now = self._loop.time()
            silent = now - max(feed.latest, start)
            if silent >= seconds or feed.ended:
                return True
            if now - start >= within:
                return False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(seconds - silent, within - (now - start))):
                    await self._change()

    async def output(self, pane: str) -> AsyncIterator[Heard]:
        """What the pane writes, as it comes; ends with its program."""
        feed, seen = self._feed(pane), 0
        while True:
            seen = await self.more(pane, seen)
            if feed.tail:
                yield feed.take()
            elif feed.ended:
                return

    async def greeted(self) -> None:
        """Wait until tmux has let us in, and ask to be told when a program ends."""
        reply = await self._answered(self._greeting, TIMEOUT)
        if not reply.ok:
            raise errors.told(reply.text, self._session)
        await self.command("refresh-client", "-B", f"{_ENDED}:%*:#{{pane_dead}}")

    async def close(self) -> None:
        """Leave; the session stays."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(2):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        self._end(errors.no_session(self._session))

    def _feed(self, pane: str) -> _Feed:
        return self._feeds.setdefault(pane, _Feed())

    def _send(self, words: tuple[str, ...]) -> asyncio.Future[protocol.Reply]:
        if self._over is not None:
            raise self._over
        assert self._process.stdin is not None
        self._process.stdin.write(protocol.command(words).encode() + b"\n")
        waiting: asyncio.Future[protocol.Reply] = self._loop.create_future()
        self._pending.append(waiting)
        return waiting

    async def _answered(self, waiting: asyncio.Future[protocol.Reply], timeout: float) -> protocol.Reply:
        """A reply; one that nobody waits for any more is dropped when it comes."""
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.shield(waiting)
        except TimeoutError:
            waiting.add_done_callback(_unheard)
            raise errors.no_answer(timeout) from None
        except asyncio.CancelledError:
            waiting.add_done_callback(_unheard)
            raise

    async def _change(self) -> None:
        if self._over is not None:
            raise self._over
        await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        reader = protocol.Reader()
        try:
            while chunk := await self._process.stdout.read(_CHUNK):
                if not self._greeting.done():
                    self._said = (self._said + chunk)[:_CHUNK]
                for message in reader.feed(chunk):
                    self._take(message)
                self._wake()
        finally:
            self._end(self._why())

    def _take(self, message: protocol.Message) -> None:
        match message:
            case protocol.Reply():
                waiting = self._pending.popleft() if message.ours and self._pending else self._greeting
                if not waiting.done():
                    waiting.set_result(message)
            case protocol.Output():
                self._feed(message.pane).add(message.data, self._loop.time())
            case protocol.Paused():
                self._feed(message.pane).add(b"", self._loop.time())
                self._send(("refresh-client", "-A", f"{message.pane}:continue")).add_done_callback(_unheard)
            case protocol.Changed(name=name) if name == _ENDED:
                self._feed(message.pane).ended = message.value == "1"
            case protocol.Exit():
                self._reason = message.reason
            case _:
                pass

    def _why(self) -> RemudaError:
        """What the end of the connection means."""
        if self._reason is None:
            said = self._said.decode("utf-8", "replace")
            return errors.broken() if self._greeting.done() else errors.told(said, self._session)
        if self._reason.startswith(("server", "lost")):
            return errors.server_gone()
        return errors.no_session(self._session)

    def _end(self, error: RemudaError) -> None:
        """Nothing more will come: all who wait are told."""
        if self._over is not None:
            return
        self._over = error
        for waiting in (*self._pending, self._greeting):
            if not waiting.done():
                waiting.set_exception(error)
                waiting.add_done_callback(_unheard)
        self._pending.clear()
        self._wake()


def _unheard(waiting: asyncio.Future[protocol.Reply]) -> None:
    if not waiting.cancelled():
        waiting.exception()


@contextlib.asynccontextmanager
async def attached(client: Client, session: str) -> AsyncIterator[Control]:
    """Connect to a session; leaving the block leaves the session alive."""
    target = protocol.session_target(session)
    argv = await asyncio.to_thread(client.argv)
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            *("-N", "-C", "attach-session", "-f", _FLAGS, "-t", target),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=client.environment(),
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise StartError(f"cannot start tmux: {error.strerror}") from None
    control = Control(process, session)
    try:
        await control.greeted()
        yield control
    finally:
        await control.close()
