"""What the agent prints: typed lines, and the three ways to show them.

With ``--output-format stream-json`` each line is one JSON object: `Session` comes first and `Result` last.
A status of 0 means that there was no HTTP answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec
from msgspec import Struct

from remuda.rehearsal.agent.messages import Usage

ToolStatus = Literal["completed", "failed", "refused"]


class Session(Struct, frozen=True, tag_field="type", tag="session"):
    """The session that speaks."""

    session_id: str
    model: str
    cwd: str
    tools: tuple[str, ...]


class Thought(Struct, frozen=True, tag_field="type", tag="thought"):
    """A piece of what the model thinks."""

    text: str


class Said(Struct, frozen=True, tag_field="type", tag="text"):
    """A piece of what the model says."""

    text: str


class ToolCall(Struct, frozen=True, tag_field="type", tag="tool_call"):
    """A tool call the model wants; whether it runs shows in its result."""

    id: str
    name: str
    input: dict[str, object]


class ToolOutcome(Struct, frozen=True, tag_field="type", tag="tool_result"):
    """How a tool call ended; `output` is what the model gets to read."""

    id: str
    status: ToolStatus
    output: str


class Retry(Struct, frozen=True, tag_field="type", tag="retry"):
    """A model request that failed and is tried again."""

    status: int
    message: str
    attempt: int


class Problem(Struct, frozen=True):
    """Why a turn failed."""

    status: int
    message: str


class Result(Struct, frozen=True, tag_field="type", tag="result"):
    """The end of a turn; `usage` counts all its model calls."""

    session_id: str
    model: str
    text: str
    usage: Usage
    stop_reason: str
    error: Problem | None = None


Line = Session | Thought | Said | ToolCall | ToolOutcome | Retry | Result
Emit = Callable[[Line], None]


def stream_json(out: BinaryIO) -> Emit:
    """Every line as one JSON object."""

    def emit(line: Line) -> None:
        out.write(msgspec.json.encode(line) + b"\n")
        out.flush()

    return emit


def plain(out: BinaryIO, err: BinaryIO) -> Emit:
    """Only the answer; what went wrong goes to stderr."""

    def emit(line: Line) -> None:
        if isinstance(line, Result):
            _put(out, f"{line.text.rstrip()}\n" if line.text else "")
            _put(err, f"rehearsal: {line.error.message}\n" if line.error else "")

    return emit


def talk(put: Callable[[str], None]) -> Emit:
    """Everything as it happens, for a person at a terminal."""

    def emit(line: Line) -> None:
        match line:
            case Said(text):
                put(text)
            case ToolCall(_, name, arguments):
                put(f"\n[{name}] {msgspec.json.encode(arguments).decode()}\n")
            case ToolOutcome(_, status, output):
                put(f"[{status}] {output.rstrip()}\n")
            case Retry(_, message, attempt):
                put(f"[retry {attempt}] {message}\n")
            case Result(error=Problem(message=message)):
                put(f"\nrehearsal: {message}\n")
            case Result():
                put("\n")

    return emit


def shown(path: Path) -> str:
    """A path as text that any JSON reader takes."""
    return os.fsencode(path).decode("utf-8", "replace")


def _put(out: BinaryIO, text: str) -> None:
    out.write(text.encode("utf-8", "replace"))
    out.flush()
