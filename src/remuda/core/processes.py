"""Starts every child process: own process group, a mark, and a reaper, so that it dies when we do.

Three things end a run's processes: the process group, a mark that every descendant inherits in its
environment (which finds the ones that left the group), and a reaper process that does both when Remuda itself
is killed. Nothing slow is imported, so that an agent starts as early as it can.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

import msgspec

from remuda.core import reaper
from remuda.core.errors import StartError
from remuda.core.ids import ulid

_PIPE = 1024 * 1024
"""Bytes of output that a program may be ahead of us, where the system grants it: some end without waiting for
the rest to be read, and it is lost."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A program to start: argv as a list, never a shell string, and the whole environment.

    Its stdin is given whole and closed, or stays open when we are to converse with it, or is empty.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    stdin: bytes | None = None
    converses: bool = False


def exit_status(returncode: int) -> int:
    """A child's exit code as a shell tells it: 128+n for signal n."""
    return 128 - returncode if returncode < 0 else returncode


def killed_by(status: int) -> int | None:
    """The signal that an exit status speaks of, if it does; 255 is one that programs choose themselves."""
    return status - 128 if 128 < status < 128 + signal.NSIG else None


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


class Process(NamedTuple):
    """A child that has been started, with pipes to its standard streams."""

    command: Command
    popen: subprocess.Popen[bytes]
    mark: str


@contextlib.contextmanager
def started(command: Command, mark: str | None = None) -> Iterator[Process]:
    """Start a headless child; leaving the block ends it and everything it started.

    A block that is left by an exception may have been cut off in cleaning up, so the reaper looks once more.
    """
    mark = mark or ulid()
    with Reaper(mark) as guardian:
        popen = _popen(command, mark)
        guardian.watch(popen.pid)
        _widen(popen.stdout)
        try:
            yield Process(command, popen, mark)
        finally:
            _end(popen, mark)
        guardian.release()


def _popen(command: Command, mark: str) -> subprocess.Popen[bytes]:
    speaks = command.converses or command.stdin is not None
    try:
        return subprocess.Popen(
            command.argv,
            bufsize=0,
            stdin=subprocess.PIPE if speaks else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=command.cwd,
            env=marked_environment(command.env, mark),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise StartError(f"cannot start {command.argv[0]}: {start_reason(error)}") from None


def _widen(pipe: IO[bytes] | None) -> None:
    assert pipe is not None
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


def _end(popen: subprocess.Popen[bytes], mark: str) -> None:
    """End what is still running: nothing, if whoever followed the child has done so already."""
    if popen.poll() is None:
        reaper.kill_group(popen.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(reaper.GRACE)
        reaper.kill_group(popen.pid, signal.SIGKILL)
        reaper.sweep(mark)
    popen.wait()
    for pipe in (popen.stdin, popen.stdout, popen.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def start_reason(error: OSError | ValueError) -> str:
    """What the system said, without the arguments that may hold a prompt."""
    if isinstance(error, OSError):
        return error.strerror or "unknown error"
    return "an argument holds a NUL byte"
