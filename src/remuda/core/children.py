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
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import msgspec

from remuda.core import reaper
from remuda.core.errors import StartError
from remuda.core.ids import ulid

MAX_LINE = 64 * 1024 * 1024
STDERR_TAIL = 16 * 1024
_CHUNK = 64 * 1024


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A program to start: argv as a list, never a shell string, and the whole environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    stdin: bytes | None = None


def exit_status(returncode: int) -> int:
    """A child's exit code as a shell tells it: 128+n for signal n."""
    return 128 - returncode if returncode < 0 else returncode


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
    """The process that cleans up after us if we are killed."""

    def __init__(self, mark: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", reaper.__file__, mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

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
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def marked_environment(env: Mapping[str, str], mark: str) -> dict[str, str]:
    """The child's environment with this run's mark behind those of the runs it is nested in."""
    outer = os.environ.get(reaper.MARK)
    return {**env, reaper.MARK: f"{outer}/{mark}" if outer else mark}


class Child:
    """A running headless child: its output lines, its last words, its end."""

    def __init__(self, process: asyncio.subprocess.Process, mark: str, stdin: bytes | None) -> None:
        self._process = process
        self._mark = mark
        self._tail = bytearray()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1024)
        self._tasks = [asyncio.create_task(self._read_stdout()), asyncio.create_task(self._read_stderr())]
        if stdin is not None:
            self._tasks.append(asyncio.create_task(self._write_stdin(stdin)))
        self.last_activity = asyncio.get_running_loop().time()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stderr_tail(self) -> str:
        """The last of what the child said on stderr."""
        return self._tail.decode("utf-8", "replace").strip()

    async def line(self) -> bytes | None:
        """The next line of stdout, or None at its end."""
        return await self._lines.get()

    async def wait(self) -> int:
        """The exit code, once the child has ended."""
        return await self._process.wait()

    async def stop(self, grace: float = reaper.GRACE) -> None:
        """End the child and everything it started."""
        if self._process.returncode is None:
            reaper.kill_group(self.pid, signal.SIGTERM)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._process.wait(), grace)
        reaper.kill_group(self.pid, signal.SIGKILL)
        if reaper.marked(self._mark):
            await asyncio.to_thread(reaper.sweep, self._mark)
        await self._process.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _touch(self) -> None:
        self.last_activity = asyncio.get_running_loop().time()

    async def _read_stdout(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        lines = Lines()
        while chunk := await stdout.read(_CHUNK):
            self._touch()
            for line in lines.feed(chunk):
                await self._lines.put(line)
        for line in lines.end():
            await self._lines.put(line)
        await self._lines.put(None)

    async def _read_stderr(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        while chunk := await stderr.read(_CHUNK):
            self._touch()
            self._tail += chunk
            del self._tail[:-STDERR_TAIL]

    async def _write_stdin(self, payload: bytes) -> None:
        stdin = self._process.stdin
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
    guardian = Reaper(mark)
    try:
        try:
            process = await asyncio.create_subprocess_exec(
                *command.argv,
                stdin=subprocess.DEVNULL if command.stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=command.cwd,
                env=marked_environment(command.env, mark),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise StartError(f"cannot start {command.argv[0]}: {start_reason(error)}") from None
        guardian.watch(process.pid)
        child = Child(process, mark, command.stdin)
        try:
            yield child
        finally:
            await asyncio.shield(child.stop())
    finally:
        guardian.release()


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
                    lines.append(line)
                code = await child.wait()
        except TimeoutError:
            return None
        return Answer(code, b"\n".join(lines).decode("utf-8", "replace"), child.stderr_tail)
