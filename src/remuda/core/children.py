"""Starts every child process: own process group, drained output, TERM then KILL, dead when we are.

Three things end a run's processes: the process group, a mark that every descendant inherits in its
environment (which finds the ones that left the group), and a reaper process that does both when Remuda itself
is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec

from remuda.core import reaper
from remuda.core.errors import StartError
from remuda.core.ids import ulid

MAX_LINE = 64 * 1024 * 1024
STDERR_TAIL = 16 * 1024
LINGER = 1.0
"""Seconds that a program's output may stay open behind it before what it left running is ended."""

_CHUNK = 64 * 1024


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A program to start: argv as a list, never a shell string, and the whole environment.

    Its stdin is given whole and closed, or stays open when we are to converse with it, or is empty.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    stdin: bytes | None = None
    converses: bool = False


class Line(msgspec.Struct, frozen=True):
    """A line that a child has said, and where."""

    stream: Literal["stdout", "stderr"]
    data: bytes


def exit_status(returncode: int) -> int:
    """A child's exit code as a shell tells it: 128+n for signal n."""
    return 128 - returncode if returncode < 0 else returncode


def killed_by(status: int) -> int | None:
    """The signal that an exit status speaks of, if it does; 255 is one that programs choose themselves."""
    return status - 128 if 128 < status < 128 + signal.NSIG else None


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


class Reaper:
    """The process that cleans up after us, as long as we have not said that the run is over and clean."""

    def __init__(self, mark: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", reaper.__file__, mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Without a release, this waits until the reaper has cleaned up."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _say(self, word: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError):
            os.write(stdin.fileno(), word)

    def watch(self, group: int) -> None:
        """Tell the reaper which process group to end."""
        self._say(str(group).encode())

    def release(self) -> None:
        """The run is over and clean."""
        self._say(b"done")


def marked_environment(env: Mapping[str, str], mark: str) -> dict[str, str]:
    """The child's environment with this run's mark behind those of the runs it is nested in."""
    outer = os.environ.get(reaper.MARK)
    return {**env, reaper.MARK: f"{outer}/{mark}" if outer else mark}


class _Protocol(asyncio.subprocess.SubprocessStreamProtocol):
    """Tells the program's own end from that of its output, which a process it left behind may hold open."""

    def __init__(self) -> None:
        super().__init__(limit=_CHUNK, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class Child:
    """A running headless child: its output lines, its last words, its end."""

    def __init__(
        self, transport: asyncio.SubprocessTransport, protocol: _Protocol, mark: str, command: Command
    ) -> None:
        self._transport = transport
        self._protocol = protocol
        self._mark = mark
        self._tail = bytearray()
        self._lines: asyncio.Queue[Line | None] = asyncio.Queue(maxsize=1024)
        self._stdout = asyncio.create_task(self._read_stdout())
        self._stderr = asyncio.create_task(self._read_stderr())
        self._tasks = [self._stdout, self._stderr, asyncio.create_task(self._close_behind())]
        self._converses = command.converses
        if command.stdin is not None:
            self._tasks.append(asyncio.create_task(self._write_stdin(command.stdin)))
        self.last_activity = asyncio.get_running_loop().time()

    @property
    def pid(self) -> int:
        pid = self._transport.get_pid()
        assert pid is not None
        return pid

    @property
    def stderr_tail(self) -> str:
        """The last of what the child said on stderr."""
        return self._tail.decode("utf-8", "replace").strip()

    async def line(self) -> Line | None:
        """The next line of output, or None at the end of stdout."""
        return await self._lines.get()

    def answer(self, say: Callable[[], bytes | None]) -> None:
        """In a conversation, send what there is to say; None ends it."""
        stdin = self._protocol.stdin
        if not self._converses or stdin is None:
            return
        words = say()
        if words is None:
            self._converses = False
            stdin.close()
        elif words:
            stdin.write(words)

    async def wait(self) -> int:
        """The exit code, once the child has ended and its last words have been read."""
        await self._protocol.exited.wait()
        await asyncio.wait({self._stderr}, timeout=2 * LINGER)
        code = self._transport.get_returncode()
        assert code is not None
        return code

    async def stop(self, grace: float = reaper.GRACE) -> None:
        """End the child and everything it started."""
        if not self._protocol.exited.is_set():
            reaper.kill_group(self.pid, signal.SIGTERM)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._protocol.exited.wait(), grace)
        await self._end_group()
        await self._protocol.exited.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._transport.close()

    async def _end_group(self) -> None:
        """End the group and whatever left it with the mark in its environment."""
        reaper.kill_group(self.pid, signal.SIGKILL)
        if reaper.marked(self._mark):
            await asyncio.to_thread(reaper.sweep, self._mark)

    async def _close_behind(self) -> None:
        """End what the program left running with its output open, so that the output ends."""
        await self._protocol.exited.wait()
        _, still_open = await asyncio.wait({self._stdout, self._stderr}, timeout=LINGER)
        if still_open:
            await self._end_group()

    def _touch(self) -> None:
        self.last_activity = asyncio.get_running_loop().time()

    async def _read_stdout(self) -> None:
        stdout = self._protocol.stdout
        assert stdout is not None
        lines = Lines()
        while chunk := await stdout.read(_CHUNK):
            self._touch()
            for line in lines.feed(chunk):
                await self._lines.put(Line("stdout", line))
        for line in lines.end():
            await self._lines.put(Line("stdout", line))
        await self._lines.put(None)

    async def _read_stderr(self) -> None:
        stderr = self._protocol.stderr
        assert stderr is not None
        lines = Lines()
        while chunk := await stderr.read(_CHUNK):
            self._touch()
            self._tail += chunk
            del self._tail[:-STDERR_TAIL]
            for line in lines.feed(chunk):
                with contextlib.suppress(asyncio.QueueFull):
                    self._lines.put_nowait(Line("stderr", line))

    async def _write_stdin(self, payload: bytes) -> None:
        stdin = self._protocol.stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            stdin.write(payload)
            await stdin.drain()
        stdin.close()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await stdin.wait_closed()


@contextlib.asynccontextmanager
async def running(command: Command) -> AsyncIterator[Child]:
    """Start a headless child; leaving the block ends it and everything it started."""
    mark = ulid()
    with Reaper(mark) as guardian:
        child = await _start(command, mark)
        guardian.watch(child.pid)
        try:
            yield child
        finally:
            await asyncio.shield(child.stop())
            guardian.release()


async def _start(command: Command, mark: str) -> Child:
    try:
        transport, protocol = await asyncio.get_running_loop().subprocess_exec(
            _Protocol,
            *command.argv,
            stdin=subprocess.PIPE if command.converses or command.stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=command.cwd,
            env=marked_environment(command.env, mark),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise StartError(f"cannot start {command.argv[0]}: {start_reason(error)}") from None
    return Child(transport, protocol, mark, command)


def start_reason(error: OSError | ValueError) -> str:
    """What the system said, without the arguments that may hold a prompt."""
    if isinstance(error, OSError):
        return error.strerror or "unknown error"
    return "an argument holds a NUL byte"


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
