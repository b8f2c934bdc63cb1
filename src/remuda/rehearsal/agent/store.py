"""Transcripts: one private file a session, one message a line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from remuda.core.clock import now, rfc3339
from remuda.core.errors import RemudaError
from remuda.core.files import append_line
from remuda.rehearsal.agent.messages import Block, Message, Usage

_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class TranscriptError(RemudaError):
    """A session that cannot be begun or continued."""


class Entry(Struct, frozen=True, omit_defaults=True):
    """One message as kept; an answer of the model also says which model, why it ended and what it took."""

    time: str
    role: Literal["user", "assistant"]
    content: tuple[Block, ...]
    model: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None


class Transcript:
    """The file of one session."""

    def __init__(self, home: Path, session_id: str) -> None:
        if not _SESSION_ID.fullmatch(session_id):
            raise TranscriptError("a session id is 1 to 128 letters, digits, dots, dashes or underscores")
        self.session_id = session_id
        self.path = home / "sessions" / f"{session_id}.jsonl"

    def begin(self) -> None:
        """Make sure that the id is a new one."""
        if self.path.exists():
            raise TranscriptError(
                f"session {self.session_id} exists already", f"continue it with --resume {self.session_id}"
            )

    def load(self) -> list[Message]:
        """The conversation so far."""
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            raise TranscriptError(f"no session {self.session_id} in {self.path.parent}") from None
        except OSError as error:
            raise TranscriptError(f"{self.path}: {error.strerror or 'cannot be read'}") from None
        return [self._message(number, line) for number, line in enumerate(lines, 1)]

    def _message(self, number: int, line: bytes) -> Message:
        try:
            entry = msgspec.json.decode(line, type=Entry)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise TranscriptError(
                f"{self.path}: line {number} is damaged", "remove it, or begin a new session"
            ) from None
        return Message(entry.role, entry.content)

    def add_user(self, message: Message) -> None:
        """Keep what was told to the model."""
        self._append(Entry(rfc3339(now()), message.role, message.content))

    def add_answer(self, message: Message, model: str, stop_reason: str, usage: Usage) -> None:
        """Keep what the model answered."""
        self._append(Entry(rfc3339(now()), message.role, message.content, model, stop_reason, usage))

    def _append(self, entry: Entry) -> None:
        try:
            append_line(self.path, msgspec.json.encode(entry))
        except OSError as error:
            raise TranscriptError(f"{self.path}: {error.strerror or 'cannot be written'}") from None
