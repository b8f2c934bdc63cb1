"""Builtins that set variables: ``export``, ``declare``, ``read``, ``mapfile`` and the like."""

from __future__ import annotations

from collections.abc import Callable

from remuda.guard.model import UNKNOWN, Environment, Unknown, Word, literal
from remuda.guard.shell.calls import Caller
from remuda.guard.shell.parameters import separators
from remuda.guard.shell.state import EMPTY, NAME, Data, State, known, opaque, unknown

Arguments = tuple[Word, ...]
SILENCE = known("")
READING = {"-a", "-d", "-i", "-n", "-N", "-p", "-t", "-u"}
MAPPING = {"-d", "-n", "-O", "-s", "-u", "-C", "-c"}


def _declare(caller: Caller, arguments: Arguments, state: State, exports: bool = False) -> Data:
    """``declare`` and its kin: flags, names, and assignments that have been expanded."""
    flags = "".join(word.text or "" for word in arguments if _flag(word))
    rest = [word for word in arguments if not _flag(word)]
    if not rest and not flags.strip("-px"):
        caller.note(Environment(action="show", name="*"), state)
        return opaque(frozenset({"environment"}))
    for word in rest:
        name, value = taken_apart(word)
        if not name or "$(" in name or "`" in name:
            caller.note(Unknown(why="a variable has a name that is not known"), state)
        elif "f" in flags:
            state.exported[name] = True
        elif value is not None:
            if "i" in flags and any("$(" in text or "`" in text for text in value.values):
                caller.note(Unknown(why="an expression has a command in a value"), state)
            caller.set(name, value, state, declared=True)
            state.exported[name] = exports or "x" in flags
        elif exports:
            state.exported[name] = True
        elif "p" in flags:
            caller.note(Environment(action="show", name=name), state)
    return SILENCE


def _export(caller: Caller, arguments: Arguments, state: State) -> Data:
    """``export``: variables that other programs see."""
    return _declare(caller, arguments, state, exports=True)


def _flag(word: Word) -> bool:
    return (word.text or "").startswith(("-", "+"))


def taken_apart(word: Word) -> tuple[str, Word | None]:
    """The name and the value of ``name=value``."""
    if not word.values:
        name, assigned, begun = word.prefix.partition("=")
        return (name, unknown(word.taint, begun)) if assigned else ("", None)
    name, assigned, _ = word.values[0].partition("=")
    values = tuple(value[len(name) + 1 :] for value in word.values if value.startswith(f"{name}="))
    if not assigned:
        return (name, None) if len(word.values) == 1 else ("", None)
    return (name, Word(values, word.pattern, word.taint)) if len(values) == len(word.values) else ("", None)


def _alternative(caller: Caller, arguments: Arguments, state: State) -> Data:
    """``declare`` and ``typeset``, which can also give a variable another name."""
    if any(_flag(word) and "n" in (word.text or "") for word in arguments):
        caller.note(Unknown(why="a variable gets another name"), state)
    return _declare(caller, arguments, state)


def _local(caller: Caller, arguments: Arguments, state: State) -> Data:
    for word in arguments:
        if word.text and word.text.isidentifier() and word.text not in state.arrays:
            caller.set(word.text, EMPTY, state, declared=True)
    return _alternative(caller, arguments, state) if arguments else SILENCE


def _unset(caller: Caller, arguments: Arguments, state: State) -> Data:
    flags = {word.text for word in arguments if (word.text or "").startswith("-")}
    for word in arguments:
        name = word.text
        if name is None or "$(" in name or "`" in name:
            caller.note(Unknown(why="a variable has a name that is not known"), state)
        elif name not in flags:
            if "-f" in flags or (name in state.functions and name not in state.variables):
                state.functions.pop(name, None)
            else:
                caller.set(name, EMPTY, state)
    return SILENCE


def _unalias(_caller: Caller, _arguments: Arguments, _state: State) -> Data:
    return SILENCE


