"""Looks at the machine's processes, independently of the code under test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec


class Process(msgspec.Struct, frozen=True):
    """A process that is running, zombies left out."""

    pid: int
    group: int
    session: int
    argv: bytes
    environ: bytes


def everyone() -> Iterator[Process]:
    """Every running process that we may look at."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            state, _, group, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            argv, environ = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
        except (OSError, ValueError):
            continue
        if state not in "ZX":
            yield Process(int(folder.name), int(group), int(session), argv, environ)


def carrying(token: str) -> list[Process]:
    """The processes with a text in their environment or on their command line."""
    wanted = token.encode()
    return [process for process in everyone() if wanted in process.environ or wanted in process.argv]


def wait_until(condition: Callable[[], object], seconds: float) -> bool:
    """Whether something becomes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return bool(condition())
