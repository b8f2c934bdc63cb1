"""Tells processes apart for good: a pid alone may belong to somebody else tomorrow, or after a reboot."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_ENDED = ("Z", "X")
_START, _MEMORY = 19, 20


def identity(pid: int) -> str:
    """A name that no other process ever has: the boot, the pid and the moment it started, where the system
    tells these."""
    boot, start = "", ""
    with contextlib.suppress(OSError):
        boot = _BOOT.read_text().strip()
        start = _fields(pid)[_START]
    return f"{boot}/{pid}/{start}"


def place() -> str:
    """Where processes are told apart by their names: this machine, boot and namespace of pids. A name from
    another place says nothing here about whether its process lives."""
    boot, space = "", ""
    with contextlib.suppress(OSError):
        boot = _BOOT.read_text().strip()
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - it leads to no file
    return f"{os.uname().nodename}/{boot}/{space}"


def lives(name: str) -> bool:
    """Whether the process of this name still runs; a zombie does not."""
    pid = name.split("/")[1] if name.count("/") == 2 else ""
    if not pid.isdigit() or int(pid) <= 0:
        return False
    if not _BOOT.exists():
        return _answers(int(pid))
    try:
        return _fields(int(pid))[0] not in _ENDED and identity(int(pid)) == name
    except (OSError, IndexError):
        return False


def remembers(name: str) -> bool:
    """Whether the process of this name still has its memory, and in it its environment. One that ends loses
    that first: for a while it still runs, and seems to have no variable at all."""
    try:
        return lives(name) and (not _BOOT.exists() or _fields(pid_of(name))[_MEMORY] != "0")
    except (OSError, IndexError):
        return False


def ancestors(pid: int) -> Iterator[int]:
    """A process and those that it descends from, the nearest first, as far as the system tells."""
    while pid > 1:
        yield pid
        try:
            pid = int(_fields(pid)[1])
        except (OSError, IndexError, ValueError):
            return


def kill(name: str) -> None:
    """End the process of this name at once; nobody who has its number by now."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid_of(name))
        try:
            if lives(name):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def pid_of(name: str) -> int:
    """The pid in a name."""
    return int(name.split("/")[1])


def _fields(pid: int) -> list[str]:
    """What the system tells of a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True
