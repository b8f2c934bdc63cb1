"""Redirections: what is read and written by them, and where input comes from and output goes."""

from __future__ import annotations

from posixpath import normpath
from typing import TYPE_CHECKING

import msgspec

from remuda.guard.model import How, Network, Read, Word, Write, literal
from remuda.guard.shell import words
from remuda.guard.shell.calls import absolute_path, nowhere
from remuda.guard.shell.state import NAME, Data, State, concatenate, known, opaque
from remuda.guard.shell.syntax import Redirect

if TYPE_CHECKING:
    from remuda.guard.shell.interpret import Interpreter

HOW: dict[str, How] = {
    ">": "truncate", ">|": "truncate", "&>": "truncate", ">&": "truncate", ">>": "append", "&>>": "append",
    "<>": "edit",
}  # fmt: skip
BOTH = frozenset({"&>", "&>>", ">&"})
SILENCE = known("")


class Wiring(msgspec.Struct):
    """Where a command's input comes from, and the files that its output goes to. ``shown`` is what
    redirections without a command print, as in ``$(< file)``; ``away``: nothing is left for the next one."""

    input: Data
    shown: Data = SILENCE
    files: list[tuple[Word, How]] = []
    away: bool = False


def wire(interpreter: Interpreter, redirects: tuple[Redirect, ...], state: State) -> Wiring:
    """Follows redirections in their order."""
    wiring = Wiring(state.input)
    for redirect in redirects:
        if redirect.operator in {"<<", "<<<"}:
            word = words.single(interpreter.shell(state), redirect.target)
            if redirect.operator == "<<<":
                word = concatenate(word, literal("\n"))
            if redirect.descriptor in {"", "0"}:
                wiring.input = words.plain(word)
            continue
        target = words.target(interpreter.shell(state), redirect.target)
        if redirect.descriptor.startswith("{"):
            state.variables[redirect.descriptor[1:-1]] = NAME
        if redirect.operator in {">&", "<&"} and _descriptor(target):
            _duplicate(redirect, target, wiring)
        else:
            _open(interpreter, redirect, absolute_path(target, state.cwd), wiring, state)
    return wiring


def _descriptor(word: Word) -> bool:
    """Whether a word is a number, as descriptors are."""
    return word == NAME or all(value.rstrip("-").isdigit() or value == "-" for value in word.values or ("?",))


def _duplicate(redirect: Redirect, target: Word, wiring: Wiring) -> None:
    if redirect.operator == "<&" and redirect.descriptor in {"", "0"} and target.text != "0":
        wiring.input = SILENCE if target.text == "-" else opaque(frozenset({"unknown"}))
    elif redirect.operator == ">&" and redirect.descriptor in {"", "1"}:
        wiring.away = target.text != "1"


def _open(interpreter: Interpreter, redirect: Redirect, path: Word, wiring: Wiring, state: State) -> None:
    host = next((parts[3] for value in path.values if _socket(parts := value.split("/"))), None)
    if host is not None:
        interpreter.note(Network(direction="send", host=literal(host), carries=wiring.input.taint), state)
        wiring.input = opaque(frozenset({"network"}))
        wiring.away = True
        return
    if redirect.operator in {"<", "<&", "<>"}:
        interpreter.note(Read(path=path), state)
        if redirect.descriptor in {"", "0"}:
            wiring.input = wiring.shown = _content(path, state)
    if redirect.operator in HOW:
        how = HOW[redirect.operator]
        if redirect.operator in BOTH or redirect.descriptor in {"", "1"}:
            wiring.files.append((path, how))
            wiring.away = path.text not in {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}
        else:
            interpreter.note(Write(path=path, how=how), state)


def _socket(parts: list[str]) -> bool:
    return len(parts) > 3 and parts[:2] == ["", "dev"] and parts[2] in {"tcp", "udp"}


def _content(path: Word, state: State) -> Data:
    text = path.text
    if text == "/dev/null":
        return SILENCE
    if text is not None and (data := state.files.get(normpath(text))) is not None:
        return data
    return opaque(frozenset({"file"}))


def deliver(interpreter: Interpreter, wiring: Wiring, printed: Data, state: State) -> Data:
    """Writes what was printed where it goes; what is left for the next command."""
    for place, (path, how) in enumerate(wiring.files):
        last = place == len(wiring.files) - 1
        interpreter.note(Write(path=path, how=how, content=printed.taint if last else frozenset()), state)
        text = path.text
        if text is not None and not nowhere(text):
            name = normpath(text)
            before = state.files.get(name) if how == "append" else SILENCE
            state.files[name] = _appended(before, printed if last else SILENCE)
    return SILENCE if wiring.away else printed


def _appended(before: Data | None, printed: Data) -> Data:
    if before is None or before.text is None or printed.text is None:
        return opaque(printed.taint | (before.taint if before else frozenset({"file"})))
    return known(before.text + printed.text, before.taint | printed.taint)
