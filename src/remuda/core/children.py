"""Follows headless child processes: output drained, lines handed on, TERM then KILL."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import IO, Literal

import msgspec

from remuda.core import reaper
from remuda.core.processes import Command, Process, started

MAX_LINE = 64 * 1024 * 1024
STDERR_TAIL = 16 * 1024
LINGER = 1.0
"""Seconds that a program's output may stay open behind it before what it left running is ended."""

_CHUNK = 64 * 1024


class Line(msgspec.Struct, frozen=True):
    """A line that a child has said, and where."""

    stream: Literal["stdout", "stderr"]
    data: bytes


class Lines:
    """Cuts a byte stream into lines; a line over the cap is dropped, the lines after it are not."""

    def __init__(self, cap: int = MAX_LINE) -> None:
        self._cap = cap
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that this chunk completes, without their line ends."""
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            self._keep(piece)
            if (line := self._take()) is not None:
                yield line
        self._keep(rest)

    def end(self) -> Iterator[bytes]:
        """The unfinished last line, if there is one."""
        if self._size and (line := self._take()) is not None:
            yield line

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._cap:
            self._parts.append(piece)
        else:
            self._parts.clear()

    def _take(self) -> bytes | None:
        line = b"".join(self._parts) if self._size <= self._cap else None
        self._parts.clear()
        self._size = 0
        return line


class Child:
    """A running headless child, followed: its output lines, its last words, its end."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self._tail = bytearray()
        self._lines: asyncio.Queue[Line | None] = asyncio.Queue(maxsize=1024)
        self._converses = process.command.converses
        self._transports: list[asyncio.BaseTransport] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.last_activity = self._loop.time()

    async def attach(self) -> None:
        """Take over the pipes."""
        self._watch_exit()
        popen = self._process.popen
        assert popen.stdout is not None
        assert popen.stderr is not None
        self._stdin = await self._writer(popen.stdin) if popen.stdin else None
        self._stdout = asyncio.create_task(self._read_stdout(await self._reader(popen.stdout)))
        self._stderr = asyncio.create_task(self._read_stderr(await self._reader(popen.stderr)))
        self._tasks += [self._stdout, self._stderr, asyncio.create_task(self._close_behind())]
        if self._process.command.stdin is not None:
            self._tasks.append(asyncio.create_task(self._write_stdin(self._process.command.stdin)))

    @property
    def pid(self) -> int:
        return self._process.popen.pid

    @property
    def stderr_tail(self) -> str:
        """The last of what the child said on stderr."""
        return self._tail.decode("utf-8", "replace").strip()

    async def line(self) -> Line | None:
        """The next line of output, or None at the end of stdout."""
        return await self._lines.get()

    def unread(self) -> Iterator[Line]:
        """The lines that came behind the end of stdout."""
        with contextlib.suppress(asyncio.QueueEmpty):
            while line := self._lines.get_nowait():
                yield line

    def answer(self, say: Callable[[], bytes | None]) -> None:
        """In a conversation, send what there is to say; None ends it."""
        if not self._converses or self._stdin is None:
            return
        words = say()
        if words is None:
            self._converses = False
            self._stdin.close()
        elif words:
            self._stdin.write(words)

    async def wait(self) -> int:
        """The exit code, once the child has ended and its last words have been read."""
        await self._exited.wait()
        await asyncio.wait({self._stderr}, timeout=2 * LINGER)
        return self._process.popen.wait()

    async def stop(self, grace: float = reaper.GRACE) -> None:
        """End the child and everything it started."""
        try:
            if not self._exited.is_set():
                reaper.kill_group(self.pid, signal.SIGTERM)
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._exited.wait(), grace)
            await self._end_group()
            await self._exited.wait()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for transport in self._transports:
                transport.close()
            await asyncio.sleep(0)

    def _watch_exit(self) -> None:
        """Notice the program's own end, which may come before that of its output."""
        try:
            handle = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            threading.Thread(target=self._wait_in_thread, daemon=True).start()
        else:
            self._loop.add_reader(handle, self._has_exited, handle)

    def _has_exited(self, handle: int) -> None:
        self._loop.remove_reader(handle)
        os.close(handle)
        self._process.popen.wait()
        self._exited.set()

    def _wait_in_thread(self) -> None:
        self._process.popen.wait()
        self._loop.call_soon_threadsafe(self._exited.set)

    async def _end_group(self) -> None:
        """End the group and whatever left it with the mark in its environment."""
        reaper.kill_group(self.pid, signal.SIGKILL)
        if reaper.marked(self._process.mark):
            await asyncio.to_thread(reaper.sweep, self._process.mark)

    async def _close_behind(self) -> None:
        """End what the program left running with its output open, so that the output ends."""
        await self._exited.wait()
        _, still_open = await asyncio.wait({self._stdout, self._stderr}, timeout=LINGER)
        if still_open:
            await self._end_group()

    async def _reader(self, pipe: IO[bytes]) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(limit=_CHUNK)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await self._loop.connect_read_pipe(lambda: protocol, pipe)
        self._transports.append(transport)
        return reader

    async def _writer(self, pipe: IO[bytes]) -> asyncio.StreamWriter:
        protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        transport, _ = await self._loop.connect_write_pipe(lambda: protocol, pipe)
        self._transports.append(transport)
        return asyncio.StreamWriter(transport, protocol, None, self._loop)

    def _touch(self) -> None:
        self.last_activity = self._loop.time()

    async def _read_stdout(self, stdout: asyncio.StreamReader) -> None:
        lines = Lines()
        while chunk := await stdout.read(_CHUNK):
            self._touch()
            for line in lines.feed(chunk):
                await self._lines.put(Line("stdout", line))
        for line in lines.end():
            await self._lines.put(Line("stdout", line))
        await self._lines.put(None)

    async def _read_stderr(self, stderr: asyncio.StreamReader) -> None:
        lines = Lines()
        while chunk := await stderr.read(_CHUNK):
            self._touch()
            self._tail += chunk
            del self._tail[:-STDERR_TAIL]
            for line in lines.feed(chunk):
                with contextlib.suppress(asyncio.QueueFull):
                    self._lines.put_nowait(Line("stderr", line))

    async def _write_stdin(self, payload: bytes) -> None:
        assert self._stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._stdin.write(payload)
            await self._stdin.drain()
        self._stdin.close()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await self._stdin.wait_closed()