def _names(arguments: Arguments, valued: set[str]) -> tuple[list[str], str | None]:
    """The variables that are named, and the array among them."""
    names: list[str] = []
    array: str | None = None
    rest = list(reversed(arguments))
    while rest:
        text = rest.pop().text or ""
        if text.startswith("-") and len(text) > 1:
            if f"-{text[-1]}" in valued and rest:
                value = rest.pop().text
                array = value if text[-1] == "a" else array
        else:
            names.append(text)
    return names, array


def _read(caller: Caller, arguments: Arguments, state: State) -> Data:
    """Sets variables to the words of a line: of any line, when it is in a loop."""
    names, array = _names(arguments, READING)
    if any(not name.isidentifier() for name in names):
        caller.note(Unknown(why="read sets a variable that is not known"), state)
        return SILENCE
    line = state.input.line if not any(word.text == "-u" for word in arguments) else UNKNOWN
    if array:
        marks = separators(state)
        plain = line.text is not None and marks is not None and not marks.strip()
        words = tuple(map(literal, (line.text or "").split())) if plain else (unknown(line.taint),)
        state.arrays[array] = words
        return SILENCE
    names = names or ["REPLY"]
    if len(names) == 1:
        caller.set(names[0], _stripped(line, separators(state)), state)
        return SILENCE
    for place, name in enumerate(names):
        caller.set(name, _column(line, place, place == len(names) - 1, separators(state)), state)
    return SILENCE


def _stripped(line: Word, marks: str | None) -> Word:
    if not line.values or marks is None:
        return unknown(line.taint)
    return Word(tuple(dict.fromkeys(value.strip(marks) for value in line.values)), line.pattern, line.taint)


def _column(line: Word, place: int, last: bool, marks: str | None) -> Word:
    """One of the words of a line; the last one has all that is left."""
    if not line.values or line.pattern or marks is None:
        return unknown(line.taint)
    if marks.strip() and len(marks) > 1:
        return unknown(line.taint)
    divider = marks if marks.strip() else None
    columns = [value.split(divider, place if last else -1) for value in line.values]
    texts = dict.fromkeys(parts[place].strip() if place < len(parts) else "" for parts in columns)
    return Word(tuple(texts), taint=line.taint)


def _mapfile(caller: Caller, arguments: Arguments, state: State) -> Data:
    names, _ = _names(arguments, MAPPING)
    if any(word.text == "-C" for word in arguments):
        caller.note(Unknown(why="mapfile runs something for each line"), state)
    text = state.input.text
    lines = text.splitlines() if text is not None else []
    name = names[-1] if names else "MAPFILE"
    state.arrays[name] = tuple(map(literal, lines)) if text is not None else (state.input.line,)
    state.variables.pop(name, None)
    return SILENCE


def _getopts(_caller: Caller, arguments: Arguments, state: State) -> Data:
    if len(arguments) > 1 and arguments[1].text:
        state.variables[arguments[1].text] = NAME
    state.variables["OPTARG"] = unknown()
    return SILENCE


def _let(caller: Caller, arguments: Arguments, state: State) -> Data:
    for word in arguments:
        for text in word.values:
            name = text.partition("=")[0].strip("+-*/% ")
            values = (text, *(state.variables[name].values if name in state.variables else ()))
            if any("$(" in value or "`" in value for value in values):
                caller.note(Unknown(why="an expression has a command in a value"), state)
            if name.isidentifier():
                state.variables[name] = NAME
    return SILENCE


DECLARATIONS: dict[str, Callable[[Caller, Arguments, State], Data]] = {
    "declare": _alternative,
    "typeset": _alternative,
    "export": _export,
    "readonly": _declare,
    "local": _local,
    "unset": _unset,
    "unalias": _unalias,
    "read": _read,
    "mapfile": _mapfile,
    "readarray": _mapfile,
    "getopts": _getopts,
    "let": _let,
}
