"""Tool calls of all agent CLIs, put into one form: effects, and sources for a shell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from remuda.guard.model import (
    AnyEffect,
    Evaluate,
    How,
    Network,
    Read,
    System,
    Tool,
    Word,
    Write,
    literal,
)
from remuda.guard.patches import changes
from remuda.guard.toolinput import (
    ENDS,
    Fields,
    Input,
    absolute,
    addresses,
    commands_of,
    exports,
    fields_of,
    host_of,
)
from remuda.guard.toolnames import Shape, shape_of

_FOLDERS = ("workdir", "cwd", "dirpath", "workingdirectory", "workingdir", "directory")
_PATCHES = ("input", "patch", "patchtext", "diff", "command")
_CODES = ("code", "source", "script", "command", "input")
_SENDING = ("body", "data", "payload", "formdata")
_SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ash", "ksh"))
_VIEWING = frozenset(("view", "read", "cat", "list", "show"))
_WATCHING = frozenset(("list", "poll", "log", "read", "status", "wait", "get", "view"))
_DEEPEST = 4
_MOST = 500


class ToolCall(msgspec.Struct, frozen=True):
    """What an agent wants to do: a tool by its name, with its input, in a folder."""

    tool: str
    input: object = msgspec.field(default_factory=dict)
    cwd: str = "/"


class Script(msgspec.Struct, frozen=True):
    """A source for a shell, and the folder it would run in."""

    source: str
    cwd: str


Part = AnyEffect | Script
Kept = Literal["plain", "team", "interactive", "reads", "changes", "destroys", "unknown"]


def normalise(call: ToolCall, home: str | None, depth: int = 0) -> Iterator[Part]:
    """What a tool call amounts to. What cannot be understood is said to be so."""
    shape, served = shape_of(call.tool)
    fields = fields_of(call.input)
    if shape is None:
        yield from _kept("unknown", Input(call.tool, fields or {}, call.cwd, home, served))
        return
    if shape == "patch" and isinstance(call.input, str):
        fields = {"input": call.input}
    elif shape == "shell" and isinstance(call.input, str | list) and fields is None:
        fields = {"command": call.input}
    if fields is None:
        yield Tool(name=call.tool, kind="malformed")
        return
    if shape == "batch":
        yield from _batch(call, fields, home, depth)
        return
    given = Input(call.tool, fields, call.cwd, home, served)
    if shape in ("plain", "team", "interactive", "reads", "changes", "destroys"):
        yield from _kept(shape, given)
    else:
        yield from _READERS[shape](given)


def _batch(call: ToolCall, fields: Fields, home: str | None, depth: int) -> Iterator[Part]:
    """Several calls in one."""
    calls = next((each for each in fields.values() if isinstance(each, list)), None)
    if not calls or depth >= _DEEPEST or len(calls) > _MOST:
        yield Tool(name=call.tool, kind="malformed")
        return
    for each in calls:
        inner = fields_of(each) or {}
        name = next(
            (inner[key] for key in ("tool", "name", "recipientname", "toolname") if key in inner), None
        )
        given = next((inner[key] for key in ("parameters", "input", "arguments", "args") if key in inner), {})
        if isinstance(name, str):
            yield from normalise(ToolCall(name.removeprefix("functions."), given, call.cwd), home, depth + 1)
        else:
            yield Tool(name=call.tool, kind="malformed")


def _kept(kind: Kept, given: Input) -> Iterator[Part]:
    """Tools that reach neither files nor a shell, as far as one knows: a server's may read what it is given a
    path of, and run what it is given as a command."""
    if kind == "reads":
        yield from (Read(path=path) for path in given.paths() or ())
    elif given.served:
        yield from (Script(command, given.cwd) for command in commands_of(given.fields) or ())
    yield Tool(name=given.tool, kind=kind)


def _shell(given: Input) -> Iterator[Part]:
    """A command line, or an argv list, with what is set for it."""
    fields = given.fields
    command = fields.get("command")
    if isinstance(command, list) and command[:1] in (["apply_patch"], ["applypatch"]):
        yield from _patch(given)
        return
    commands = commands_of(fields)
    folders = given.texts(_FOLDERS)
    cwd = absolute(folders[0], given.cwd, given.home) if folders else given.cwd
    if commands is None or cwd is None or len(folders) > 1:
        yield given.malformed
        return
    if _escalates(fields):
        yield System(kind="privilege", detail="asks to run outside its sandbox")
    shell = fields.get("shell")
    if isinstance(shell, str) and shell.rpartition("/")[2] not in _SHELLS:
        yield Evaluate(language=shell, origin=frozenset({"unknown"}))
    for command in commands:
        yield Script(exports(fields.get("env") or fields.get("environment")) + command, cwd)


def _escalates(fields: Fields) -> bool:
    """Whether a call asks for more rights than the runtime gives to commands."""
    flags = ("dangerouslydisablesandbox", "withescalatedpermissions", "elevated", "sudo")
    return any(fields.get(flag) is True for flag in flags) or "escalated" in str(
        fields.get("sandboxpermissions", "")
    )


def _powershell(given: Input) -> Iterator[Part]:
    yield Evaluate(language=given.tool, origin=frozenset({"unknown"}))


def _python(given: Input) -> Iterator[Part]:
    import shlex

    codes = given.texts(_CODES)
    language = given.fields.get("language", "python")
    if len(codes) != 1:
        yield given.malformed
    elif language in ("python", "python3", "py"):
        yield Script(shlex.join(("python3", "-c", *codes)), given.cwd)
    else:
        yield Evaluate(language=str(language), origin=frozenset({"unknown"}))


def _process(given: Input) -> Iterator[Part]:
    """A program that runs already: looked at, or given text."""
    if given.fields.get("action") in _WATCHING:
        yield Tool(name=given.tool, kind="plain")
    else:
        yield Evaluate(language="terminal", origin=frozenset({"input"}))


def _stdin(given: Input) -> Iterator[Part]:
    """Text for a running program, which may be a shell; a mere look at its output gives none."""
    text = "".join(given.texts(("chars", "input", "data", "text", "keys")))
    if text.strip("\x03\x04\r\n "):
        yield Evaluate(language="terminal", origin=frozenset({"input"}))
    else:
        yield Tool(name=given.tool, kind="plain")


def _reading(given: Input) -> Iterator[Part]:
    paths = given.paths()
    if paths:
        yield from (Read(path=path) for path in paths)
    elif paths is None or not given.served:
        yield given.malformed
    else:
        yield Tool(name=given.tool, kind="reads")


def _listing(names: bool) -> Callable[[Input], Iterator[Part]]:
    """A tool that looks below folders, by default where the agent is."""

    def look(given: Input) -> Iterator[Part]:
        paths = given.paths()
        if paths is None:
            yield given.malformed
            return
        yield from (Read(path=path, names=names) for path in paths or [literal(given.cwd)])
        for pattern in given.texts(("pattern", "glob", "globpattern")) if names else ():
            if pattern.startswith(("/", "~/")) and (word := given.word(pattern)) is not None:
                yield Read(path=msgspec.structs.replace(word, pattern=True), names=True)

    return look


def _writing(how: How) -> Callable[[Input], Iterator[Part]]:
    """A tool that does one thing to every path it is given."""

    def write(given: Input) -> Iterator[Part]:
        paths = given.paths()
        if not paths:
            yield given.malformed
            return
        yield from (Write(path=path, how=how, follows=how not in ("delete", "rename")) for path in paths)

    return write


def _moving(given: Input) -> Iterator[Part]:
    """Both ends of a move; which is which does not matter for where it may happen."""
    paths = given.paths(ENDS) or ()
    if len(paths) < 2:
        yield given.malformed
    for path in paths:
        yield Write(path=path, how="rename", follows=False)
        yield Write(path=path, how="create")


def _editor(given: Input) -> Iterator[Part]:
    yield from _reading(given) if given.fields.get("command") in _VIEWING else _writing("edit")(given)


def _patch(given: Input) -> Iterator[Part]:
    """The files that a patch names, and those that are named beside it."""
    found = list(changes("\n".join(given.texts(_PATCHES))))
    paths = given.paths()
    if paths is None or not (found or paths):
        yield given.malformed
        return
    for path in paths:
        yield Write(path=path, how="edit")
    for name, how in found:
        word = given.word(name)
        yield Write(path=word, how=how, follows=how != "delete") if word else given.malformed


def _web(given: Input) -> Iterator[Part]:
    found = addresses(given.fields)
    sends = any(given.fields.get(name) for name in _SENDING)
    if not found:
        yield Network(direction="get", host=Word(()))
    for address in found:
        if address.lower().startswith("file:"):
            word = given.word(address[5:].removeprefix("//"))
            yield Read(path=word) if word else given.malformed
        else:
            yield Network(direction="send" if sends else "get", host=literal(host_of(address)))


def _search(given: Input) -> Iterator[Part]:
    yield Network(direction="get", host=literal(given.tool))


def _schedule(given: Input) -> Iterator[Part]:
    yield System(kind="schedule", detail=given.tool)


_READERS: dict[Shape, Callable[[Input], Iterator[Part]]] = {
    "shell": _shell,
    "powershell": _powershell,
    "python": _python,
    "code": _powershell,
    "stdin": _stdin,
    "process": _process,
    "read": _reading,
    "list": _listing(names=True),
    "grep": _listing(names=False),
    "write": _writing("truncate"),
    "edit": _writing("edit"),
    "editor": _editor,
    "patch": _patch,
    "delete": _writing("delete"),
    "move": _moving,
    "folder": _writing("create"),
    "web": _web,
    "search": _search,
    "schedule": _schedule,
}