@contextlib.asynccontextmanager
async def followed(process: Process) -> AsyncIterator[Child]:
    """Follow a started child; leaving the block ends it and everything it started."""
    child = Child(process)
    try:
        await child.attach()
        yield child
    finally:
        await _uncut(child.stop())


async def _uncut(work: Coroutine[None, None, None]) -> None:
    """Finish what must not be cut off half-way; a cancellation that came meanwhile counts afterwards."""
    task = asyncio.ensure_future(work)
    cancelled = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled:
        raise cancelled


@contextlib.asynccontextmanager
async def running(command: Command) -> AsyncIterator[Child]:
    """Start a headless child and follow it."""
    with started(command) as process:
        async with followed(process) as child:
            yield child


class Answer(msgspec.Struct, frozen=True):
    """What a short question to a program gave."""

    returncode: int
    stdout: str
    stderr: str


async def ask(command: Command, timeout: float) -> Answer | None:
    """Run a short command such as ``--version``; None when it does not answer in time."""
    lines: list[bytes] = []
    async with running(command) as child:
        try:
            async with asyncio.timeout(timeout):
                while (line := await child.line()) is not None:
                    if line.stream == "stdout":
                        lines.append(line.data)
                code = await child.wait()
        except TimeoutError:
            return None
        return Answer(code, b"\n".join(lines).decode("utf-8", "replace"), child.stderr_tail)
