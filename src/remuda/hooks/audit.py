"""The audit: a JSON line for every decision of the guard, which says of the command no more than a digest.

The file is private and has a bounded size: when it is full it is put aside, and the oldest one is dropped.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import IO

import msgspec

from remuda.core.files import append_line
from remuda.core.paths import Folders
from remuda.guard.model import Decision
from remuda.guard.tools import ToolCall

FULL = 5 * 1024 * 1024
KEPT = 3
"""How many full files are kept beside the current one."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A decision, or an event that needed none. ``dialect`` is how it was asked for: in the words of a CLI's
    hooks, or over its ``connection``. ``digest`` and ``length`` are of the command, or of the input
    of a tool that has none; ``rule`` is what decided."""

    time: str
    event: str
    dialect: str
    runtime: str = ""
    session: str = ""
    tool: str = ""
    capability: str = ""
    decision: Decision | None = None
    rule: str = ""
    digest: str = ""
    length: int = 0


def place(folders: Folders) -> Path:
    """Where the audit is."""
    return folders.state / "guard.jsonl"


def digest(call: ToolCall) -> tuple[str, int]:
    """A fingerprint of what a call would do, and the length of that in bytes."""
    given = call.input
    command = given.get("command") if isinstance(given, dict) else given
    data = command.encode("utf-8", "replace") if isinstance(command, str) else msgspec.json.encode(given)
    return _fingerprint(data), len(data)


def _fingerprint(data: bytes) -> str:
    """Sixteen digits of SHA-256. Python's own is there at once; hashlib would load OpenSSL for it."""
    for name in ("_sha2", "_sha256", "hashlib"):
        with contextlib.suppress(ImportError):
            digest: str = import_module(name).sha256(data).hexdigest()
            return digest[:16]
    raise ImportError("SHA-256")


def store(path: Path, record: msgspec.Struct) -> None:
    """Add a record, after putting a full file aside."""
    line = msgspec.json.encode(record)
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size + len(line) >= FULL:
            _rotate(path, len(line))
    append_line(path, line)


def _rotate(path: Path, coming: int) -> None:
    """Put the file aside. Only one process does so at a time; others go on writing meanwhile, and whatever
    they write into the file that has just been moved stays there."""
    import fcntl

    handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.stat().st_size + coming >= FULL:
            for number in range(KEPT, 0, -1):
                with contextlib.suppress(FileNotFoundError):
                    _aside(path, number - 1).replace(_aside(path, number))
    except BlockingIOError:
        pass
    finally:
        os.close(handle)


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path


def read(path: Path) -> Iterator[Record]:
    """All records, oldest first; lines that do not decode are passed over."""
    for number in range(KEPT, -1, -1):
        with contextlib.suppress(FileNotFoundError), _aside(path, number).open("rb") as stream:
            yield from _records(stream)


def follow(path: Path, wait: Callable[[], None]) -> Iterator[Record | None]:
    """The records of the current file and all that are to come; None, and then a wait, whenever there are no
    more for now."""
    while True:
        try:
            with path.open("rb") as stream:
                while True:
                    moved = _moved(path, stream)
                    yield from _records(stream)
                    if moved:
                        break
                    yield None
                    wait()
        except FileNotFoundError:
            yield None
            wait()


def _moved(path: Path, stream: IO[bytes]) -> bool:
    """Whether a file has been put aside since it was opened."""
    try:
        return not os.path.samestat(path.stat(), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return True


def _records(stream: IO[bytes]) -> Iterator[Record]:
    """The records from here to the end; a line that is still being written is left for later."""
    while line := stream.readline():
        if not line.endswith(b"\n"):
            stream.seek(-len(line), os.SEEK_CUR)
            return
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
            yield msgspec.json.decode(line, type=Record)
