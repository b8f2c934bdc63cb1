"""Hands the terminal to an interactive child and takes it back, as a shell does."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from types import FrameType

from remuda.core import reaper
from remuda.core.children import Command, Reaper, exit_status, marked_environment, start_reason
from remuda.core.errors import StartError
from remuda.core.ids import ulid

_RELAYED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def hand_over(command: Command) -> int:
    """Run an interactive child in the foreground and return its exit code, 128+n for signal n."""
    mark = ulid()
    guardian = Reaper(mark)
    terminal = _terminal()
    try:
        child = _start(command, mark, terminal)
        guardian.watch(child.pid)
        with _relaying(child.pid):
            child.returncode = _wait(child.pid, terminal)
        return exit_status(child.returncode)
    finally:
        _foreground(terminal, os.getpgrp())
        reaper.sweep(mark)
        guardian.release()


def _terminal() -> int | None:
    """The terminal's descriptor, if it is ours to give."""
    with contextlib.suppress(OSError):
        if os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp():
            return 0
    return None


def _foreground(terminal: int | None, group: int) -> None:
    """Make a process group the terminal's foreground group."""
    if terminal is None:
        return
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(terminal, group)
    finally:
        signal.signal(signal.SIGTTOU, before)


def _start(command: Command, mark: str, terminal: int | None) -> subprocess.Popen[bytes]:
    """Start the child as leader of its own group, in the foreground from its first instruction."""

    def in_child() -> None:
        os.setpgid(0, 0)
        _foreground(terminal, os.getpid())

    try:
        return subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=marked_environment(command.env, mark),
            preexec_fn=in_child,  # noqa: PLW1509 - no other thread runs here, and the group must be set first
        )
    except (OSError, ValueError) as error:
        raise StartError(f"cannot start {command.argv[0]}: {start_reason(error)}") from None


@contextlib.contextmanager
def _relaying(group: int) -> Iterator[None]:
    """Pass the signals that ask us to end on to the child's group."""

    def relay(number: int, _frame: FrameType | None) -> None:
        reaper.kill_group(group, number)

    before = {number: signal.signal(number, relay) for number in _RELAYED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(pid: int, terminal: int | None) -> int:
    """Wait for the child; when it is suspended, suspend with it and resume it when we are resumed."""
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        _foreground(terminal, os.getpgrp())
        os.kill(os.getpid(), signal.SIGSTOP)
        _foreground(terminal, pid)
        reaper.kill_group(pid, signal.SIGCONT)
