"""The messages of the Agent Client Protocol, as far as a client meets them.

What comes in is decoded with patience: agents leave out fields, send null for them, or add their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

import msgspec

PROTOCOL_VERSION = 1
AUTH_REQUIRED = -32000
METHOD_NOT_FOUND = -32601
HTTP_FAILURES = range(400, 600)
"""Agents may give the model server's status for a code."""


NOTHING = msgspec.Raw(b"")
NULL = msgspec.Raw(b"null")

Wanted = TypeVar("Wanted")
Id = int | str | None

_START = re.compile(rb'(?=\{\s*"jsonrpc")')


class FrameError(msgspec.Struct, frozen=True):
    """Why a request failed; ``data`` is whatever the agent adds."""

    code: int = 0
    message: str = ""
    data: msgspec.Raw = NULL


class Frame(msgspec.Struct, frozen=True):
    """One JSON-RPC message: a request has a method and an id, a notification no id, a response no method."""

    id: Id = None
    method: str | None = None
    params: msgspec.Raw = NULL
    result: msgspec.Raw = NOTHING
    error: FrameError | None = None


class _Wire(msgspec.Struct, frozen=True, rename="camel"):
    """Base of what travels in parameters and results."""


class SessionAbilities(_Wire, frozen=True):
    """What an agent can do with sessions beyond making new ones."""

    resume: msgspec.Raw = NULL


class Abilities(_Wire, frozen=True):
    """What an agent can do."""

    load_session: bool | None = None
    session_capabilities: SessionAbilities | None = None


class Greeting(_Wire, frozen=True):
    """The answer to ``initialize``."""

    protocol_version: int = 0
    agent_capabilities: Abilities | None = None


class Models(_Wire, frozen=True):
    """The model of a session."""

    current_model_id: str | None = None


class Setting(_Wire, frozen=True):
    """Something that can be chosen for a session; one of them may be the model."""

    id: str = ""
    current_value: object = None


class Opened(_Wire, frozen=True):
    """The answer to ``session/new``, ``session/load`` and ``session/resume``."""

    session_id: str | None = None
    models: Models | None = None
    config_options: list[Setting] | None = None

    @property
    def model(self) -> str | None:
        """The session's model, if it is told."""
        if self.models and self.models.current_model_id:
            return self.models.current_model_id
        chosen = (each.current_value for each in self.config_options or [] if each.id == "model")
        return next((value for value in chosen if isinstance(value, str) and value), None)


class Counts(_Wire, frozen=True):
    """Tokens, as the protocol counts them."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_read_tokens: int | None = None
    cached_write_tokens: int | None = None
    thought_tokens: int | None = None


class Outcome(_Wire, frozen=True):
    """The answer to ``session/prompt``; ``meta`` is where agents put what the protocol has no place for."""

    stop_reason: str = ""
    usage: Counts | None = None
    meta: msgspec.Raw = msgspec.field(name="_meta", default=NULL)


class Block(_Wire, frozen=True):
    """A piece of content: a text, a block around another one, or a change to a file."""

    type: str | None = None
    text: str | None = None
    path: str | None = None
    content: Block | None = None


class Location(_Wire, frozen=True):
    """A file that a tool call is about."""

    path: str | None = None


class Change(_Wire, frozen=True):
    """The ``update`` of a ``session/update``, or the tool call of a permission request. Which fields it has
    depends on its kind."""

    session_update: str | None = None
    content: msgspec.Raw = NULL
    tool_call_id: str | None = None
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    locations: list[Location] | None = None
    raw_input: msgspec.Raw = NULL
    raw_output: msgspec.Raw = NULL
    used: int | None = None
    size: int | None = None


class Problem(_Wire, frozen=True):
    """What agents put into the output of a tool call that failed."""

    message: str = ""


class Notice(_Wire, frozen=True):
    """The parameters of a ``session/update``."""

    session_id: str | None = None
    update: Change = Change()


class Option(_Wire, frozen=True):
    """An answer that a permission request offers."""

    option_id: str = ""
    kind: str | None = None


class PermissionRequest(_Wire, frozen=True):
    """The parameters of a ``session/request_permission``."""

    tool_call: Change = Change()
    options: list[Option] = []


def decode(raw: bytes | msgspec.Raw, wanted: type[Wanted]) -> Wanted | None:
    """What a message carries, or None if it is something else."""
    try:
        return msgspec.json.decode(raw, type=wanted, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def frames(line: bytes) -> tuple[list[Frame], int]:
    """The messages in a line, and how many pieces of it are none. Usually a line is one message; noise in
    front of it, or a second message behind it, must not cost it."""
    if (frame := decode(line, Frame)) is not None:
        return [frame], 0
    if (batch := decode(line, list[Frame])) is not None:
        return batch, 0
    pieces = [piece for piece in _START.split(line) if piece.strip()]
    found = [decode(piece, Frame) for piece in pieces] if len(pieces) > 1 else [None] * len(pieces)
    return [frame for frame in found if frame is not None], found.count(None)


def texts(content: msgspec.Raw) -> str:
    """The text of a tool call's content."""
    blocks = decode(content, list[Block]) or []
    return "\n".join(block.content.text for block in blocks if block.content and block.content.text)


def output(change: Change) -> str:
    """What a tool call put out, or why it failed."""
    return texts(change.content) or (decode(change.raw_output, Problem) or Problem()).message


def paths(change: Change) -> list[str]:
    """The files that a tool call names: its locations, and the files of the changes it shows."""
    blocks = decode(change.content, list[Block]) or []
    places = [location.path for location in change.locations or []]
    return [path for path in (*places, *(block.path for block in blocks)) if path]


def shown_input(change: Change) -> msgspec.Raw:
    """What a tool was called with; an agent that does not tell shows it in the title and the content."""
    given = decode(change.raw_input, object)
    shown = {"title": change.title or "", "text": texts(change.content)}
    return msgspec.Raw(msgspec.json.encode(shown if given is None else given))


def request(ident: int, method: str, params: Mapping[str, object]) -> bytes:
    """A request, as a line."""
    return _line({"id": ident, "method": method, "params": params})


def notification(method: str, params: Mapping[str, object]) -> bytes:
    """What is said without waiting for an answer, as a line."""
    return _line({"method": method, "params": params})


def reply(ident: Id, result: Mapping[str, object]) -> bytes:
    """The answer to a request, as a line."""
    return _line({"id": ident, "result": result})


def rejection(ident: Id, code: int, text: str) -> bytes:
    """The answer to a request that is not granted, as a line."""
    return _line({"id": ident, "error": {"code": code, "message": text}})


def _line(body: Mapping[str, object]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", **body}) + b"\n"
