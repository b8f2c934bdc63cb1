"""What agent CLIs send to a hook, in all their spellings, turned into a tool call for the guard. Total: what
cannot be understood is a refusal that says why, never an exception."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from remuda.guard.tools import ToolCall
from remuda.hooks.events import Event, event_of
from remuda.hooks.wire import LARGEST

_LONGEST_NAME = 256
_TOOL = ("tool_name", "toolName")
_INPUT = ("tool_input", "toolInput", "toolArgs")
_SESSION = ("session_id", "sessionId")
_EVENT = ("hook_event_name", "hookEventName")


class Refusal(msgspec.Struct, frozen=True):
    """Why there is no tool call in a payload. It tells of the form only, never of the content."""

    why: str


class Payload(msgspec.Struct, frozen=True):
    """A payload as far as it can be understood: the event that it names, its session, and the tool call."""

    call: ToolCall | Refusal
    event: Event | None = None
    session: str = ""


class _UnclearError(Exception):
    """The payload cannot be understood, for this reason."""


def read(data: bytes, cwd: str) -> Payload:
    """Read a payload; the tool runs in ``cwd`` where it names no folder."""
    try:
        fields = _fields(data)
    except _UnclearError as unclear:
        return Payload(Refusal(str(unclear)))
    try:
        call: ToolCall | Refusal = _call(fields, cwd)
    except _UnclearError as unclear:
        call = Refusal(str(unclear))
    named, session = _text(fields, _EVENT), _text(fields, _SESSION)
    return Payload(call, event_of(named) if named else None, session or "")


def _fields(data: bytes) -> Mapping[str, object]:
    if not data.strip():
        raise _UnclearError("there is none, neither on standard input nor as an argument")
    if len(data) > LARGEST:
        raise _UnclearError(f"it is longer than {LARGEST} bytes")
    try:
        return msgspec.json.decode(data, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise _UnclearError("it is not a JSON object") from None


def _call(fields: Mapping[str, object], cwd: str) -> ToolCall:
    tool = _one(fields, _TOOL)
    if not isinstance(tool, str) or not tool.strip() or len(tool) > _LONGEST_NAME:
        raise _UnclearError("it names no tool")
    folder = cwd if fields.get("cwd") is None else fields["cwd"]
    if not isinstance(folder, str) or not folder.startswith("/") or "\0" in folder:
        raise _UnclearError("its working folder is not an absolute path")
    given = _one(fields, _INPUT)
    return ToolCall(tool, {} if given is None else _parsed(given), folder)


def _one(fields: Mapping[str, object], names: tuple[str, ...]) -> object:
    """The value that goes by one of these names; several are fine as long as they say the same."""
    found = [fields[name] for name in names if fields.get(name) is not None]
    try:
        if any(each != found[0] for each in found[1:]):
            raise _UnclearError(f"{names[0]} is there twice, with different values")
    except RecursionError:
        raise _UnclearError("it is too deep") from None
    return found[0] if found else None


def _parsed(given: object) -> object:
    """A tool's input; where an object comes as a JSON text, the object."""
    if not isinstance(given, str) or not given.lstrip().startswith("{"):
        return given
    try:
        return msgspec.json.decode(given, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise _UnclearError("the tool's input is a text that is not JSON") from None


def _text(fields: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := fields.get(name), str)), None)
