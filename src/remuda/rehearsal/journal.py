"""What the scripted model was asked: kept in memory, and in a private file if wanted."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from remuda.rehearsal.exchange import Ask


class Heard(Struct, frozen=True):
    """One request. `authorised` says whether credentials were sent, never which; status 0 means no answer."""

    seq: int
    time: str
    api: str
    path: str
    model: str
    prompt: str
    user_texts: tuple[str, ...]
    system: str
    tools: tuple[str, ...]
    turn: int
    status: int
    authorised: bool
    body: str | None = None


class Visit(Struct, frozen=True):
    """A request as the server saw it, before the journal numbers and dates it."""

    path: str
    status: int
    authorised: bool
    api: str = ""
    ask: Ask | None = None
    body: bytes = b""


class Journal:
    """A thread-safe list of requests; each is also appended to `record` (mode 0600) as one JSON line."""

    def __init__(self, record: Path | None = None, *, bodies: bool = False) -> None:
        self._heard: list[Heard] = []
        self._bodies = bodies
        self._lock = threading.Lock()
        self._file = None if record is None else _open_private(record)

    def note(self, visit: Visit) -> None:
        """Record one request."""
        with self._lock:
            heard = _heard(visit, len(self._heard) + 1, keep_body=self._bodies)
            self._heard.append(heard)
            if self._file is not None:
                os.write(self._file, msgspec.json.encode(heard) + b"\n")

    def heard(self) -> tuple[Heard, ...]:
        """Everything recorded so far."""
        with self._lock:
            return tuple(self._heard)

    def close(self) -> None:
        """Let go of the file; what was heard stays readable."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None


def _open_private(path: Path) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


def _heard(visit: Visit, seq: int, *, keep_body: bool) -> Heard:
    ask = visit.ask
    return Heard(
        seq=seq,
        time=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        api=visit.api,
        path=visit.path,
        model=ask.model if ask else "",
        prompt=ask.prompt if ask else "",
        user_texts=ask.user_texts if ask else (),
        system=ask.system if ask else "",
        tools=tuple(tool.name for tool in ask.tools) if ask else (),
        turn=ask.turn if ask else 0,
        status=visit.status,
        authorised=visit.authorised,
        body=visit.body.decode("utf-8", "replace") if keep_body else None,
    )
