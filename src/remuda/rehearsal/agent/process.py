"""The commands an agent starts, each in its own process group, and the signals that end the agent."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import IO

from msgspec import Struct

from remuda.core.reaper import kill_group

KEPT = 1024 * 1024
"""Bytes kept of each output; the rest is read and let go, so that a chatty command never blocks."""

_CHUNK = 65536
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal asks the agent to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    def die(self) -> None:
        """End this process by the same signal, so that its parent sees the true cause."""
        signal.signal(self.number, signal.SIG_DFL)
        os.kill(os.getpid(), self.number)


class Command(Struct, frozen=True):
    """A shell command to run, and how long it may take."""

    text: str
    cwd: Path
    timeout: float
    stdin: bytes = b""
    env: dict[str, str] = {}


class Ended(Struct, frozen=True):
    """How a command ended; no return code means that its time ran out."""

    returncode: int | None
    stdout: str
    stderr: str


class Processes:
    """Runs commands one at a time and leaves no process of theirs behind, whatever ends the wait.

    A signal raises `Interrupted` at once, except between the birth and the end of a command: there only while
    waiting, when the command's group is sure to be killed on the way out.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._holding = False
        self._pending: int | None = None

    def listen(self) -> None:
        """Take over the signals that are not ignored already."""
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._pending = number
        if not self._holding:
            self._raise_pending()

    def _raise_pending(self) -> None:
        number, self._pending = self._pending, None
        if number is not None:
            raise Interrupted(number)

    def run(self, command: Command, *, merge: bool = False) -> Ended:
        """Run a command to its end or to its limit; `merge` sends stderr to stdout."""
        self._holding = True
        try:
            ended = self._run(command, merge=merge)
        finally:
            self._holding = False
        self._raise_pending()
        return ended

    def _run(self, command: Command, *, merge: bool) -> Ended:
        with tempfile.TemporaryFile() as stdin:
            stdin.write(command.stdin)
            stdin.seek(0)
            process = subprocess.Popen(
                ["sh", "-c", command.text],
                cwd=command.cwd,
                env=self._environ | command.env,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if merge else subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        stdout, stderr = _Drain(process.stdout), _Drain(process.stderr)
        try:
            in_time = self._wait(process, command.timeout)
        finally:
            kill_group(process.pid, signal.SIGKILL)
            process.wait()
        return Ended(process.returncode if in_time else None, stdout.text(), stderr.text())

    def _wait(self, process: subprocess.Popen[bytes], timeout: float) -> bool:
        """Whether the command ended in time; the one place where a signal may break in."""
        self._holding = False
        try:
            self._raise_pending()
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        finally:
            self._holding = True
        return True


class _Drain:
    """Reads one output of a command in the background, up to what is kept."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream: IO[bytes] | None) -> None:
        if stream is None:
            return
        with stream, contextlib.suppress(OSError):
            while chunk := stream.read(_CHUNK):
                self._kept += chunk[: KEPT - len(self._kept)]

    def text(self) -> str:
        """What was read; a process that left its group may hold the output open, and is not waited for."""
        self._thread.join(timeout=1)
        return bytes(self._kept).decode("utf-8", "replace")
