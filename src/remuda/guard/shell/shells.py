"""Shells: a text, a file, or standard input that they run."""

from __future__ import annotations

from remuda.guard.model import UNKNOWN, Execute, Unknown, Word, literal
from remuda.guard.shell.calls import Caller, absolute_path
from remuda.guard.shell.state import Data, State, known, opaque

Arguments = tuple[Word, ...]
SILENCE = known("")
_FILES = {"--rcfile", "--init-file"}


def fed(caller: Caller, name: str, state: State) -> Data:
    """A shell that reads commands from its input."""
    with caller.deeper(name):
        return caller.feed(state.input, state.fork())


def shell(caller: Caller, name: str, arguments: Arguments, state: State) -> Data:
    """``bash``, ``sh`` …: a text, a file, or standard input."""
    rest = list(arguments)
    letters = ""
    while rest and (text := beginning(rest[0]))[:1] in {"-", "+"} and text not in {"-", "--"}:
        word = rest.pop(0)
        if word.text is None:
            caller.note(Unknown(why=f"an option of {name} is not known"), state)
        elif text in _FILES and rest:
            caller.script(rest.pop(0), (), state.fork())
        elif text in {"--version", "--help"}:
            return opaque(frozenset({"unknown"}))
        elif not text.startswith("--"):
            letters += text[1:]
            if text[-1] in "oO" and rest:
                rest.pop(0)
    if rest and rest[0].text in {"-", "--"}:
        rest.pop(0)
    arguments = tuple(rest)
    with caller.deeper(name):
        if "c" in letters:
            return _given(caller, arguments, state)
        if "s" in letters or not rest:
            return caller.feed(state.input, state.child(literal(name), arguments))
        return caller.script(arguments[0], arguments[1:], state.child(arguments[0], arguments[1:]))


def beginning(word: Word) -> str:
    """How a word begins, if that may make it an option."""
    return next((value for value in word.values if value[:1] in {"-", "+"}), word.text or word.prefix)


def _given(caller: Caller, arguments: Arguments, state: State) -> Data:
    if not arguments:
        return SILENCE
    inner = state.child(arguments[1] if len(arguments) > 1 else state.program, arguments[2:])
    printed = caller.source(arguments[0], inner)
    caller.finish(inner)
    return printed


def foreign(caller: Caller, name: str, arguments: Arguments, state: State) -> Data:
    """Shells with a grammar of their own."""
    for place, word in enumerate(arguments):
        if word.text in {"-c", "--command"} and place + 1 < len(arguments):
            with caller.deeper(name):
                return caller.source(arguments[place + 1], state.fork())
    if arguments and not (arguments[0].text or "-").startswith("-"):
        program = absolute_path(arguments[0], state.cwd)
        caller.note(Execute(program=program, argv=arguments[1:], kind="project"), state)
        return opaque(UNKNOWN.taint)
    return fed(caller, name, state)
