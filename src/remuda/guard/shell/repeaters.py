"""``xargs`` and ``parallel``: a command for each of many words that come from somewhere else."""

from __future__ import annotations

from shlex import quote, split

from remuda.guard.commands.options import parse
from remuda.guard.model import Read, Unknown, Word, literal
from remuda.guard.shell.calls import Caller
from remuda.guard.shell.state import (
    MOST,
    Data,
    State,
    concatenate,
    either,
    joined,
    known,
    opaque,
    unknown,
)

Arguments = tuple[Word, ...]

_XARGS = """
    -0rtpxo -a|--arg-file: -d|--delimiter: -E: -e? -I|--replace: -J|--replace: -i|--replace? -l|--max-lines?
    -L|--max-args: -n|--max-args: -P|--max-procs: -s|--max-chars: --null --no-run-if-empty --verbose --exit
    --interactive --open-tty --process-slot-var: --eof? --help --version --show-limits -R: -S: +
"""
_PARALLEL = """
    -0qktuvXm -j|--jobs: -a|--arg-file: -I: -n: -N: -L: -d: -P: -S: -C|--colsep: --results: --joblog: --pipe
    --* +
"""


def xargs(caller: Caller, name: str, arguments: Arguments, state: State) -> Data:
    """``xargs``: a command with words from its input at the end, or in the place of a mark."""
    parsed = parse(_XARGS, arguments)
    for option in parsed.strange:
        caller.note(Unknown(why=f"{name} has an option {option} that is not known"), state)
    files = parsed.values("arg-file")
    for path in files:
        caller.note(Read(path=path), state)
    data = opaque(frozenset({"file"})) if files else state.input
    given = _words(data, lines=parsed.has("0", "null", "replace", "delimiter"))
    if parsed.has("max-args", "max-lines") and given:
        given = (either(given),)
    command = tuple(parsed.operands) or (literal("echo"),)
    mark = (parsed.value("replace") or literal("{}")).text or "{}"
    way = state.fork()
    way.input = known("")
    with caller.deeper(name):
        if command[-1].text == "-c":
            caller.feed(data, way.fork())
        if parsed.has("replace") and _marked(command, mark):
            return caller.invoke(tuple(_filled(word, mark, given) for word in command), way, functions=False)
        return caller.invoke((*command, *given), way, functions=False)


def parallel(caller: Caller, name: str, arguments: Arguments, state: State) -> Data:
    """``parallel``: a text for a shell, with words from its input or from behind ``:::``. What is one word
    and what is a text depends on its settings, so that both ways are followed."""
    texts = [word.text for word in arguments]
    at = next((place for place, text in enumerate(texts) if text in {":::", ":::+", "::::"}), len(texts))
    parsed = parse(_PARALLEL, arguments[:at])
    behind = tuple(word for word in arguments[at + 1 :] if word.text not in {":::", ":::+"})
    given = behind if at < len(texts) and texts[at] != "::::" else _words(state.input, lines=True)
    command = tuple(parsed.operands)
    way = state.fork()
    way.input = state.input if parsed.has("pipe") else known("")
    with caller.deeper(name):
        for word in given if not command else ():
            caller.source(word, way)
        if command:
            argv = _complete(command, given)
            caller.invoke(argv, way.fork(), functions=False)
            caller.source(joined(_complete(command, tuple(map(_quoted, given)))), way)
    return opaque(frozenset({"unknown"}))


def _complete(command: Arguments, given: Arguments) -> Arguments:
    """A command with any of the given words, in the place of its marks or at its end."""
    if _marked(command, "{}"):
        return tuple(_filled(word, "{}", given) for word in command)
    return (*command, either(given)) if given else command


def _quoted(word: Word) -> Word:
    return literal(quote(word.text)) if word.text is not None else word


def _marked(command: Arguments, mark: str) -> bool:
    return any(mark in value for word in command for value in word.values)


def _words(data: Data, lines: bool) -> Arguments:
    """What a list of words on standard input may be."""
    if data.text is None:
        return (data.line if data.line.values else unknown(data.taint),)
    found = data.text.replace("\0", "\n")
    try:
        items = found.splitlines() if lines else split(found)
    except ValueError:
        items = None
    if items is None or len(items) > MOST:
        return (unknown(data.taint),)
    return tuple(Word((item,), taint=data.taint) for item in items)


def _filled(word: Word, mark: str, given: Arguments) -> Word:
    """A word with a mark replaced by any of the given ones."""
    if not any(mark in value for value in word.values):
        return word
    values = either(given)
    if word.text is None:
        return unknown(word.taint | values.taint)
    head, *tails = word.text.split(mark)
    result = literal(head)
    for tail in tails:
        result = concatenate(concatenate(result, values), literal(tail))
    return result
