"""Builtins that change the shell or run something in it. Those that only print are in the table."""

from __future__ import annotations

from collections.abc import Callable
from posixpath import normpath

from remuda.guard.model import UNKNOWN, Environment, Evaluate, Unknown, Word
from remuda.guard.shell import printing
from remuda.guard.shell.calls import Caller, absolute_path
from remuda.guard.shell.declarations import DECLARATIONS
from remuda.guard.shell.state import Data, State, joined, known, opaque, union, unknown

Arguments = tuple[Word, ...]
Builtin = Callable[[Caller, Arguments, State], Data]
SILENCE = known("")


def _cd(_caller: Caller, arguments: Arguments, state: State) -> Data:
    """Changes the folder: by its name, as the shell does, and not by where links lead."""
    physical = any(word.text == "-P" for word in arguments)
    operands = [word for word in arguments if word.text not in {"-P", "-L", "-e", "-@", "--"}]
    goal = operands[0] if operands else state.variables.get("HOME", state.home)
    if goal.text == "-":
        goal = state.previous
    elif "CDPATH" in state.variables and not (goal.text or "").startswith(("/", ".")):
        goal = unknown(goal.taint)
    goal = folder(goal, state, physical)
    if state.observe is not None and not all(
        state.observe(path) or path in state.made for path in goal.values
    ):
        goal = union(goal, state.cwd)
    state.previous, state.cwd = state.cwd, goal
    return SILENCE


def folder(goal: Word, state: State, physical: bool = False) -> Word:
    """Where a change of folder leads."""
    path = absolute_path(goal, state.cwd)
    if physical or not path.values:
        return path
    return Word(tuple(dict.fromkeys(normpath(value) for value in path.values)), path.pattern, path.taint)


def _pushd(caller: Caller, arguments: Arguments, state: State) -> Data:
    operands = [word for word in arguments if word.text != "-n"]
    if operands and (operands[0].text or "")[:1] not in {"+", "-"}:
        state.folders = (state.cwd, *state.folders)
        return _cd(caller, (operands[0],), state)
    state.cwd, state.folders = UNKNOWN, ()
    return opaque(UNKNOWN.taint)


def _popd(_caller: Caller, arguments: Arguments, state: State) -> Data:
    state.previous = state.cwd
    state.cwd = state.folders[0] if state.folders and not arguments else UNKNOWN
    state.folders = state.folders[1:]
    return SILENCE


def _eval(caller: Caller, arguments: Arguments, state: State) -> Data:
    text = joined(arguments)
    with caller.deeper("eval"):
        return caller.source(text, state)


def _source(caller: Caller, arguments: Arguments, state: State) -> Data:
    if not arguments:
        return SILENCE
    outer = state.positional
    state.positional = arguments[1:] or outer
    with caller.deeper("source"):
        printed = caller.script(arguments[0], arguments[1:], state)
    state.positional = outer
    return printed


def _exec(caller: Caller, arguments: Arguments, state: State) -> Data:
    rest = list(arguments)
    while rest and (text := rest[0].text or "").startswith("-") and text != "-":
        rest.pop(0)
        if text == "--":
            break
        if text.endswith("a") and rest:
            rest.pop(0)
    return caller.invoke(tuple(rest), state, functions=False)


def _command(caller: Caller, arguments: Arguments, state: State) -> Data:
    """Runs a command that is no function, or with ``-v`` tells what names are. Options are no names: what has
    some is followed anyway."""
    rest = list(arguments)
    while rest and (text := rest[0].text or "").startswith("-"):
        rest.pop(0)
        if ("v" in text or "V" in text) and not any((word.text or "").startswith("-") for word in rest[1:]):
            return Data(None, rest[0]) if len(rest) == 1 else opaque(UNKNOWN.taint)
        if text == "--":
            break
    return caller.invoke(tuple(rest), state, functions=False)


def _trap(caller: Caller, arguments: Arguments, state: State) -> Data:
    rest = [word for word in arguments if word.text != "--"]
    if len(rest) < 2 or rest[0].text in {"-", "", "-p", "-l"}:
        return SILENCE
    with caller.deeper("trap"):
        caller.source(rest[0], state.fork())
    state.traps = (*state.traps, rest[0])
    return SILENCE


def _alias(caller: Caller, arguments: Arguments, state: State) -> Data:
    for word in arguments:
        for value in word.values:
            name, assigned, text = value.partition("=")
            if assigned:
                state.aliases[name] = (*state.aliases.get(name, ()), text)
        if not word.values:
            caller.note(Unknown(why="an alias is not known"), state)
    return SILENCE


def _hash(_caller: Caller, arguments: Arguments, state: State) -> Data:
    texts = [word.text for word in arguments]
    if "-p" in texts and len(arguments) > (at := texts.index("-p")) + 2:
        for word in arguments[at + 2 :]:
            state.remapped[word.text or ""] = arguments[at + 1]
    return SILENCE


def _enable(caller: Caller, arguments: Arguments, state: State) -> Data:
    if any((word.text or "-f").startswith("-") and "f" in (word.text or "-f") for word in arguments):
        caller.note(Evaluate(language="shared object", origin=frozenset({"file"})), state)
    return SILENCE


def _set(caller: Caller, arguments: Arguments, state: State) -> Data:
    if not arguments:
        caller.note(Environment(action="show", name="*"), state)
        return opaque(frozenset({"environment"}))
    for place, word in enumerate(arguments):
        if word.text == "--" or not (word.text or "").startswith(("-", "+")):
            state.positional = arguments[place + (word.text == "--") :]
            break
    return SILENCE


def _shift(_caller: Caller, arguments: Arguments, state: State) -> Data:
    text = arguments[0].text if arguments else "1"
    if text is None or not text.isdigit():
        state.positional = (UNKNOWN,)
    elif all(word.values for word in state.positional):
        state.positional = state.positional[int(text) :]
    return SILENCE


def _history(caller: Caller, _arguments: Arguments, state: State) -> Data:
    caller.note(Evaluate(language="sh", origin=UNKNOWN.taint), state)
    return opaque(UNKNOWN.taint)


def _test(caller: Caller, arguments: Arguments, state: State) -> Data:
    texts = [value for word in arguments for value in word.values]
    if {"-v", "-R"} & set(texts) and any("$(" in text or "`" in text for text in texts):
        caller.note(Unknown(why="a test has a command in a name"), state)
    return SILENCE


BUILTINS: dict[str, Builtin] = {
    "cd": _cd,
    "chdir": _cd,
    "pushd": _pushd,
    "popd": _popd,
    "eval": _eval,
    "source": _source,
    ".": _source,
    "exec": _exec,
    "command": _command,
    "builtin": _command,
    "trap": _trap,
    "alias": _alias,
    "hash": _hash,
    "enable": _enable,
    "set": _set,
    "shift": _shift,
    "fc": _history,
    "[": _test,
    "test": _test,
    "echo": printing.echo,
    "printf": printing.printf,
    **DECLARATIONS,
}
