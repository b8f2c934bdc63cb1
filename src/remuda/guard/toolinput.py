"""The input of a tool call, read as the tool means it: texts, paths, addresses, commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from remuda.guard.globs import LONGEST
from remuda.guard.model import Tool, Word, literal
from remuda.guard.toolnames import plain, shape_of

Fields = Mapping[str, object]

_COMMANDS = ("command", "cmd", "script", "commandline", "commands", "argv")
_TOOLS = ("tool", "name", "recipientname", "toolname")
_ADDRESSES = ("url", "urls", "uri", "prompt")
_SINGLE = frozenset(("filepath", "absolutepath", "notebookpath", "targetfile"))
"""Fields that name one path: a list in them is a call that no tool would understand as it is meant."""
_PATHS = frozenset(
    (
        *(
            "filepath",
            "path",
            "paths",
            "absolutepath",
            "notebookpath",
            "targetfile",
            "filename",
            "file",
            "files",
        ),
        *(
            "relativepath",
            "dirpath",
            "directory",
            "folder",
            "uri",
            "include",
            "includedirectories",
            "imagepath",
        ),
        *("destination", "dest", "newpath", "oldpath"),
    )
)
ENDS = frozenset(("source", "target", "from", "to"))
"""Paths in a move; in other tools they may be anything."""
_DEEPEST = 4
_MOST = 500


def fields_of(value: object) -> Fields | None:
    """The input by plain names; also when it comes as a JSON text, as some CLIs send it."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return None
    if not isinstance(value, Mapping):
        return None
    return {plain(name): each for name, each in value.items() if isinstance(name, str)}


class Input(msgspec.Struct, frozen=True):
    """A call's input with what is needed to understand it."""

    tool: str
    fields: Fields
    cwd: str
    home: str | None
    served: bool

    @property
    def malformed(self) -> Tool:
        return Tool(name=self.tool, kind="malformed")

    def word(self, text: str) -> Word | None:
        """A path as the tool means it."""
        path = absolute(text, self.cwd, self.home)
        return None if path is None else literal(path)

    def texts(self, names: tuple[str, ...]) -> list[str]:
        """The texts in these fields. A list of texts is a command of which the last word counts."""
        found = (self.fields.get(name) for name in names)
        lasts = (value[-1] if isinstance(value, list) and value else value for value in found)
        return [value for value in lasts if isinstance(value, str)]

    def paths(self, also: frozenset[str] = frozenset()) -> list[Word] | None:
        """Every path that is named anywhere in the input; none at all if one of them is no path."""
        found: list[Word] = []
        for text in _named(self.fields, _PATHS | also, _DEEPEST):
            word = self.word(text) if isinstance(text, str) else None
            if word is None or len(found) > _MOST:
                return None
            found.append(word)
        return found


def _named(value: object, names: frozenset[str], depth: int) -> Iterator[object]:
    """The values of fields that name paths, also in lists of edits or files."""
    if depth and isinstance(value, Mapping):
        for name, each in value.items():
            spelled = plain(str(name))
            if spelled in names and not isinstance(each, Mapping):
                yield from _paths_in(spelled, each, names, depth)
            else:
                yield from _named(each, names, depth - 1)
    elif depth and isinstance(value, list):
        for item in value:
            yield from _named(item, names, depth - 1)


def _paths_in(name: str, value: object, names: frozenset[str], depth: int) -> Iterator[object]:
    """The paths in a field that is named for them; where only one can be meant, a list has none."""
    if isinstance(value, list):
        yield from (None,) if name in _SINGLE else ()
        for item in value:
            yield from _named(item, names, depth - 1) if isinstance(item, Mapping) else (item,)
    elif value is not None:
        yield value


def absolute(path: str, cwd: str, home: str | None) -> str | None:
    """A path as a native tool means it, relative to ``cwd``; none at all where tools differ in what it means:
    other people's homes, variables, drives."""
    path = path.removeprefix("file://")
    if not path or "\0" in path or len(path) > LONGEST:
        return None
    if path == "~" or path.startswith("~/"):
        return home + path[1:] if home else None
    if path.startswith(("~", "$", "\\\\")) or path[1:3] in (":\\", ":/"):
        return None
    return path if path.startswith("/") else f"{cwd}/{path}"


def commands_of(fields: Fields) -> list[str] | None:
    """Every command line in the input, for it is the tool that chooses; None when one is no command."""
    import shlex

    tail = fields.get("args")
    arguments = [tail] if isinstance(tail, str) else tail if isinstance(tail, list) else []
    found = []
    for command in (fields[name] for name in _COMMANDS if name in fields):
        words = [command] if isinstance(command, str) else command
        if (
            not isinstance(words, list)
            or not words
            or not all(isinstance(each, str) for each in words + arguments)
        ):
            return None
        first = command if isinstance(command, str) else shlex.join(words)
        found.append(" ".join((first, *map(shlex.quote, arguments))))
    return found or None


def exports(variables: object) -> str:
    """Variables that a tool sets, as the shell would."""
    import shlex

    if not isinstance(variables, Mapping):
        return ""
    return "".join(
        f"export {name}={shlex.quote(str(value))}\n"
        for name, value in variables.items()
        if isinstance(name, str) and name.isidentifier() and name.isascii()
    )


def addresses(fields: Fields) -> list[str]:
    """The addresses in the input, also those in a text for a fetching tool."""
    values = [(name, fields[name]) for name in _ADDRESSES if name in fields]
    texts = [
        (name, text) for name, value in values for text in (value if isinstance(value, list) else [value])
    ]
    return [
        word
        for name, text in texts
        if isinstance(text, str)
        for word in text.split()
        if "://" in word or name != "prompt"
    ]


def host_of(address: str) -> str:
    """The host of an address, as a browser reads it."""
    rest = address.partition("://")[2] or address
    for end in "/\\?#":
        rest = rest.partition(end)[0]
    rest = rest.rpartition("@")[2]
    if rest.startswith("["):
        return rest.partition("]")[0].lower() + "]"
    return rest.partition(":")[0].lower()


def tools_of(name: str, given: object) -> tuple[str, ...]:
    """The names of all tools in a call: several calls may come in one."""
    found = [name]
    ahead = [given]
    while ahead and shape_of(name)[0] == "batch" and len(found) <= _MOST:
        value = ahead.pop()
        if isinstance(value, list):
            ahead += value
        elif (fields := fields_of(value)) is not None:
            found += [str(fields[key]).removeprefix("functions.") for key in _TOOLS if key in fields]
            ahead += fields.values()
    return tuple(found)
