"""Hands the terminal to an interactive child and takes it back, as a shell does."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from types import FrameType, TracebackType
from typing import Self

from remuda.core import reaper
from remuda.core.errors import StartError
from remuda.core.ids import ulid
from remuda.core.processes import Command, Reaper, exit_status, marked_environment, start_reason

_RELAYED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


class _Terminal:
    """The terminal on standard input, as far as it is ours to give."""

    def __init__(self) -> None:
        self.look()

    def look(self) -> None:
        """See whether we are in the foreground: in the background the terminal belongs to somebody else."""
        self._ours = False
        with contextlib.suppress(OSError):
            self._ours = os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()

    def give(self, group: int) -> None:
        """Make a process group the terminal's foreground group."""
        if not self._ours:
            return
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            with contextlib.suppress(OSError):
                os.tcsetpgrp(0, group)
        finally:
            signal.signal(signal.SIGTTOU, before)


def hand_over(command: Command) -> int:
    """Run an interactive child in the foreground and return its exit code, 128+n for signal n."""
    mark = ulid()
    terminal = _Terminal()
    with Reaper(mark) as guardian:
        try:
            with _Relay() as relay:
                child = _start(command, mark, terminal)
                guardian.watch(child.pid)
                relay.to(child.pid)
                child.returncode = _wait(child.pid, terminal)
        finally:
            terminal.give(os.getpgrp())
        reaper.kill_group(child.pid, signal.SIGKILL)
        reaper.sweep(mark)
        guardian.release()
        return exit_status(child.returncode)


def _start(command: Command, mark: str, terminal: _Terminal) -> subprocess.Popen[bytes]:
    """Start the child as leader of its own group, in the foreground from its first instruction."""

    def in_child() -> None:
        os.setpgid(0, 0)
        terminal.give(os.getpid())

    try:
        return subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=marked_environment(command.env, mark),
            preexec_fn=in_child,  # noqa: PLW1509 - the group must be set before the program runs
        )
    except (OSError, ValueError) as error:
        raise StartError(f"cannot start {command.argv[0]}: {start_reason(error)}") from None


class _Relay:
    """Passes the signals that ask us to end on to the child's group; those that come early wait for it."""

    def __init__(self) -> None:
        self._group: int | None = None
        self._early: list[int] = []
        self._held = contextlib.ExitStack()

    def __enter__(self) -> Self:
        for number in _RELAYED:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                self._held.callback(signal.signal, number, signal.signal(number, self._pass_on))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    def to(self, group: int) -> None:
        """The child is there."""
        self._group = group
        for number in self._early:
            reaper.kill_group(group, number)

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        if self._group is None:
            self._early.append(number)
        else:
            reaper.kill_group(self._group, number)


def _wait(pid: int, terminal: _Terminal) -> int:
    """Wait for the child; when it is suspended, suspend with it and resume it when we are resumed.

    Our whole group stops, wrapper scripts included, or the shell would not notice. Where no shell could ever
    resume us, the kernel ignores SIGTSTP, and the child goes on at once.
    """
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        terminal.give(os.getpgrp())
        os.kill(0, signal.SIGTSTP if os.WSTOPSIG(status) == signal.SIGTSTP else signal.SIGSTOP)
        terminal.look()
        terminal.give(pid)
        reaper.kill_group(pid, signal.SIGCONT)
